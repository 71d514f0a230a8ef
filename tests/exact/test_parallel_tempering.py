"""Parallel tempering keeps the product distribution, by enumeration and by the steps it really takes.

False alarms: ten p-values against 1e-6. Seen with 40 000 chains: a total variation of 0.03 of the joint
distribution.
"""

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import steppe
from contract.cases import quick_jit
from exact_targets import polynomial_target
from steppe import targets
from steppe.diagnostics.exact import target_distribution, transition_matrix
from steppe.kernel.blocks.tempering import Replica, TemperedBlock
from steppe.kernel.density import field_terms

BETAS = (0.0, 0.4, 1.0)
FALSE_ALARM = 1e-6
NUM_CHAINS = 40_000
BASE = steppe.dmala(step_size=0.6)
GIBBS_AND_GWG = (steppe.gibbs(scan="random"), steppe.gwg(num_flips=1))


class UnweighedSwaps(TemperedBlock):
    """Swaps neighbours whatever it costs."""

    def swap_log_ratios(self, density, log_density):
        return jnp.zeros(self.num_rungs - 1)


class InvertedSwaps(TemperedBlock):
    """Hands the better state to the hotter replica."""

    def swap_log_ratios(self, density, log_density):
        return -super().swap_log_ratios(density, log_density)


class InvertedLastSwap(TemperedBlock):
    """The same for the last pair only."""

    def swap_log_ratios(self, density, log_density):
        ratios = super().swap_log_ratios(density, log_density)
        return ratios.at[-1].multiply(-1)


class AllPairsAtOnce(TemperedBlock):
    """Decides on even and odd pairs together, each as if the other were not swapped."""

    def is_offered(self, num_rounds, pairs):
        return jnp.ones_like(pairs, bool)


class SwappedStepSizes(TemperedBlock):
    """Gives the step size of the hottest rung to the coldest one."""

    def step(self, keys, density, state, own):
        kind = dataclasses.replace(self, step_scales=self.step_scales[::-1])
        return TemperedBlock.step(kind, keys, density, state, own)


class OddBeforeEven(TemperedBlock):
    """Offers odd pairs in even rounds."""

    def is_offered(self, num_rounds, pairs):
        return ~super().is_offered(num_rounds, pairs)


class ReferenceForgotten(TemperedBlock):
    """Decides on swaps by `U` alone, although rungs have a reference."""

    def heights(self, density, replicas):
        return replicas.chain.log_density


def make_target(num_sites=2):
    return polynomial_target(steppe.Binary(num_sites), 4.0)


def make_recipe(base=BASE, kind=TemperedBlock, reference=None):
    recipe = steppe.parallel_tempering(base=base, inverse_temperatures=BETAS, reference=reference)
    tempered: Any = recipe.blocks[0]
    scales = jnp.array([1.5, 0.8, 1.2])
    block = kind(tempered.block, tempered.inverse_temperatures, scales, tempered.reference)
    return dataclasses.replace(recipe, blocks=(block,))


def log_reference(target, reference):
    """Of every state."""
    if reference is None:
        return np.zeros(target.domain.num_states)
    table = jnp.log(jnp.asarray(reference))
    terms = jax.vmap(lambda position: field_terms(target.domain, table, position))
    return np.asarray(terms(target.domain.enumerate()), float).sum(axis=1)


def distributions(target, reference=None):
    """Of every rung."""
    log_probabilities = np.log(np.float64(target_distribution(target)))
    start = log_reference(target, reference)
    weights = [np.exp(beta * log_probabilities + (1 - beta) * start) for beta in BETAS]
    return [weight / weight.sum() for weight in weights]


def joint_distribution(target, reference=None):
    hot, warm, cold = distributions(target, reference)
    return np.einsum("i,j,k->ijk", hot, warm, cold).ravel()


