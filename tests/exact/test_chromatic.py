"""Chromatic Gibbs: its transition matrix, its draws, many chains at once, and what it refuses.

False alarms: the p-values of the draws are held against 1e-7; there are fewer than 20 of them.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import steppe
from contract.cases import quick_jit
from steppe import targets
from steppe.diagnostics.exact import target_distribution, transition_matrix
from steppe.errors import RecipeError, SlowSamplerWarning, TargetError
from steppe.kernel.blocks import spin_planes
from steppe.kernel.blocks.chromatic import ChromaticBlock, _overrelax
from steppe.kernel.blocks.color_updates import Conditionals
from steppe.kernel.blocks.coloring import Coloring, make_coloring
from steppe.random import draws
from steppe.target.interactions import Interactions, color_sites
from tiers import cases

TOLERANCE = 1e-12
FALSE_ALARM = 1e-7
CYCLE = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]])
rng = np.random.default_rng(3)
WEIGHTS = rng.normal(size=5)


def triples(position):
    """A chain of three-site terms: site `i` interacts with `i ± 1` and `i ± 2`."""
    return jnp.sum(jnp.asarray(WEIGHTS[:3]) * position[:3] * position[1:4] * position[2:])


def conditional_of_triples(position, site):
    low, high = (triples(position.at[site].set(value)) for value in (0.0, 1.0))
    return jnp.stack([low, high])


TRIPLES = [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3], [2, 4], [3, 4]]


def ragged_chain(position):
    return jnp.sum(
        position[:-1] * jnp.asarray([[0.3], [-1.0], [0.7], [0.2]]) * jnp.roll(position[1:], 1, axis=1)
    )


TARGETS = {
    "lattice": lambda: targets.ising_lattice((2, 3), 0.4, field=0.2),
    "open lattice, bits": lambda: targets.ising_lattice((2, 2), -0.7, 0.3, periodic=False, spins=False),
    "odd cycle": lambda: targets.ising_graph(CYCLE, WEIGHTS, field=WEIGHTS[::-1]),
    "odd cycle of signs": lambda: targets.ising_graph(CYCLE, 0.6 * np.sign(WEIGHTS), field=0.2),
    "hub": lambda: targets.ising_graph([[0, i] for i in range(1, 6)], 0.5, num_sites=7),
    "sparse matrix": lambda: targets.ising(np.diag(WEIGHTS, 1) + np.diag(WEIGHTS, -1), 0.1),
    "qubo": lambda: targets.qubo(np.diag(WEIGHTS) + np.diag(WEIGHTS[1:], 1), inverse_temperature=1.7),
    "max-cut": lambda: targets.max_cut(CYCLE, WEIGHTS, inverse_temperature=0.8),
    "potts": lambda: targets.potts(CYCLE[:4] % 4, 3, [0.5, -0.8, 0.3, 1.0], [0.1, 0.0, -0.2]),
    "potts lattice": lambda: targets.potts((2, 2), 3, 0.6, periodic=False),
    "conditional": lambda: steppe.Target(
        triples, steppe.Binary(5), interactions=TRIPLES, conditional=conditional_of_triples
    ),
    "graph only": lambda: steppe.Target(triples, steppe.Binary(5), interactions=TRIPLES),
    "ragged": lambda: steppe.Target(
        ragged_chain, steppe.Categorical(5, [2, 3, 2, 3, 2]), interactions=[[i, i + 1] for i in range(4)]
    ),
}
NAMES = list(TARGETS)


def coloring_of(sampler) -> Coloring:
    return sampler.recipe.blocks[0].coloring


def chain_of(states, chain):
    return jax.tree.map(lambda leaf: leaf[chain], states)


def site_matrix(target, site):
    """Draw one site from its conditional, written down from the distribution itself."""
    distribution = target_distribution(target)
    levels = np.asarray(target.domain.to_levels(target.domain.enumerate()))
    others = np.delete(levels, site, axis=1)
    matrix = (others[:, None] == others[None]).all(axis=2) * distribution
    return matrix / matrix.sum(axis=1, keepdims=True)


def turned_matrix(target, site):
    """Move one site as Suwa and Todo do, by their equation for the flow between two levels."""
    distribution, matrix = target_distribution(target), np.zeros((target.domain.num_states,) * 2)
    for members in np.unique(site_matrix(target, site) > 0, axis=0):
        states = np.flatnonzero(members)
        first = np.argmax(distribution[states])
        order = np.append(states[first], np.delete(states, first))
        weights = distribution[order].astype(np.longdouble)
        sums = np.cumsum(weights)
        for i, old in enumerate(order):
            for j, new in enumerate(order):
                shift = sums[i] - sums[j] + weights[j] + weights[0]
                flows = [
                    min(shift - turns * sums[-1], weights[i] + weights[j] - shift + turns * sums[-1])
                    for turns in (0, 1)
                ]
                flow = sum(max(0.0, min(flow, weights[i], weights[j])) for flow in flows)
                matrix[old, new] = flow / weights[i]
    return matrix


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", cases(NAMES, fast=("lattice", "odd cycle", "potts", "conditional")))
def test_a_sweep_leaves_the_distribution_invariant(name):
    target = TARGETS[name]()
    distribution, matrix = target_distribution(target), transition_matrix(steppe.chromatic_gibbs(), target)
    assert np.abs(matrix.sum(axis=1) - 1).max() <= TOLERANCE
    assert np.abs(distribution @ matrix - distribution).max() <= TOLERANCE


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", cases(NAMES, slow=("odd cycle of signs",)))
def test_a_sweep_moves_site_after_site_in_the_order_of_the_colours(name):
    target, fraction = TARGETS[name](), 0.8
    order = np.asarray(coloring_of(steppe.chromatic_gibbs().build(target)).order)
    drawn = [site_matrix(target, site) for site in order]
    moved = [
        fraction * turned_matrix(target, site) + (1 - fraction) * drawn[i] for i, site in enumerate(order)
    ]
    for overrelaxation, sites in ((0.0, drawn), (fraction, moved)):
        recipe = steppe.chromatic_gibbs(overrelaxation=overrelaxation)
        expected = np.linalg.multi_dot([np.eye(target.domain.num_states)] * 2 + sites)
        assert np.abs(transition_matrix(recipe, target) - expected).max() <= TOLERANCE


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("weights", [[1.0], [0.3], [1e-5], [0.5, 0.8], [1.0, 1.0, 0.2], [1e-4, 0.9, 0.3]])
@pytest.mark.parametrize("overrelaxation", [0.0, 0.6, 0.99])
def test_a_move_among_levels_maps_the_circle_of_uniforms_onto_its_matrix(weights, overrelaxation):
    """Uniforms on a grid: the share that leads to a level is its probability, up to the grid."""
    for last in range(len(weights) + 1):
        probabilities = np.insert(np.array(weights), last, 1.0)
        probabilities /= probabilities.sum()
        kernel = _overrelax(probabilities[:, None, None], overrelaxation)[..., 0, 0]
        np.testing.assert_allclose(probabilities @ kernel, probabilities, atol=TOLERANCE)
        grid = (jnp.arange(20_000) + 0.5) / 20_000
        table = jnp.log(jnp.asarray(probabilities))[:, None] * jnp.ones(len(grid))
        for old, row in enumerate(kernel):
            current = jnp.full(len(grid), old)
            new = draws.move(grid, table, current, jnp.asarray(overrelaxation))
            shares = np.bincount(np.asarray(new), minlength=len(row)) / len(grid)
            assert np.abs(shares - row).max() <= 3 * len(row) / len(grid)
            if len(row) == 2:
                logits = table[1] - table[0]
                is_upper = draws.switch(grid, logits, current == 1, jnp.asarray(overrelaxation))
                assert abs(float(is_upper.mean()) - row[1]) <= 3 / len(grid)


@pytest.mark.usefixtures("float64")
def test_a_turn_by_the_weight_of_the_present_level_would_be_seen():
    """The turn must not depend on where a site is: the same equation with that weight is not invariant."""
    probabilities = np.array([0.5, 0.3, 0.2])
    ends = np.cumsum(probabilities)
    points = (np.arange(100_000) + 0.5) / 100_000
    old = np.searchsorted(ends, points)
    for shift, is_right in ((probabilities.max(), True), (probabilities[old], False)):
        new = np.searchsorted(ends, (points + shift) % 1.0)
        found = np.bincount(new, minlength=3) / len(points)
        assert (np.abs(found - probabilities).max() <= 1e-4) == is_right


@pytest.mark.usefixtures("float64")
def test_one_colour_per_site_is_systematic_gibbs():
    matrix = rng.normal(size=(4, 4))
    target = targets.ising(np.triu(matrix, 1) + np.triu(matrix, 1).T)
    sampler = steppe.chromatic_gibbs().build(target)
    colors = coloring_of(sampler).colors
    assert [len(color.sites) for color in colors] == [1] * 4


def forget_a_bond(sampler):
    """The same sampler with a colouring that does not know of the bond of the first and the last site."""
    sources, ends, places = sampler.target.interactions
    is_known = ~(np.isin(sources, (0, 4)) & np.isin(ends, (0, 4)))
    coloring = make_coloring(Interactions(sources[is_known], ends[is_known], places[is_known]), 5)
    broken = dataclasses.replace(sampler.recipe, blocks=(ChromaticBlock(0.8, coloring),))
    return dataclasses.replace(sampler, recipe=broken)


def test_a_forgotten_bond_is_seen_by_the_matrix_and_by_draws_from_stationarity():
    target = targets.ising_graph(CYCLE, 0.6)
    distribution, num_chains = target_distribution(target), 50_000
    starts = np.random.default_rng(0).choice(32, num_chains, p=distribution / distribution.sum())
    right = steppe.chromatic_gibbs().build(target)
    keys = jax.random.split(jax.random.key(3), num_chains)
    for sampler, is_right in ((right, True), (forget_a_bond(right), False)):
        matrix = sampler.recipe.blocks[0].transition_matrix(sampler.density, None)
        assert (np.abs(distribution @ matrix - distribution).max() <= 1e-6) == is_right
        states = jax.vmap(sampler.init)(target.domain.enumerate()[starts])
        ends = quick_jit(lambda keys, states: jax.vmap(sampler.step)(keys, states)[0].position)(keys, states)  # noqa: B023
        counts = np.bincount(np.asarray(target.domain.index(ends)), minlength=32)
        exact = distribution.astype(float) / distribution.sum(dtype=float)
        p_value = scipy.stats.chisquare(counts, exact * num_chains).pvalue
        assert (p_value > FALSE_ALARM) == is_right


def draw_once(sampler, num_chains, start):
    """States after one step of many chains from one position."""
    state = sampler.init(start)
    keys = jax.random.split(jax.random.key(5), num_chains)
    return quick_jit(lambda keys: jax.vmap(sampler.step, (0, None))(keys, state)[0])(keys)


def judge_draws(target):
    """Draws of one step from one position: p-value by its row of the matrix, and log-densities that hold."""
    sampler, index = steppe.chromatic_gibbs().build(target), target.domain.num_states // 3
    states = draw_once(sampler, 20_000, target.domain.enumerate()[index])
    row = transition_matrix(steppe.chromatic_gibbs(), target)[index]
    counts = np.bincount(np.asarray(target.domain.index(states.position)), minlength=len(row))
    is_expected = row * 20_000 > 5
    rest = max(row[~is_expected].sum(), 1e-12)
    observed, expected = (
        np.append(counts[is_expected], counts[~is_expected].sum()),
        np.append(row[is_expected], rest),
    )
    fresh = jax.vmap(target.log_density)(states.position)
    np.testing.assert_allclose(states.log_density, fresh, rtol=1e-5, atol=1e-5)
    return scipy.stats.chisquare(observed, expected / expected.sum() * observed.sum()).pvalue


@pytest.mark.parametrize("name", cases(NAMES, fast=("odd cycle of signs", "odd cycle", "potts")))
def test_draws_follow_the_matrix_and_carry_their_log_density(name):
    assert judge_draws(TARGETS[name]()) > FALSE_ALARM


@pytest.mark.slow
def test_draws_of_large_colours_follow_the_matrix_in_segments(monkeypatch):
    """Two colours of five spins, in segments of four; segments with the same bits would be seen."""
    monkeypatch.setattr(spin_planes, "SEGMENT", 4)
    monkeypatch.setattr(spin_planes, "MIN_SEGMENTS", 2)
    cycle = np.stack([np.arange(10), (np.arange(10) + 1) % 10], axis=1)
    target = targets.ising_graph(cycle, 0.3, field=0.1)
    assert [
        color.neighbours.shape[1] for color in coloring_of(steppe.chromatic_gibbs().build(target)).colors
    ] == [5, 5]
    block: Any = steppe.chromatic_gibbs().build(target).recipe.blocks[0]
    assert block.spins is not None
    alone = targets.ising([[0.0]], 0.1)
    assert alone.interactions is not None
    assert spin_planes.find_spin_bonds(alone, make_coloring(alone.interactions, 1)) is None
    assert judge_draws(target) > FALSE_ALARM
    move = spin_planes._move_color
    with monkeypatch.context() as broken:
        broken.setattr(spin_planes, "_move_color", lambda *parts: move(*parts[:-1], parts[-1] // 5 * 5))
        assert judge_draws(targets.ising_graph(cycle, 0.3, field=0.1)) < FALSE_ALARM


def test_large_lattices_are_swept_in_segments_as_each_chain_alone():
    """128² spins: more than one segment; chains alone and side by side, and their log-densities."""
    target = targets.ising_lattice((128, 128), 0.3)
    sampler = steppe.chromatic_gibbs().build(target)
    keys = jax.random.split(jax.random.key(3), 3)
    states = jax.vmap(sampler.init)(jnp.ones((3, 128**2)))
    together = jax.jit(jax.vmap(sampler.step))(keys, states)[0]
    alone = jax.jit(sampler.step)(keys[2], chain_of(states, 2))[0]
    np.testing.assert_array_equal(together.position[2], alone.position)
    spins = np.asarray(together.position, float).reshape(3, 128, 128)
    pairs = sum((spins * np.roll(spins, 1, axis)).sum((1, 2)) for axis in (1, 2))
    np.testing.assert_allclose(together.log_density, 0.3 * pairs, rtol=1e-6)


@pytest.mark.parametrize("name", ["lattice", "odd cycle", "potts", "conditional"])
def test_many_chains_step_as_each_of_them_alone(name):
    target = TARGETS[name]()
    sampler = steppe.chromatic_gibbs().build(target)
    positions, keys = target.domain.draw(jax.random.key(1), (7,)), jax.random.split(jax.random.key(2), 7)
    states = jax.vmap(sampler.init)(positions)
    together, infos = jax.jit(jax.vmap(sampler.step))(keys, states)
    step = jax.jit(sampler.step)
    for chain in range(7):
        alone, info = step(keys[chain], chain_of(states, chain))
        np.testing.assert_array_equal(together.position[chain], alone.position)
        np.testing.assert_array_equal(together.log_density[chain], alone.log_density)
        assert infos.num_flips[chain] == info.num_flips


def test_a_conditional_that_was_given_moves_sites_where_it_is_a_number():
    """One colour of three chains: what moved is counted, and what is no number is left alone."""
    target = TARGETS["conditional"]()
    assert target.interactions is not None
    density = steppe.gibbs().build(target, audit=False).density
    sites = Conditionals(make_coloring(target.interactions, 5), density)
    start = target.domain.enumerate()[-3:].T
    color = sites.coloring.colors[0]

    @quick_jit
    def move(start):
        uniforms = jnp.full((len(color.sites), 3), 0.5)
        values, _, num_broken = sites.update(start, color, uniforms, jnp.asarray(0.0))
        values = 1 - values  # so that something moves
        return values, num_broken, sites.count_changes(values, start), sites.leave(values, num_broken)[1]

    values, num_broken, num_changes, log_density = move(start)
    np.testing.assert_array_equal(num_broken, 0)
    np.testing.assert_array_equal(num_changes, (values != start).sum(axis=0))
    np.testing.assert_allclose(log_density, [triples(np.asarray(one)) for one in values.T], rtol=1e-6)
    np.testing.assert_array_equal(sites.log_weights(start, color).max(axis=0), 0)  # so that none is large
    weights = jnp.asarray([0.0, jnp.nan, jnp.inf, -jnp.inf])
    assert sites._is_broken(weights).tolist() == [False, True, True, False]


def test_targets_may_differ_between_chains():
    """A step mapped over targets, such as a sweep over fields, has the shapes of a step of each."""
    sampler = steppe.chromatic_gibbs().build(targets.ising_graph(CYCLE, WEIGHTS, field=0.2))

    def step(scale, key):
        floats, others = eqx.partition(sampler.target, eqx.is_inexact_array)
        scaled = eqx.combine(jax.tree.map(lambda leaf: scale * leaf, floats), others)
        other = dataclasses.replace(sampler, target=scaled)
        return other.step(key, other.init(jnp.ones(5)))[0].position

    keys = jax.random.split(jax.random.key(2), 3)
    assert jax.eval_shape(jax.vmap(step), jnp.ones(3), keys).shape == (3, 5)


@pytest.mark.slow
def test_every_chain_may_have_an_inverse_temperature_of_its_own():
    target = targets.ising_lattice((4, 4), 0.3)
    sampler = steppe.chromatic_gibbs().build(target)
    states = jax.vmap(sampler.init)(target.domain.draw(jax.random.key(1), (3,)))
    keys, betas = jax.random.split(jax.random.key(2), 3), jnp.asarray([0.2, 1.0, 3.0])

    def step(beta, key, state):
        return sampler.replace({"inverse_temperature": beta}).step(key, state)[0].position

    together = jax.jit(jax.vmap(step))(betas, keys, states)
    for chain in range(3):
        alone = jax.jit(step)(betas[chain], keys[chain], chain_of(states, chain))
        np.testing.assert_array_equal(together[chain], alone)


@pytest.mark.parametrize("num_ladders", [pytest.param(3, marks=pytest.mark.slow), 12])
def test_ladders_of_chains_step_as_each_chain_alone(num_ladders):
    """Nested `vmap`: all chains of all ladders share words, and more of them than one word holds."""
    target = targets.ising_lattice((4, 6), 0.3, field=0.1)
    sampler = steppe.chromatic_gibbs().build(target)
    shape = num_ladders, 4
    states = jax.vmap(jax.vmap(sampler.init))(target.domain.draw(jax.random.key(1), shape))
    keys, betas = jax.random.split(jax.random.key(2), shape), jnp.asarray([0.2, 0.5, 1.0, 2.0])

    def step(beta, key, state):
        moved, _ = sampler.replace({"inverse_temperature": beta}).step(key, state)
        return moved.position, moved.log_density

    ladder = jax.vmap(step)
    together = quick_jit(jax.vmap(ladder, (None, 0, 0)))(betas, keys, states)
    alone = quick_jit(lambda: jax.lax.map(lambda one: ladder(betas, *one), (keys, states)))()
    for found, expected in zip(together, alone, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_regular_graphs_of_several_colours_put_chains_in_the_bits_of_words():
    """The neighbours of a site may have any colours: each has an earlier one at one end."""
    target = TARGETS["odd cycle of signs"]()
    block: Any = steppe.chromatic_gibbs().build(target).recipe.blocks[0]
    assert len(block.coloring.colors) == 3
    assert [color.neighbours.shape[0] for color in block.spins.colors] == [2, 2, 2]
    assert sum(color.num_bonds for color in block.spins.colors) == len(CYCLE)
    block = steppe.chromatic_gibbs().build(TARGETS["hub"]()).recipe.blocks[0]
    assert block.spins is None


@pytest.mark.slow
def test_annealing_finds_the_ground_state_of_a_ferromagnet():
    target = targets.ising_lattice((6, 6), 1.0)
    cooling = steppe.parameter_schedule(inverse_temperature=steppe.geometric_schedule(0.1, 3.0))
    found = steppe.anneal(target, steppe.chromatic_gibbs(), cooling, key=jax.random.key(0), num_steps=300)
    assert float(found.best_log_density.max()) == 72


# ---- colours -----------------------------------------------------------------------------------------------


def test_even_lattices_and_trees_have_two_colours_and_odd_cycles_three():
    assert color_sites(targets.ising_lattice((4, 6), 1.0).interactions, 24).max() == 1
    assert color_sites(targets.ising_graph([[0, i] for i in range(1, 9)]).interactions, 9).max() == 1
    assert color_sites(targets.ising_graph(CYCLE).interactions, 5).max() == 2


def test_no_two_interacting_sites_share_a_colour():
    edges = rng.integers(300, size=(1500, 2))
    interactions = Interactions.read(edges, 300)
    colors = color_sites(interactions, 300)
    assert (colors[interactions.sources] != colors[interactions.ends]).all()
    assert colors.max() < 12


# ---- refusals ----------------------------------------------------------------------------------------------


def test_a_dense_graph_is_refused_with_a_remedy():
    matrix = rng.normal(size=(70, 70))
    with pytest.raises(TargetError, match=r"more than 64 colours.*gibbs\(scan='systematic'\)"):
        steppe.chromatic_gibbs().build(targets.ising(matrix + matrix.T - 2 * np.diag(np.diag(matrix))))


def test_a_colour_for_every_site_is_said_with_a_remedy_and_not_recommended():
    matrix = rng.normal(size=(12, 12))
    target = targets.ising(matrix + matrix.T - 2 * np.diag(np.diag(matrix)))
    with pytest.warns(SlowSamplerWarning, match=r"All 12 sites .* a colour each.*Use `gibbs\(num_updates"):
        steppe.chromatic_gibbs().build(target)
    assert steppe.recommend(target).recipe.name == "gibbs"


def test_a_target_that_says_nothing_of_its_interactions_is_refused():
    with pytest.raises(RecipeError, match=r"interactions=pairs"):
        steppe.chromatic_gibbs().build(steppe.Target(triples, steppe.Binary(5)))


def test_a_graph_that_misses_a_pair_is_refused():
    with pytest.raises(TargetError, match=r"changes with sites that are not its neighbours"):
        steppe.chromatic_gibbs().build(steppe.Target(triples, steppe.Binary(5), interactions=TRIPLES[1:]))


def test_a_conditional_that_is_not_that_of_the_log_density_is_refused():
    target = steppe.Target(
        triples,
        steppe.Binary(5),
        interactions=TRIPLES,
        conditional=lambda position, site: 1.5 * conditional_of_triples(position, site),
    )
    with pytest.raises(TargetError, match=r"is not what `conditional` returns"):
        steppe.chromatic_gibbs().build(target)


@pytest.mark.parametrize(
    ("name", "evaluations"), [("conditional", 11), ("with differences", 4), ("lattice", 1)]
)
def test_a_sweep_costs_a_table_a_colour_or_every_level_of_every_site(name, evaluations):
    made = {
        "with differences": lambda: steppe.Target(
            triples, steppe.Binary(5), interactions=TRIPLES, multilinear=True
        )
    }
    target = {**TARGETS, **made}[name]()
    density = steppe.gibbs().build(target, audit=False).density
    assert ChromaticBlock(0.0).prepare(target).count_evaluations(density) == evaluations


def test_a_constraint_is_refused():
    target = steppe.Target(
        triples, steppe.Binary(5), interactions=TRIPLES, is_valid=lambda position: position.sum() < 4
    )
    with pytest.raises(RecipeError, match=r"constraint"):
        steppe.chromatic_gibbs().build(target)


@pytest.mark.parametrize("pairs", [[[0, 5]], [[-1, 0]], [[0.5, 1.0]], [0, 1], "ab"])
def test_pairs_that_are_no_pairs_of_sites_are_refused(pairs):
    with pytest.raises(TargetError, match=r"pairs of sites that interact"):
        steppe.Target(triples, steppe.Binary(5), interactions=pairs)


def test_a_conditional_of_the_wrong_shape_is_refused():
    with pytest.raises(TargetError, match=r"`conditional` must return a log-weight per level"):
        steppe.Target(triples, steppe.Binary(5), conditional=lambda position, site: position)


@pytest.mark.parametrize("make", [targets.max_cut, lambda edges: targets.coloring(edges, 3)])
def test_many_colours_in_one_loop_make_the_sweep_that_each_makes_by_itself(make, monkeypatch):
    rng = np.random.default_rng(0)
    edges = np.argwhere(np.triu(rng.random((20, 20)) < 0.3, 1))
    target = make(edges)
    unrolled = steppe.chromatic_gibbs().build(target)
    assert not coloring_of(unrolled).stacks
    monkeypatch.setattr("steppe.kernel.blocks.coloring.MAX_UNROLLED", 1)
    looped = steppe.chromatic_gibbs().build(make(edges))
    stacks, colors = coloring_of(looped).stacks, coloring_of(looped).colors
    assert sum(len(stack.start) for stack in stacks) == len(colors) > len(stacks) > 1
    keys = jax.random.split(jax.random.key(1), 5)
    starts = jax.vmap(target.domain.draw)(keys)
    ends = []
    for sampler in (looped, unrolled):
        state = jax.vmap(sampler.init)(starts, keys)
        state, info = quick_jit(jax.vmap(sampler.step))(keys, state)
        ends.append((state.position, state.log_density, info.num_flips))
    for first, second in zip(*ends, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-6)
    np.testing.assert_allclose(ends[0][1], jax.vmap(target.log_density)(ends[0][0]), rtol=1e-5)
