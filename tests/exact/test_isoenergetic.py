"""Isoenergetic cluster moves keep the joint distribution of two replicas, by enumeration and by draws.

False alarms: p-values of the joint distribution of two replicas against 1e-6, three of them. Seen with 40 000
pairs: a total variation of 0.05.
"""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import steppe
from contract.cases import quick_jit
from steppe import targets
from steppe.diagnostics.exact import target_distribution
from steppe.errors import CompositionError, RecipeError
from steppe.kernel.blocks.isoenergetic import IsoenergeticBlock, measure_percolation

FALSE_ALARM = 1e-6
NUM_PAIRS = 40_000
BETAS = (0.0, 0.4, 1.0)
EDGES = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])
WEIGHTS = np.array([1.0, -0.8, 0.6, 0.9, -0.5])


class OneSite(IsoenergeticBlock):
    """Exchanges one site of the cluster, although its bonds reach others that differ."""

    def choose_cluster(self, key, differs):
        clusters = super().choose_cluster(key, differs)
        return clusters & (jnp.cumsum(clusters, axis=0) == 1)


def make_target():
    """Four spins with frustrated bonds and a field."""
    return targets.ising_graph(EDGES, WEIGHTS, 4, field=[0.3, -0.2, 0.1, 0.5])


def make_potts():
    return targets.potts(EDGES[:3] % 3, 3, [0.5, -0.8, 0.3], [0.1, 0.0, -0.2])


def make_sampler(target, kind: type = IsoenergeticBlock):
    recipe = steppe.parallel_tempering(
        base=steppe.chromatic_gibbs(), inverse_temperatures=BETAS, cluster_moves=True
    )
    sampler = recipe.build(target)
    block: Any = sampler.recipe.blocks[0]
    return sampler, kind(block.block, block.bonds)


def enumerate_exchanges(target, edges):
    """Matrix of the move on pairs of states, from its definition: clusters grown site by site."""
    levels = np.asarray(target.domain.to_levels(target.domain.enumerate())).astype(int)
    number = {tuple(row): place for place, row in enumerate(levels)}
    size = len(levels)
    matrix = np.zeros((size**2, size**2))
    for a, b in itertools.product(range(size), repeat=2):
        differs = {site for site in range(levels.shape[1]) if levels[a, site] != levels[b, site]}
        if not differs:
            matrix[a * size + b, a * size + b] = 1
        for seed in differs:
            cluster = {seed}
            while True:
                reached = {int(j) for i, j in [*edges, *edges[:, ::-1]] if i in cluster and j in differs}
                if reached <= cluster:
                    break
                cluster |= reached
            inside = np.isin(np.arange(levels.shape[1]), list(cluster))
            after = [number[tuple(np.where(inside, *pair))] for pair in (levels[[b, a]], levels[[a, b]])]
            matrix[a * size + b, after[0] * size + after[1]] += 1 / len(differs)
    return matrix


def joint_distribution(target, beta):
    weights = np.float64(target_distribution(target)) ** beta
    single = weights / weights.sum()
    return np.kron(single, single)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("make", "edges"), [(make_target, EDGES), (make_potts, EDGES[:3] % 3)])
def test_exchanges_leave_the_joint_distribution_of_two_replicas_invariant(make, edges):
    target = make()
    matrix = enumerate_exchanges(target, edges)
    for beta in (0.4, 1.0):
        joint = joint_distribution(target, beta)
        assert np.abs(joint @ matrix - joint).max() <= 1e-12
        flow = joint[:, None] * matrix
        assert np.abs(flow - flow.T).max() <= 1e-12


@quick_jit
def exchange(block, sampler, keys, first, second):
    """States of both replicas of the last rung after one exchange, from given numbers of states."""
    domain = sampler.target.domain

    def one(key, first, second):
        ladders = []
        for start in (first, second):
            ladder = block.block.init(sampler.density, sampler.init(domain.enumerate()[start]).chain)
            ladders.append(ladder)
        ends = block.exchange(key, sampler.density, *ladders)
        cold = [jnp.take(ladder.replicas.chain.position, -1, axis=block.block.axis) for ladder in ends]
        values = [jnp.take(ladder.replicas.chain.log_density, -1) for ladder in ends]
        return [domain.index(position) for position in cold], jnp.stack(values)

    return jax.vmap(one)(keys, first, second)


def draw_exchanges(kind, target):
    """Pairs of states after an exchange, from exact draws of both."""
    sampler, block = make_sampler(target, kind)
    exact = np.float64(target_distribution(target))
    exact /= exact.sum()
    starts = np.random.default_rng(0).choice(len(exact), (2, NUM_PAIRS), p=exact)
    keys = jax.random.split(jax.random.key(0), NUM_PAIRS)
    (first, second), values = exchange(block, sampler, keys, *map(jnp.asarray, starts))
    heights = np.asarray(jax.vmap(target.log_density)(target.domain.enumerate()))
    before = heights[starts].sum(axis=0)
    ends = np.asarray(first) * len(exact) + np.asarray(second)
    return starts[0] * len(exact) + starts[1], ends, np.asarray(values).sum(axis=1) - before, exact