def swap_matrix(sampler, num_rounds):
    """Of the joint states (hot, warm, cold), from the decisions of the kernel itself."""
    block, domain = sampler.recipe.blocks[0], sampler.target.domain
    states = jax.vmap(sampler.init)(domain.enumerate()).chain
    values = np.asarray(block.heights(sampler.density, Replica(states, ())))
    size = len(values)
    matrix = np.zeros((size**3, size**3))
    is_offered = np.asarray(block.is_offered(jnp.asarray(num_rounds), jnp.arange(2)))
    (pair,) = np.flatnonzero(is_offered)
    for state in itertools.product(range(size), repeat=3):
        log_ratios = block.swap_log_ratios(sampler.density, jnp.asarray(values[list(state)]))
        accepted = float(np.exp(min(float(log_ratios[pair]), 0.0)))
        swapped = list(state)
        swapped[pair], swapped[pair + 1] = state[pair + 1], state[pair]
        here, there = (np.ravel_multi_index(places, (size,) * 3) for places in (state, swapped))
        matrix[here, there] += accepted
        matrix[here, here] += 1 - accepted
    return matrix


def joint_matrix(recipe, base, target, num_rounds=0):
    sampler = recipe.build(target)
    scales, reference = recipe.blocks[0].step_scales, recipe.blocks[0].reference
    within = [
        _move_matrix(_at_rung(base, max(beta, 1e-30), float(scale)), target, beta, reference)
        for beta, scale in zip(BETAS, scales, strict=True)
    ]
    return np.kron(np.kron(within[0], within[1]), within[2]) @ swap_matrix(sampler, num_rounds)


def _at_rung(base, beta, scale):
    steps = {"step_size": base.parameters["step_size"] * scale} if "step_size" in base.parameters else {}
    return base.replace(inverse_temperature=beta, **steps)


def _move_matrix(base, target, beta, reference):
    if reference is None:
        return transition_matrix(base, target)
    field = (1 - beta) * reference
    density = dataclasses.replace(base.build(target, audit=False).density, field=field)
    return np.asarray(base.blocks[0].transition_matrix(density, None))


REFERENCES = {
    "two levels": (make_target, np.array([[0.7, 0.3], [0.2, 0.8]])),
    "one-hot": (
        lambda: polynomial_target(steppe.Categorical(1, 4), 2.0),
        np.array([[0.1, 0.2, 0.3, 0.4]]),
    ),
    "ordered": (lambda: polynomial_target(steppe.Ordinal(1, 4), 2.0), np.array([[0.1, 0.2, 0.3, 0.4]])),
}


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(
    "name", ["two levels", *(pytest.param(n, marks=pytest.mark.slow) for n in REFERENCES)]
)
def test_rungs_with_a_reference_keep_the_densities_between_it_and_the_target(name):
    make, reference = REFERENCES[name]
    target = make()
    recipe = make_recipe(reference=reference)
    distribution = joint_distribution(target, reference)
    matrix = joint_matrix(recipe, BASE, target)
    assert np.abs(matrix.sum(axis=1) - 1).max() <= 1e-12
    assert np.abs(distribution @ matrix - distribution).max() <= 1e-12
    wrong = joint_matrix(make_recipe(kind=ReferenceForgotten, reference=reference), BASE, target)
    assert np.abs(distribution @ wrong - distribution).max() > 1e-4


def test_one_step_with_a_reference_has_the_distribution_of_the_enumerated_matrix():
    make, reference = REFERENCES["two levels"]
    target, recipe = make(), make_recipe(reference=reference)
    start = (1, 2, 3)
    counts = frequencies(recipe.build(target), np.tile(start, (NUM_CHAINS, 1)), 1)
    row = joint_matrix(recipe, BASE, target)[np.ravel_multi_index(start, (4,) * 3)]
    assert p_value(counts, row) >= FALSE_ALARM


