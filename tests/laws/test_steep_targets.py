"""Where logits are in the hundreds: nothing overflows, and log-ratios are those of the plain formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import oracle
import steppe
from contract.cases import chain_keys, one_chain, quick_jit
from exact_targets import DOMAINS, arrays_of, cubic_log_density, polynomial_target
from steppe.kernel.keys import Keys
from twins import twin_of

STEP, CENTER_STEP, VARIANCE = 1.0, 0.3, 0.5
RECIPES = {
    "dmala": steppe.dmala(step_size=STEP),
    "edmala": steppe.edmala(step_size=STEP, center_step_size=CENTER_STEP, coupling_variance=VARIANCE),
    "edmala_glu": steppe.edmala_glu(step_size=STEP, coupling_variance=VARIANCE),
}
NUM_CHAINS = 64
ROUNDINGS = 2


def steep_target(domain: steppe.Domain) -> steppe.Target:
    """A cubic with differences of thousands, whose arrays are the same numbers in both precisions."""
    arrays = arrays_of(polynomial_target(domain, 3000.0))
    arrays = [np.asarray(array, np.float32).astype(np.float64) for array in arrays]
    return steppe.Target(Partial(cubic_log_density, *arrays), domain)


@quick_jit
def proposals(sampler, keys, positions):
    """State, proposed state and log-ratio of the deciding block at many states, and the logits there."""
    block, density = sampler.recipe.blocks[-1], sampler.density

    position_proposal = getattr(block.proposal, "position", block.proposal)
    exists = density.domain.level_mask if len(density.domain.shape) == 2 else 1.0

    def one(key, position):
        state = sampler.init(position).chain
        if state.center is not None:
            state = state._replace(center=position + 0.5 * exists)
        forward = block.proposal.at(density, state)
        value = forward.sample(Keys.of_step(key))
        proposed = block.proposal.apply(density, state, value)
        log_ratio = block.acceptance.log_ratio(density, block.proposal, forward, value, state, proposed)
        logits = [position_proposal.at(density, end).logits for end in (state, proposed)]
        return state, proposed, log_ratio, jnp.stack(logits)

    return jax.vmap(one)(keys, positions)


def oracle_log_ratio(name, twin, state, proposed):
    """The same ratio by loops in double precision."""
    ends = np.asarray(state.position, float), np.asarray(proposed.position, float)
    if name == "dmala":
        return oracle.dmala_log_ratio(twin.domain, *ends, twin.log_density, twin.gradient, step_size=STEP)
    centers = np.asarray(state.center, float), np.asarray(proposed.center, float)
    numbers = {"step_size": STEP, "coupling_variance": float(jnp.asarray(VARIANCE))}
    if name == "edmala_glu":
        return oracle.glu_log_ratio(
            twin.domain, *ends, centers[0], twin.log_density, twin.gradient, **numbers
        )
    pairs = ends[0], centers[0], ends[1], centers[1]
    return oracle.edmala_log_ratio(
        twin.domain,
        *pairs,
        twin.log_density,
        twin.gradient,
        center_step_size=float(jnp.asarray(CENTER_STEP)),
        **numbers,
    )


def check_log_ratios(name, domain, rounding):
    target = steep_target(DOMAINS[domain])
    sampler, twin = RECIPES[name].build(target), twin_of(target)
    positions = target.domain.draw(jax.random.key(0), (NUM_CHAINS,))
    states, proposed, log_ratios, logits = proposals(sampler, chain_keys(1, NUM_CHAINS), positions)
    logits = np.where(np.isfinite(logits), np.abs(logits), 0).astype(float)
    assert logits.max() > 200
    assert np.abs(log_ratios).max() > 200
    for chain in range(NUM_CHAINS):
        old, new = at_chain(chain, states), at_chain(chain, proposed)
        # Every term of the ratio is right to a few units in its last place, relative to what it is made of:
        # the log-densities, the logits, and the products inside them.
        size = abs(old.log_density) + abs(new.log_density) + logits[chain].sum() + 10
        error = abs(log_ratios[chain] - oracle_log_ratio(name, twin, old, new))
        assert error <= ROUNDINGS * rounding * size


def at_chain(chain, states):
    return jax.tree.map(lambda leaf: np.asarray(leaf[chain], float), states)


@pytest.mark.parametrize(
    ("name", "domain"),
    [
        pytest.param("dmala", "spin", marks=pytest.mark.slow),
        ("dmala", "ragged"),
        pytest.param("edmala", "ragged", marks=pytest.mark.slow),
        ("edmala_glu", "spin"),
    ],
)
def test_log_ratio_of_a_steep_target_is_right_in_single_precision(name, domain):
    check_log_ratios(name, domain, np.finfo(np.float32).eps)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(
    ("name", "domain"), [("edmala", "spin"), pytest.param("edmala_glu", "ragged", marks=pytest.mark.slow)]
)
def test_log_ratio_of_a_steep_target_is_right_in_double_precision(name, domain):
    check_log_ratios(name, domain, np.finfo(np.float64).eps)


@quick_jit
def run(sampler, keys, positions):
    return jax.vmap(lambda key, position: one_chain(sampler, key, position, 100))(keys, positions)


@pytest.mark.parametrize(
    ("name", "domain"),
    [
        pytest.param("dmala", "ragged", marks=pytest.mark.slow),
        ("edmala", "spin"),
        pytest.param("edmala_glu", "ordinal", marks=pytest.mark.slow),
    ],
)
def test_chain_on_a_steep_target_stays_finite(name, domain):
    target = steep_target(DOMAINS[domain])
    positions = target.domain.draw(jax.random.key(0), (NUM_CHAINS,))
    _, states, infos = run(RECIPES[name].build(target), chain_keys(1, NUM_CHAINS), positions)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(states))
    assert np.isfinite(infos.acceptance_rate).all()
    assert np.sum(infos.num_nonfinite) == 0
    assert np.sum(infos.num_flips) > 0
