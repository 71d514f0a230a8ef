"""Combinatorial problems against enumeration: values, differences, the incremental form, scores, repairs."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import steppe
from steppe import targets
from steppe.diagnostics.exact import target_distribution, transition_matrix
from steppe.kernel.blocks.site_gibbs import SiteGibbsBlock
from steppe.kernel.compose import recipe

RNG = np.random.default_rng(7)
EDGES = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (4, 5), (3, 5), (0, 5)]
WEIGHTS = [1.0, 2.0, 1.5, 0.5, 3.0]
CLAUSES = [[1, -2, 3], [-1, 4], [2, -3, -5], [5], [-4, 5, 6], [-6, -1]]
TABLES = RNG.normal(size=(4, 4, 3, 3))
TABLES = TABLES + TABLES.transpose(1, 0, 3, 2)
TABLES[np.arange(4), np.arange(4)] = 0
FIELD = RNG.normal(size=(4, 3))
Q = np.triu(RNG.normal(size=(6, 6))) * (RNG.uniform(size=(6, 6)) < 0.6)


class Case(NamedTuple):
    """A target, and what its log-density is of the levels of a state, in words of NumPy."""

    make: Callable[[], Any]
    reference: Callable[[np.ndarray], float]


def inside(levels, pairs=EDGES):
    return sum(levels[i] * levels[j] for i, j in pairs)


def agreeing(levels):
    return sum(levels[i] == levels[j] for i, j in EDGES)


def sizes(levels, num_groups):
    return np.bincount(levels, minlength=num_groups)


def unsatisfied(levels, weights):
    holds = [any((literal > 0) == bool(levels[abs(literal) - 1]) for literal in clause) for clause in CLAUSES]
    return sum(weight for weight, is_true in zip(weights, holds, strict=True) if not is_true)


def block_log_probability(levels, probability_inside=0.7, between=0.2):
    total = 0.0
    for i, j in itertools.combinations(range(6), 2):
        p = probability_inside if levels[i] == levels[j] else between
        total += np.log(p if (i, j) in EDGES else 1 - p)
    return total


def table_sum(levels):
    pairs = itertools.combinations(range(4), 2)
    coupled = sum(TABLES[i, j, levels[i], levels[j]] for i, j in pairs)
    return coupled + sum(FIELD[i, levels[i]] for i in range(4))


def excess(levels):
    sums = np.asarray([WEIGHTS, [1, -1, 0, 0, 2]]) @ levels
    return np.maximum(0, np.maximum(sums - [4, 1], [2, -1] - sums)).sum()


NOT_JOINED = [pair for pair in itertools.combinations(range(6), 2) if pair not in EDGES]
CASES = {
    "independent set": Case(
        lambda: targets.independent_set(EDGES, inverse_temperature=0.5),
        lambda levels: 0.5 * (levels.sum() - 1.0001 * inside(levels)),
    ),
    "clique": Case(
        lambda: targets.clique(EDGES, penalty=2.0),
        lambda levels: levels.sum() - 2 * inside(levels, NOT_JOINED),
    ),
    "vertex cover": Case(
        lambda: targets.vertex_cover(EDGES, penalty=3.0),
        lambda levels: -levels.sum() - 3 * inside(1 - levels),
    ),
    "coloring": Case(lambda: targets.coloring(EDGES, 3), lambda levels: -agreeing(levels)),
    "partition": Case(
        lambda: targets.partition(EDGES, 3, balance=0.3),
        lambda levels: -(len(EDGES) - agreeing(levels)) - 0.3 * ((sizes(levels, 3) - 2.0) ** 2).sum(),
    ),
    "block model": Case(
        lambda: targets.block_model(EDGES, 2, inside=0.7, between=0.2), block_log_probability
    ),
    "formula": Case(
        lambda: targets.cnf(CLAUSES, [1, 2, 3, 1, 2, 0.5], inverse_temperature=2.0),
        lambda levels: -2 * unsatisfied(levels, [1, 2, 3, 1, 2, 0.5]),
    ),
    "knapsack": Case(
        lambda: targets.knapsack([3.0, 1.0, 2.0, 5.0, 1.0], WEIGHTS, 4.0, penalty=7.0),
        lambda levels: levels @ [3.0, 1, 2, 5, 1] - 7 * max(0.0, levels @ np.asarray(WEIGHTS) - 4),
    ),
    "linear penalty": Case(
        lambda: targets.linear_constraints(
            targets.qubo(Q[:5, :5]),
            [WEIGHTS, [1, -1, 0, 0, 2]],
            lower=[2.0, -1.0],
            upper=[4.0, 1.0],
            penalty=3.0,
        ),
        lambda levels: -(levels @ Q[:5, :5] @ levels) - 3 * excess(levels),
    ),
    "coupling tables": Case(lambda: targets.potts_tables(TABLES, FIELD), table_sum),
    "sparse qubo": Case(
        lambda: targets.qubo(scipy.sparse.coo_array(Q), 0.5), lambda levels: -(levels @ Q @ levels + 0.5)
    ),
}


@jax.jit
def look(target, positions, sites, levels):
    """Values and tables of all states, and tables along a walk by the incremental form."""
    values = jax.vmap(target.log_density)(positions)
    tables = jax.lax.map(target.differences, positions)
    init, differences, update, *_ = target.incremental
    every = jnp.arange(target.domain.num_sites)

    def walk(carry, move):
        cache, position = carry
        table = differences(cache, position, every)
        after = target.domain.replace_sites(position, *move)
        return (update(cache, position, *move), after), (position, table)

    walked = jax.lax.scan(walk, (init(positions[3]), positions[3]), (sites, levels))[1]
    return values, tables, walked


@pytest.mark.parametrize("name", CASES)
def test_values_differences_and_the_incremental_form_are_those_of_the_enumeration(name):
    target, domain = CASES[name].make(), CASES[name].make().domain
    positions = domain.enumerate()
    states = np.asarray(domain.to_levels(positions)).astype(int)
    expected = np.asarray([CASES[name].reference(state) for state in states], float)
    rng = np.random.default_rng(0)
    sites = jnp.asarray(rng.integers(domain.num_sites, size=30))
    levels = jnp.asarray(rng.integers(domain.max_levels, size=30))
    values, tables, (walked, along) = look(target, positions, sites, levels)
    np.testing.assert_allclose(values, expected, rtol=2e-5, atol=2e-5)
    index = {tuple(state): row for row, state in enumerate(states)}

    def table_at(state):
        rows = [
            [index[(*state[:i], k, *state[i + 1 :])] for k in range(domain.max_levels)]
            for i in range(len(state))
        ]
        return expected[np.asarray(rows)] - expected[index[tuple(state)]]

    every = np.asarray([table_at(tuple(state)) for state in states])
    np.testing.assert_allclose(tables, every, rtol=2e-5, atol=5e-5)
    at = np.asarray(domain.to_levels(walked)).astype(int)
    np.testing.assert_allclose(along, [table_at(tuple(state)) for state in at], rtol=2e-5, atol=5e-5)


# ---- scores, feasibility, repairs -------------------------------------------------------------


def best_of(target, score):
    states = np.asarray(target.domain.enumerate())
    return max(score(state) for state in states if target.is_feasible(state))


@pytest.mark.parametrize("name", ["independent set", "clique", "vertex cover", "knapsack"])
def test_the_most_likely_state_is_feasible_and_best_and_repairs_are_feasible(name):
    target = CASES[name].make()
    states = np.asarray(target.domain.enumerate())
    values = np.asarray(jax.vmap(target.log_density)(jnp.asarray(states)))
    top = states[np.argmax(values)]
    assert target.is_feasible(top)
    sign = -1 if name == "vertex cover" else 1
    assert sign * float(target.score(top)) == best_of(target, lambda state: sign * float(target.score(state)))
    for state in states:
        repaired = target.repair(state)
        assert target.is_feasible(repaired)
        if target.is_feasible(state):
            assert sign * float(target.score(repaired)) >= sign * float(target.score(state)) - 1e-6


def test_colourings_are_repaired_as_far_as_single_nodes_can_and_count_once_up_to_names():
    target = CASES["coloring"].make()
    states = target.domain.enumerate()
    for state in np.asarray(states)[::37]:
        repaired = target.repair(state)
        assert float(target.count_conflicts(repaired)) <= float(target.count_conflicts(state))
        assert float(np.max(target.differences(repaired))) <= 1e-6
        assert target.is_feasible(repaired) == (float(target.score(repaired)) == len(EDGES))
    canonical = np.unique(np.asarray(jax.vmap(target.canonical)(states)), axis=0)
    assert len(canonical) == 1 + 31 + 90  # ways to split six nodes into one, two or three groups


def test_partitions_are_repaired_to_equal_sizes_and_scored_by_their_cut():
    target = CASES["partition"].make()
    for levels in ([0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 2], [0, 0, 1, 1, 2, 2]):
        state = target.domain.from_levels(np.asarray(levels))
        assert float(target.score(state)) == len(EDGES) - agreeing(levels)
        repaired = target.repair(state)
        assert target.is_feasible(repaired)
        assert target.is_feasible(state) == (levels == [0, 0, 1, 1, 2, 2])


def test_a_formula_is_repaired_until_no_flip_helps():
    target = CASES["formula"].make()
    for state in np.asarray(target.domain.enumerate()):
        repaired = target.repair(state)
        assert float(target.score(repaired)) >= float(target.score(state))
        assert float(np.max(target.differences(repaired))) <= 1e-5
    assert targets.cnf(CLAUSES).is_feasible([1, 1, 0, 1, 1, 0]) == (
        unsatisfied([1, 1, 0, 1, 1, 0], [1] * 6) == 0
    )


def test_overlap_of_communities_ignores_their_names():
    model = targets.block_model(EDGES, 2, inside=0.7, between=0.2)
    truth = [0, 0, 0, 1, 1, 1]
    assert model.overlap(model.domain.from_levels(np.asarray([1, 1, 1, 0, 0, 0])), truth) == 1
    assert model.overlap(model.domain.from_levels(np.asarray([0, 1, 0, 1, 0, 1])), truth) < 0.5


# ---- sums that are remembered ------------------------------------------------------------------


def test_sums_are_remembered_where_sites_have_many_neighbours_and_the_chain_is_the_same():
    pairs = np.asarray(list(itertools.combinations(range(132), 2)))
    target = targets.ising_graph(pairs, np.random.default_rng(0).normal(size=len(pairs)) / 11)
    assert target.bonds.has_memory
    assert target.incremental.table_size > 1
    position = target.domain.draw(jax.random.key(0))

    def sweep(table_size):
        sampler = recipe("gibbs", SiteGibbsBlock(264, table_size=table_size)).build(target)
        state, _ = sampler.step(jax.random.key(2), sampler.init(position, jax.random.key(1)))
        return state

    state = jax.jit(sweep, static_argnums=0)(None)
    np.testing.assert_array_equal(state.position, jax.jit(sweep, static_argnums=0)(1).position)
    cache = state.memory[0].cache
    np.testing.assert_array_equal(cache.values, state.position)
    np.testing.assert_allclose(cache.sums, target.bonds.sums(state.position), atol=1e-4)
    assert (np.asarray(state.position) != np.asarray(position)).any()


# ---- linear constraints -----------------------------------------------------------------------


def test_linear_constraints_are_kept_and_the_restricted_distribution_is_exact():
    inner = targets.qubo(Q[:4, :4])
    target = targets.linear_constraints(inner, [[1, 1, 1, 1], [2, 0, 1, 0]], lower=[1, 0], upper=[2, 2])
    states = np.asarray(target.domain.enumerate())
    sums = states @ np.asarray([[1, 1, 1, 1], [2, 0, 1, 0]]).T
    is_kept = ((sums >= [1, 0]) & (sums <= [2, 2])).all(axis=1)
    weights = np.exp(np.asarray(jax.vmap(inner.log_density)(jnp.asarray(states)))) * is_kept
    exact = weights / weights.sum()
    np.testing.assert_allclose(target_distribution(target), exact, atol=1e-6)
    matrix = np.asarray(transition_matrix(steppe.gibbs(num_updates=4, num_swaps=1), target))
    assert matrix[is_kept][:, ~is_kept].max() == 0
    np.testing.assert_allclose(exact @ matrix, exact, atol=2e-6)
    for state, kept in zip(states, is_kept, strict=True):
        assert target.is_feasible(target.repair(state))
        assert target.is_feasible(state) == kept


def test_a_sum_that_is_fixed_is_kept_by_swaps():
    target = targets.linear_constraints(targets.qubo(Q[:4, :4]), np.ones(4), lower=2, upper=2)
    matrix = np.asarray(transition_matrix(steppe.gibbs(num_updates=1, num_swaps=1), target))
    exact = np.asarray(target_distribution(target))
    reached = np.linalg.matrix_power(matrix, 200)[exact > 0]
    np.testing.assert_allclose(reached, np.tile(exact, (6, 1)), atol=1e-5)


def test_problems_without_constraint_say_so_and_counts_are_repaired():
    for target in (
        targets.spin_glass((3, 3)),
        targets.potts_tables(TABLES, FIELD),
        CASES["block model"].make(),
    ):
        state = target.domain.draw(jax.random.key(0))
        assert target.is_feasible(state)
        np.testing.assert_array_equal(target.repair(state), state)
        expected = float(target.log_density(state))
        np.testing.assert_allclose(float(target.score(state)), expected, rtol=1e-5)
    coloring = targets.coloring(EDGES, 3)
    counted = targets.fixed_counts(coloring, (1, 2, 3))
    repaired = counted.repair([2.0, 2.0, 0.0, 5.0, 1.0, 9.0])
    assert counted.is_feasible(repaired)
    assert float(counted.score(repaired)) == float(coloring.score(counted.to_state(repaired)))


# ---- fixed counts -----------------------------------------------------------------------------


@pytest.mark.usefixtures("float64")
def test_swaps_keep_the_counts_and_the_restricted_distribution_exactly():
    inner = targets.qubo(Q[:4, :4])
    target = targets.fixed_counts(inner, (2, 2))
    matrix = np.asarray(transition_matrix(steppe.uniform_permutation(moves="swap"), target))
    probabilities = np.asarray(target_distribution(target))
    assert np.abs(probabilities @ matrix - probabilities).max() <= 1e-12
    states = np.asarray(target.to_state(target.domain.enumerate()))
    assert (states.sum(axis=1) == 2).all()
    distinct, place = np.unique(states, axis=0, return_inverse=True)
    found = np.bincount(place.ravel(), probabilities)
    weights = np.exp(np.asarray(jax.vmap(inner.log_density)(jnp.asarray(distinct))))
    np.testing.assert_allclose(found, weights / weights.sum(), rtol=1e-12)
    assert len(distinct) == 6


@pytest.mark.slow
def test_a_million_swaps_never_leave_the_constraint_and_counts_follow_the_enumeration():
    inner = targets.coloring(EDGES, 3)
    target = targets.fixed_counts(inner, (2, 2, 2))
    recipe = steppe.uniform_permutation(moves="swap")
    run = steppe.sample(target, recipe, key=jax.random.key(0), num_chains=20, num_draws=5000, thinning=10)
    positions = np.asarray(run.positions).reshape(-1, 6)
    assert (np.sort(positions, axis=1) == np.arange(6)).all()
    values = np.asarray(jax.jit(jax.vmap(target.log_density))(positions))
    every = np.asarray(jax.vmap(target.log_density)(target.domain.enumerate()))
    weights = np.exp(every) / np.exp(every).sum()
    means = values.reshape(20, -1).mean(axis=1)
    # A t-test over 20 independent chains at |t| < 6: a false alarm in 10⁵ runs.
    assert abs(means.mean() - weights @ every) < 6 * means.std(ddof=1) / np.sqrt(20)


def test_an_arrangement_stands_for_the_state_it_was_made_of():
    target = targets.fixed_counts(targets.coloring(EDGES, 3), (1, 2, 3))
    state = target.inner.domain.from_levels(np.asarray([2, 1, 0, 2, 1, 2]))
    arranged = target.to_arrangement(state)
    assert target.is_feasible(arranged)
    np.testing.assert_array_equal(target.to_state(arranged), state)
    np.testing.assert_array_equal(target.to_state(target.canonical(arranged)), state)


# ---- glasses ----------------------------------------------------------------------------------


def test_glasses_are_drawn_from_their_seed():
    glass = targets.spin_glass((3, 4), seed=3)
    pairs = glass.interactions
    assert len(pairs.ends) == 2 * 24
    strengths = np.asarray(glass.pair_form.strengths)[np.asarray(pairs.places)]
    assert set(strengths.tolist()) == {-1.0, 1.0}
    same, other = targets.spin_glass((3, 4), seed=3), targets.spin_glass((3, 4), seed=4)
    state = glass.domain.draw(jax.random.key(0))
    assert glass.log_density(state) == same.log_density(state)
    assert glass.log_density(state) != other.log_density(state)
    model = targets.sherrington_kirkpatrick(40, seed=1)
    couplings = np.asarray(model.bonds.strengths).reshape(40, 40)[np.triu_indices(40, 1)]
    np.testing.assert_allclose(couplings.std() * np.sqrt(40), 1, atol=0.1)


def test_sets_led_away_keep_their_score_and_are_largest_where_none_was():
    target = targets.independent_set(EDGES)
    away = target.avoid(np.eye(6)[0])
    states = away.domain.enumerate()
    best = states[np.argmax(jax.vmap(away.log_density)(states))]
    assert away.is_feasible(best)
    assert not best[0]
    assert float(away.score(best)) == float(best.sum())
    np.testing.assert_array_equal(away.interactions.ends, target.interactions.ends)


# ---- what is refused --------------------------------------------------------------------------

REFUSED = {
    "self-loop": (lambda: targets.independent_set([(0, 0)]), "binds site 0 to itself"),
    "edge given twice": (lambda: targets.clique([(0, 1), (1, 2), (1, 0)]), "edges 0 and 2 both join 0 and 1"),
    "node weight": (lambda: targets.vertex_cover([(0, 1)], [1.0, -1.0]), "node 1 has -1"),
    "weights that are not numbers": (lambda: targets.independent_set([(0, 1)], [1.0, np.nan]), "finite"),
    "cover led away": (
        lambda: targets.vertex_cover([(0, 1)]).avoid([0.0, 1.0]),
        "Search the independent set",
    ),
    "visits of other nodes": (
        lambda: targets.clique([(0, 1)]).avoid([1.0]),
        r"per node, 2; got shape \(1,\)",
    ),
    "negative edge": (lambda: targets.partition([(0, 1)], weights=[-1.0]), "edge 0 has -1"),
    "adjacency": (lambda: targets.coloring(np.ones((3, 4)), 3), "square"),
    "edges of three columns": (lambda: targets.clique([(0, 1, 2)]), "two columns, or a square matrix"),
    "edges that are no integers": (lambda: targets.max_cut([(0.5, 1.0)]), "type float"),
    "no edge": (lambda: targets.clique([]), "nothing says how many sites"),
    "adjacency with weights": (lambda: targets.clique([[0, 2.0], [2.0, 0]]), "got 2 at .0, 1.*no weights"),
    "asymmetric adjacency": (lambda: targets.coloring([[0, 1, 0], [0, 0, 1], [0, 0, 0.0]], 3), "symmetric"),
    "one colour": (lambda: targets.coloring([(0, 1)], 1), "num_colors"),
    "empty clause": (lambda: targets.cnf([[1], []]), "clause 1 is empty"),
    "literal zero": (lambda: targets.cnf([[1, 0]]), "literal 0"),
    "literal out of range": (lambda: targets.cnf([[1, 4]], num_variables=3), "±1 to ±3"),
    "clause that always holds": (lambda: targets.cnf([[1, -1]]), "1 and its negation"),
    "clause weight": (lambda: targets.cnf([[1], [2]], [1.0, 0.0]), "clause 1 has 0"),
    "no clause": (lambda: targets.cnf([]), "at least one clause"),
    "capacity": (lambda: targets.knapsack([1.0], [5.0], 2.0), "lightest weighs 5"),
    "item weight": (lambda: targets.knapsack([1.0, 2.0], [1.0, -1.0], 2.0), "item 1 has -1"),
    "cardinality": (
        lambda: targets.fixed_counts(targets.qubo(Q), (2, 5)),
        r"\[2, 5\], which is 2 levels and 7",
    ),
    "bounds that cross": (
        lambda: targets.linear_constraints(targets.qubo(Q), np.ones(6), lower=3, upper=2),
        "from 3 to 2",
    ),
    "sum out of reach": (
        lambda: targets.linear_constraints(targets.qubo(Q), np.ones(6), lower=7),
        "from 0 to 6 in any state",
    ),
    "no bound": (lambda: targets.linear_constraints(targets.qubo(Q), np.ones(6)), "`lower`, `upper` or both"),
    "coefficients": (
        lambda: targets.linear_constraints(targets.qubo(Q), np.ones(5), upper=2),
        r"each of 6 sites.*\(5,\)",
    ),
    "coefficient that is no number": (
        lambda: targets.linear_constraints(targets.qubo(Q), [np.nan] * 6, upper=2),
        "finite",
    ),
    "categories": (
        lambda: targets.linear_constraints(targets.coloring(EDGES, 3), np.ones(6), upper=2),
        "bits or spins",
    ),
    "negative penalty": (
        lambda: targets.linear_constraints(targets.qubo(Q), np.ones(6), upper=2, penalty=-1.0),
        "penalty",
    ),
    "probability": (lambda: targets.block_model([(0, 1)], 2, inside=1.0, between=0.1), "strictly between"),
    "tables": (
        lambda: targets.potts_tables(np.triu(np.ones((3, 3)))[:, :, None, None] * np.ones((2, 2))),
        "symmetric",
    ),
    "short periodic axis": (lambda: targets.spin_glass((2, 4)), "at least 3"),
    "sparse matrix": (lambda: targets.qubo(scipy.sparse.coo_array(np.ones((2, 3)))), r"square.*\(2, 3\)"),
}


@pytest.mark.parametrize(("make", "said"), REFUSED.values(), ids=REFUSED)
def test_bad_problems_are_refused_with_what_is_wrong(make, said):
    with pytest.raises(steppe.errors.TargetError, match=said):
        make()


@pytest.mark.slow
def test_a_million_terms_stay_sparse():
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(300_000, size=(2, 1_000_000))
    matrix = scipy.sparse.coo_array((rng.normal(size=1_000_000), (rows, columns)), (300_000, 300_000))
    target = targets.qubo(matrix)
    ones = np.ones(300_000, np.float32)
    np.testing.assert_allclose(float(target.objective(ones)), matrix.data.sum(), rtol=1e-2, atol=1.0)