@pytest.mark.parametrize("kind", [SwappedStepSizes, OddBeforeEven])
def test_one_step_gate_rejects_what_the_distribution_alone_cannot(kind):
    # Any step size and any order of pairs keeps the distribution; a step is another one all the same.
    target, start = make_target(), (1, 2, 3)
    counts = frequencies(make_recipe(kind=kind).build(target), np.tile(start, (NUM_CHAINS, 1)), 1)
    row = joint_matrix(make_recipe(), BASE, target)[np.ravel_multi_index(start, (4,) * 3)]
    assert p_value(counts, row) < 1e-7


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("num_rounds", [0, 1])
@pytest.mark.parametrize(
    "base",
    [BASE, *(pytest.param(made, marks=pytest.mark.slow) for made in GIBBS_AND_GWG)],
    ids=lambda r: r.name,
)
def test_moves_and_swaps_leave_the_product_distribution_invariant(base, num_rounds):
    target = make_target()
    distribution = joint_distribution(target)
    matrix = joint_matrix(make_recipe(base), base, target, num_rounds)
    assert np.abs(matrix.sum(axis=1) - 1).max() <= 1e-12
    assert np.abs(distribution @ matrix - distribution).max() <= 1e-12


@quick_jit
def steps(sampler, keys, starts, num_steps):
    """State numbers at all rungs after some steps from given ones."""
    domain, block = sampler.target.domain, sampler.recipe.blocks[0]

    def one(key, start):
        states = jax.vmap(sampler.init)(domain.enumerate()[start])
        first = jax.tree.map(lambda leaf: leaf[-1], states)
        memory = jax.vmap(lambda chain: block.block.init(sampler.density, chain))(states.chain)
        stacked = Replica(states.chain, memory)
        replicas = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, block.axis), stacked)
        state = first._replace(memory=(first.memory[0]._replace(replicas=replicas),))
        state = jax.lax.fori_loop(
            0, num_steps, lambda i, s: sampler.step(jax.random.fold_in(key, i), s)[0], state
        )
        ladder = state.memory[0]
        ends = jax.vmap(domain.index, block.axis)(ladder.replicas.chain.position)
        return jnp.zeros_like(ends).at[ladder.rung].set(ends), domain.index(state.position)

    return jax.vmap(one)(keys, starts)


def frequencies(sampler, starts, num_steps, seed=0):
    keys = jax.random.split(jax.random.key(seed), len(starts))
    ends, seen = steps(sampler, keys, jnp.asarray(starts), num_steps)
    assert np.array_equal(ends[:, -1], seen), "what is seen is not the replica at the last rung"
    size = sampler.target.domain.num_states
    numbers = np.ravel_multi_index(np.asarray(ends).T, (size,) * 3)
    return np.bincount(numbers, minlength=size**3)


def p_value(counts, distribution):
    """Of a χ² test; cells that expect fewer than 10 draws are pooled."""
    expected = counts.sum() * distribution
    rare = expected < 10
    seen = np.append(counts[~rare], counts[rare].sum())
    wanted = np.append(expected[~rare], expected[rare].sum())
    keep = wanted > 0
    return scipy.stats.chisquare(seen[keep], wanted[keep] * seen[keep].sum() / wanted[keep].sum()).pvalue


@pytest.mark.parametrize(
    "base", [BASE, pytest.param(GIBBS_AND_GWG[0], marks=pytest.mark.slow)], ids=lambda r: r.name
)
def test_one_step_has_the_distribution_of_the_enumerated_matrix(base):
    target, recipe = make_target(), make_recipe(base)
    start = (1, 2, 3)
    counts = frequencies(recipe.build(target), np.tile(start, (NUM_CHAINS, 1)), 1)
    row = joint_matrix(recipe, base, target)[np.ravel_multi_index(start, (4,) * 3)]
    assert p_value(counts, row) >= FALSE_ALARM


def from_stationarity(kind, num_sites):
    """p-value of the joint distribution after three steps from exact draws of it."""
    target = make_target(num_sites)
    rng = np.random.default_rng(0)
    starts = [rng.choice(len(probs), NUM_CHAINS, p=probs) for probs in distributions(target)]
    counts = frequencies(make_recipe(kind=kind).build(target), np.stack(starts, axis=1), 3)
    return p_value(counts, joint_distribution(target))


