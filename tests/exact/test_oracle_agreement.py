"""Log-probabilities, ratios, center distributions and transition matrices are those of the NumPy oracle.

All recipes on one domain are one compiled program, and both steepnesses of a target share it, so recipes
and steepnesses are loops inside the tests.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import oracle
import steppe
from exact_targets import DOMAIN_CASES, target_named
from steppe.diagnostics.exact import transition_matrix
from steppe.kernel.proposals.gibbs_with_gradients import Path
from steppe.kernel.types import ChainState
from twins import Twin, both_steepnesses, oracle_domain, quick_jit, twin_of

pytestmark = [pytest.mark.usefixtures("float64"), pytest.mark.parametrize("domain", DOMAIN_CASES)]

LOG_TOLERANCE = 1e-10
CENTER_TOLERANCE = 1e-12
MATRIX_TOLERANCE = 1e-12
NUM_PAIRS = 12

STEP_SIZE, COUPLING_VARIANCE, CENTER_STEP_SIZE, PERSISTENCE = 0.9, 0.5, 0.3, 0.6
STEP = {"step_size": STEP_SIZE}
COUPLED = STEP | {"coupling_variance": COUPLING_VARIANCE}
JOINT = COUPLED | {"center_step_size": CENTER_STEP_SIZE}


class Pair(NamedTuple):
    """A state and a proposal from it; as a batch, one row each per pair."""

    position: np.ndarray
    center: np.ndarray | None
    proposed: np.ndarray
    proposed_center: np.ndarray


def random_pairs(domain: steppe.Domain, seed: int) -> Pair:
    rng = np.random.default_rng(seed)
    positions = np.asarray(domain.enumerate())
    position, proposed = positions[rng.integers(len(positions), size=(2, NUM_PAIRS))]
    mask = domain.level_mask if len(domain.shape) == 2 else 1.0
    shifts = 0.8 * mask * rng.normal(size=(2, NUM_PAIRS, *domain.shape))
    return Pair(position, position + shifts[0], proposed, proposed + shifts[1])


def rows(pairs: Pair) -> list[Pair]:
    return [Pair(*row) for row in zip(*pairs, strict=True)]


def assert_columns_agree(name, found, expected_rows, tolerance=LOG_TOLERANCE):
    for column, expected in zip(found, zip(*expected_rows, strict=True), strict=True):
        np.testing.assert_allclose(column, np.array(expected), rtol=0, atol=tolerance, err_msg=name)


# ---- log-probabilities and acceptance ratios ----------------------------------------------------------


@quick_jit
def engine_ratios(samplers, states_and_values):
    """Per sampler: forward and backward log q by proposed variable, gain in log-joint, log ratio."""

    def ratio(sampler, position, center, value):
        density, block = sampler.density, sampler.recipe.blocks[-1]
        proposal = block.proposal
        old = density.evaluate(position, center)
        new = proposal.apply(density, old, value)
        forward, backward = (proposal.at(density, state) for state in (old, new))
        couplings = [jnp.sum(density.coupling_terms(state)) for state in (new, old)]
        return (
            jnp.stack([jnp.sum(terms) for terms in forward.log_prob_terms(value)]),
            jnp.stack([jnp.sum(terms) for terms in backward.log_prob_terms(proposal.inverse(old, value))]),
            density.change(new, old) + couplings[0] - couplings[1],
            block.acceptance.log_ratio(density, proposal, forward, value, old, new),
        )

    rows = zip(samplers, states_and_values, strict=True)
    return [jax.vmap(partial(ratio, sampler))(*row) for sampler, row in rows]


def uncoupled_ratio(twin: Twin, pair: Pair):
    domain, log_density, gradient = twin
    fixed = (gradient, None, STEP_SIZE, None)
    return (
        [oracle.langevin_log_q(domain, pair.position, *fixed, pair.proposed)],
        [oracle.langevin_log_q(domain, pair.proposed, *fixed, pair.position)],
        log_density(pair.proposed) - log_density(pair.position),
        oracle.dmala_log_ratio(domain, pair.position, pair.proposed, log_density, gradient, **STEP),
    )


def log_joint(twin: Twin, position, center):
    return oracle.log_joint(twin.domain, twin.log_density, position, center, COUPLING_VARIANCE)


def conditional_ratio(twin: Twin, pair: Pair, exact: bool):
    """The same for a move of the position given the center."""
    domain, log_density, gradient = twin
    old, center, new, _ = pair
    fixed = (gradient, center, STEP_SIZE, COUPLING_VARIANCE)
    return (
        [oracle.langevin_log_q(domain, old, *fixed, new, exact)],
        [oracle.langevin_log_q(domain, new, *fixed, old, exact)],
        log_joint(twin, new, center) - log_joint(twin, old, center),
        oracle.glu_log_ratio(
            domain, old, new, center, log_density, gradient, **COUPLED, exact_coupling=exact
        ),
    )


def joint_ratio(twin: Twin, pair: Pair, exact: bool):
    """The same for the joint move of Algorithm 1: its five terms one by one, and their sum."""
    domain, log_density, gradient = twin
    old, new = pair[:2], pair[2:]

    def log_q(start, end):
        x, center = start
        fixed = (gradient, center, STEP_SIZE, COUPLING_VARIANCE)
        return [
            oracle.langevin_log_q(domain, x, *fixed, end[0], exact),
            oracle.center_langevin_log_q(
                domain, start[0], start[1], end[1], CENTER_STEP_SIZE, COUPLING_VARIANCE
            ),
        ]

    return (
        log_q(old, new),
        log_q(new, old),
        log_joint(twin, *new) - log_joint(twin, *old),
        oracle.edmala_log_ratio(domain, *old, *new, log_density, gradient, **JOINT, exact_coupling=exact),
    )


def langevin_cases(pairs: Pair):
    """Name, recipe, states and proposed values, and the oracle's row for one pair."""
    given_center = (pairs.position, pairs.center, pairs.proposed)
    jointly = (pairs.position, pairs.center, (pairs.proposed, pairs.proposed_center))
    yield "dmala", steppe.dmala(**STEP), (pairs.position, None, pairs.proposed), uncoupled_ratio
    for form in ("linear", "exact"):
        option, exact = {"coupling_form": form}, {"exact": form == "exact"}
        glu, joint = steppe.edmala_glu(**COUPLED, **option), steppe.edmala(**JOINT, **option)
        yield f"edmala_glu, {form}", glu, given_center, partial(conditional_ratio, **exact)
        yield f"edmala, {form}", joint, jointly, partial(joint_ratio, **exact)
    ou = steppe.edmala_ou(**COUPLED, persistence=PERSISTENCE)
    yield "edmala_ou", ou, given_center, partial(conditional_ratio, exact=False)