def p_value(counts, distribution):
    expected = counts.sum() * distribution
    rare = expected < 10
    seen, wanted = (np.append(values[~rare], values[rare].sum()) for values in (counts, expected))
    keep = wanted > 0
    return scipy.stats.chisquare(seen[keep], wanted[keep] * seen[keep].sum() / wanted[keep].sum()).pvalue


def test_exchanges_make_the_moves_of_the_enumerated_matrix_at_equal_log_density():
    target = make_target()
    starts, ends, change, exact = draw_exchanges(IsoenergeticBlock, target)
    assert np.abs(change).max() < 1e-4
    matrix = enumerate_exchanges(target, EDGES)
    assert (matrix[starts, ends] > 0).all()
    commonest = np.bincount(starts[matrix.max(axis=1)[starts] < 0.9]).argmax()
    counts = np.bincount(ends[starts == commonest], minlength=len(matrix))
    assert p_value(counts, matrix[commonest]) >= FALSE_ALARM
    counts = np.bincount(ends, minlength=len(matrix))
    assert p_value(counts, np.kron(exact, exact)) >= FALSE_ALARM


def test_gate_rejects_exchanges_of_less_than_a_cluster():
    _, ends, _, exact = draw_exchanges(OneSite, make_target())
    assert p_value(np.bincount(ends, minlength=len(exact) ** 2), np.kron(exact, exact)) < 1e-7


def test_a_step_of_two_ladders_can_be_traced_and_keeps_shapes():
    recipe = steppe.parallel_tempering(
        base=steppe.chromatic_gibbs(), inverse_temperatures=BETAS, cluster_moves=True
    )
    sampler = recipe.build(make_target())
    start = jax.eval_shape(sampler.init, sampler.target.domain.enumerate()[0])
    state, info = jax.eval_shape(sampler.step, jax.random.key(0), start)
    assert (state.position.shape, state.log_density.shape) == (start.position.shape, ())
    assert info.num_flips.shape == info.num_nonfinite.shape == ()


@pytest.mark.slow
def test_what_is_seen_has_the_distribution_of_the_target():
    """4000 chains, the state after 40 steps; one more p-value."""
    target = make_target()
    recipe = steppe.parallel_tempering(
        base=steppe.chromatic_gibbs(), inverse_temperatures=BETAS, cluster_moves=True
    )
    run = steppe.sample(
        target, recipe, key=jax.random.key(3), num_chains=4000, num_warmup=40, num_draws=1, chain_block=4000
    )
    exact = np.float64(target_distribution(target))
    numbers = np.asarray(jax.vmap(target.domain.index)(jnp.asarray(run.positions[:, 0])))
    assert p_value(np.bincount(numbers, minlength=16), exact / exact.sum()) >= FALSE_ALARM


@pytest.mark.slow
def test_a_ladder_of_two_is_adapted_and_counts_its_evaluations():
    target = targets.spin_glass((8, 8), scale=2.0)
    recipe = steppe.parallel_tempering(base=steppe.chromatic_gibbs(), num_rungs=4, cluster_moves=True)
    tuned = steppe.tune_ladder(target, recipe, key=jax.random.key(0), num_steps=16, num_chains=2)
    sampler = tuned.recipe.build(target)
    assert len(tuned.inverse_temperatures) == 4
    assert sampler.evaluations_per_step == 2 * (4 + 4)


def test_percolating_clusters_are_refused_and_planar_ones_are_not():
    recipe = steppe.parallel_tempering(
        base=steppe.chromatic_gibbs(), inverse_temperatures=BETAS, cluster_moves=True
    )
    with pytest.raises(CompositionError, match="percolate"):
        recipe.build(targets.ising_lattice((5, 5, 5), 0.3))
    flat = targets.ising_lattice((12, 12), 0.3)
    assert flat.interactions is not None
    assert measure_percolation(flat.interactions, 144, 2) < 0.5
    recipe.build(flat)


def test_targets_that_are_no_sums_over_pairs_are_refused():
    recipe = steppe.parallel_tempering(inverse_temperatures=BETAS, cluster_moves=True)
    with pytest.raises(CompositionError, match="pairs of sites"):
        recipe.build(steppe.Target(jnp.prod, steppe.Binary(4)))
    with pytest.raises(RecipeError, match="True or False"):
        steppe.parallel_tempering(cluster_moves=1)  # pyright: ignore[reportArgumentType]