@pytest.mark.parametrize("num_sites", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_stationary_chains_keep_the_product_distribution(num_sites):
    assert from_stationarity(TemperedBlock, num_sites) >= FALSE_ALARM


def test_one_step_of_replicas_on_the_last_axis_has_the_distribution_of_the_enumerated_matrix():
    target = targets.ising_graph([[0, 1]], 0.7, 2, field=[0.3, -0.2])
    recipe, start = make_recipe(steppe.chromatic_gibbs()), (1, 2, 3)
    block: Any = recipe.blocks[0]
    assert block.axis == -1
    counts = frequencies(recipe.build(target), np.tile(start, (NUM_CHAINS, 1)), 1)
    row = joint_matrix(recipe, steppe.chromatic_gibbs(), target)[np.ravel_multi_index(start, (4,) * 3)]
    assert p_value(counts, row) >= FALSE_ALARM


@pytest.mark.parametrize("kind", [UnweighedSwaps, InvertedSwaps, InvertedLastSwap, AllPairsAtOnce])
def test_gate_rejects_wrong_swaps(kind):
    assert from_stationarity(kind, 3) < 1e-7


def test_replicas_hold_every_rung_once_and_their_round_trips_are_counted():
    target = make_target(3)
    run = steppe.sample(
        target, make_recipe(), key=jax.random.key(1), num_warmup=0, num_draws=400, adapt=False
    )
    rungs = run.trace.statistic("replica_rung")
    assert np.array_equal(np.sort(rungs, axis=-1), np.broadcast_to(np.arange(3), rungs.shape))
    assert np.array_equal(run.trace.statistic("round_trips"), count_round_trips(rungs))
    assert run.trace.statistic("round_trips")[:, -1].min() > 10
    summary = run.summary()
    ladder: Any = summary.to_dict()["ladder"]
    made = np.diff(run.trace.statistic("round_trips")[:, [0, -1]], axis=1).ravel()
    assert ladder["round_trips"] == made.tolist()
    assert ladder["barrier"] == pytest.approx(2 - sum(ladder["swap_rates"]))
    assert f"3 rungs · Λ = {ladder['barrier']:.1f}" in str(summary)
    assert f"{made.sum()} round trips in all, {made.min()} to {made.max()} a chain" in " ".join(
        str(summary).split()
    )


@pytest.mark.parametrize("kind", [TemperedBlock, InvertedSwaps])
def test_the_index_process_keeps_rungs_uniform_whatever_replicas_hold(kind):
    """Replicas at random rungs with states of these stay so: permutation and cold state, 6 × 4 cells."""
    target, rng = make_target(), np.random.default_rng(1)
    sampler = make_recipe(kind=kind).build(target)
    orders = np.array(list(itertools.permutations(range(3))))
    rung = orders[rng.integers(6, size=NUM_CHAINS)]
    by_rung = np.stack([rng.choice(4, NUM_CHAINS, p=p) for p in distributions(target)], axis=1)
    starts = np.take_along_axis(by_rung, rung, axis=1)
    keys = jax.random.split(jax.random.key(5), NUM_CHAINS)
    ends, seen = walk_indices(sampler, keys, jnp.asarray(starts), jnp.asarray(rung))
    number = (np.asarray(ends)[:, None] == orders).all(axis=2).argmax(axis=1)
    counts = np.bincount(4 * number + np.asarray(seen), minlength=24)
    found = p_value(counts, np.kron(np.full(6, 1 / 6), distributions(target)[-1]))
    assert found >= FALSE_ALARM if kind is TemperedBlock else found < 1e-7


@quick_jit
def walk_indices(sampler, keys, starts, rung):
    """Rungs of the replicas and the cold state after three steps."""
    domain, block = sampler.target.domain, sampler.recipe.blocks[0]

    def one(key, start, rung):
        states = jax.vmap(sampler.init)(domain.enumerate()[start])
        first = jax.tree.map(lambda leaf: leaf[0], states)
        memory = jax.vmap(lambda chain: block.block.init(sampler.density, chain))(states.chain)
        ladder = first.memory[0]._replace(replicas=Replica(states.chain, memory), rung=rung)
        state = first._replace(memory=(ladder,))
        state = jax.lax.fori_loop(0, 3, lambda i, s: sampler.step(jax.random.fold_in(key, i), s)[0], state)
        return state.memory[0].rung, domain.index(state.position)

    return jax.vmap(one)(keys, starts, rung)


def count_round_trips(rungs):
    """Hot, then cold, then hot again: from the recorded rungs, (chain, draw, replica)."""
    num_chains, num_draws, num_replicas = rungs.shape
    counts = np.zeros((num_chains, num_draws), int)
    for chain, replica in itertools.product(range(num_chains), range(num_replicas)):
        came_from = 0
        for draw, rung in enumerate(rungs[chain, :, replica]):
            if rung == 0:
                counts[chain, draw:] += came_from == 2
                came_from = 1
            elif rung == num_replicas - 1 and came_from == 1:
                came_from = 2
    return counts


def test_forbidden_states_are_never_visited_at_any_temperature():
    base = steppe.Target(
        lambda x: jnp.where(jnp.sum(x) > 2, -jnp.inf, jnp.sum(x)), steppe.Binary(4), is_valid=None
    )
    recipe = steppe.parallel_tempering(base=steppe.gibbs(), inverse_temperatures=BETAS)
    run = steppe.sample(base, recipe, key=jax.random.key(0), num_draws=300)
    assert np.isfinite(run.trace.statistic("rung_log_density")).all()


MISTAKES = {
    "one temperature": ({"inverse_temperatures": (1.0,)}, "at least two"),
    "above 1": ({"inverse_temperatures": (1.0, 2.0)}, "increase from 0"),
    "below 0": ({"inverse_temperatures": (-0.1, 1.0)}, "increase from 0"),
    "falling": ({"inverse_temperatures": (1.0, 0.5)}, "increase from 0"),
    "not to 1": ({"inverse_temperatures": (0.3, 0.9)}, "increase from 0"),
    "not numbers": ({"inverse_temperatures": "hot"}, "a sequence"),
    "one rung": ({"num_rungs": 1}, "num_rungs"),
    "too many rungs": ({"num_rungs": 10**7}, "at most 4096"),
    "both": ({"num_rungs": 2, "inverse_temperatures": (0.3, 1.0)}, "or `num_rungs`"),
    "hottest at 1": ({"hottest": 1.0}, "hottest"),
    "hottest below 0": ({"hottest": -0.1}, "hottest"),
    "hottest twice": ({"hottest": 0.1, "inverse_temperatures": (0.3, 1.0)}, "or `hottest`"),
    "unadjusted": ({"base": steppe.dula()}, "adjusted recipe"),
    "coupled": ({"base": steppe.edmala()}, "without center"),
    "reference not between 0 and 1": ({"reference": [0.5, 1.2]}, "must be a distribution"),
    "reference that does not sum to 1": ({"reference": [[0.5, 0.4]]}, "must be a distribution"),
    "reference that forbids states": ({"reference": [0.0, 0.5]}, "must be a distribution"),
    "reference not finite": ({"reference": [np.nan, 0.5]}, "finite"),
    "base without references": ({"base": steppe.gibbs(), "reference": [0.5]}, "takes one"),
    "not a recipe": ({"base": "dmala"}, "must be a recipe"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_bad_composition_is_refused(name):
    arguments, message = MISTAKES[name]
    with pytest.raises(steppe.errors.RecipeError, match=message):
        steppe.parallel_tempering(**arguments)


def test_a_ladder_may_be_an_array_of_jax():
    block: Any = steppe.parallel_tempering(inverse_temperatures=jnp.array([0.0, 0.5, 1.0])).blocks[0]
    np.testing.assert_array_equal(block.inverse_temperatures, [0.0, 0.5, 1.0])


def test_a_reference_must_fit_the_domain():
    recipe = steppe.parallel_tempering(reference=[0.5, 0.5, 0.5])
    with pytest.raises(steppe.errors.CompositionError, match="for 2 sites of 2 levels"):
        recipe.build(make_target())
    permutations = steppe.Target(lambda x: jnp.sum(x[0]), steppe.Permutation(2))
    with pytest.raises(steppe.errors.SteppeError):
        recipe.build(permutations)