def test_langevin_proposals_and_every_term_of_their_ratios_are_the_oracles(domain):
    for target in both_steepnesses(domain):
        pairs, twin = random_pairs(target.domain, seed=1), twin_of(target)
        names, recipes, given, expected = zip(*langevin_cases(pairs), strict=True)
        found = engine_ratios([recipe.build(target) for recipe in recipes], given)
        for name, columns, row in zip(names, found, expected, strict=True):
            assert_columns_agree(name, columns, [row(twin, pair) for pair in rows(pairs)])


def random_path(domain: steppe.Domain, levels: np.ndarray, num_flips: int, rng) -> Path:
    """Distinct sites in random order, each with a level other than its own."""
    sites = rng.permutation(domain.num_sites)[:num_flips]
    counts = np.asarray(domain.num_levels)[sites]
    return Path(sites, (levels[sites] + rng.integers(1, counts)) % counts, levels[sites])


def path_ratio(twin: Twin, position, path: Path):
    moves = list(zip(path.sites, path.levels, strict=True))
    undo = list(zip(path.sites[::-1], path.old_levels[::-1], strict=True))
    end = oracle.set_levels(twin.domain, position, path.sites, path.levels)
    return (
        [oracle.gwg_path_log_prob(twin.domain, position, twin.gradient, moves)],
        [oracle.gwg_path_log_prob(twin.domain, end, twin.gradient, undo)],
        twin.log_density(end) - twin.log_density(position),
        oracle.gwg_log_ratio(twin.domain, position, twin.log_density, twin.gradient, moves),
    )


def test_gradient_picks_and_their_ratios_are_the_oracles(domain):
    nums = (1, 2)
    for target in both_steepnesses(domain):
        rng = np.random.default_rng(4)
        positions = random_pairs(target.domain, seed=4).position
        levels = np.asarray(target.domain.to_levels(positions)).astype(int)
        paths = [[random_path(target.domain, row, num, rng) for row in levels] for num in nums]
        stacked = [jax.tree.map(lambda *leaves: jnp.asarray(leaves), *some) for some in paths]
        samplers = [steppe.gwg(num_flips=num).build(target) for num in nums]
        found = engine_ratios(samplers, [(positions, None, path) for path in stacked])
        for num, columns, some in zip(nums, found, paths, strict=True):
            expected = list(map(partial(path_ratio, twin_of(target)), positions, some))
            assert_columns_agree(f"gwg-{num}", columns, expected)


@quick_jit
def engine_center_distributions(samplers, positions, centers):
    def distribution(sampler, position, center):
        proposal = sampler.recipe.blocks[0].proposal
        proposal = getattr(proposal, "center", proposal)  # the joint move has a proposal for each
        found = proposal.at(sampler.density, ChainState(position, center, jnp.zeros(())))
        return found.mean, found.variance

    return [jax.vmap(partial(distribution, sampler))(positions, centers) for sampler in samplers]


def test_center_means_and_variances_are_the_oracles(domain):
    target = target_named(domain, "smooth")
    pairs = random_pairs(target.domain, seed=5)
    recipes = (
        steppe.edmala(**JOINT),
        steppe.edmala_glu(**COUPLED),
        steppe.edmala_ou(**COUPLED, persistence=PERSISTENCE),
    )
    samplers = [recipe.build(target) for recipe in recipes]
    found = engine_center_distributions(samplers, pairs.position, pairs.center)
    space, η = oracle_domain(target.domain), COUPLING_VARIANCE

    def langevin(pair):
        mean = oracle.center_langevin_mean(space, pair.position, pair.center, CENTER_STEP_SIZE, η)
        return mean, CENTER_STEP_SIZE

    distributions = (
        langevin,
        lambda pair: oracle.exact_center_mean_var(space, [pair.position], η),
        lambda pair: oracle.ou_mean_var(space, pair.position, pair.center, η, PERSISTENCE),
    )
    for recipe, columns, distribution in zip(recipes, found, distributions, strict=True):
        assert_columns_agree(
            recipe.name, columns, [distribution(pair) for pair in rows(pairs)], CENTER_TOLERANCE
        )


# ---- transition matrices ------------------------------------------------------------------------------


def block_matrix(size):
    return lambda t: oracle.block_gibbs_matrix(t.domain, t.log_density, oracle.blocks_of_size(t.domain, size))


def ball_matrix(size, radius):
    return lambda t: oracle.hamming_ball_matrix(
        t.domain, t.log_density, oracle.blocks_of_size(t.domain, size), radius
    )


MATRICES = {
    "dmala": (steppe.dmala(**STEP), lambda t: oracle.dmala_matrix(*t, **STEP)),
    "gibbs": (steppe.gibbs(), lambda t: oracle.gibbs_matrix(*t[:2])),
    "gwg-1": (steppe.gwg(num_flips=1), lambda t: oracle.gwg_matrix(*t, num_moves=1)),
    "gwg-2": (steppe.gwg(num_flips=2), lambda t: oracle.gwg_matrix(*t, num_moves=2)),
    "block gibbs-2": (steppe.block_gibbs(block_size=2), block_matrix(2)),
    "hamming ball-2-1": (steppe.hamming_ball(block_size=2, radius=1), ball_matrix(2, 1)),
}


@pytest.mark.parametrize("name", MATRICES)
def test_transition_matrix_is_the_oracles(name, domain):
    recipe, oracle_matrix = MATRICES[name]
    target = target_named(domain, "smooth")
    found, expected = transition_matrix(recipe, target), oracle_matrix(twin_of(target))
    np.testing.assert_allclose(found, expected, rtol=0, atol=MATRIX_TOLERANCE)
