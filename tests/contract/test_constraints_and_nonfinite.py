"""States that are not allowed, or where the log-density breaks, never enter a chain."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import steppe
from contract.cases import one_chain, quick_jit, transition_matrix
from exact_targets import Cubic, arrays_of, cubic_log_density, polynomial_target
from steppe.diagnostics.exact import target_distribution
from steppe.samplers import ALL_RECIPES

NUM_CHAINS, NUM_STEPS = 16, 60
DOMAINS = {"binary": steppe.Binary(4), "ragged": steppe.Categorical(3, [2, 3, 4])}
SMALL = {"hamming_ball": steppe.hamming_ball(block_size=3, radius=1)}
RECIPES = {name: SMALL.get(name) or make() for name, make in ALL_RECIPES.items()}
RECIPES |= {"edmala": steppe.edmala(center_step_size=0.1)}
WITHOUT_GRADIENT = ("gibbs", "block_gibbs", "hamming_ball")


# Moves must be frequent and the start must be a state that stays allowed.
BIG_STEP = 1.5
START = 0


def broken_target(domain, *, values=None, slopes=None, is_valid=None) -> steppe.Target:
    """A cubic whose values and slopes have something added at some states, by tables over all states.

    The tables are leaves, so that all kinds of defect share one compilation.
    """
    nothing = np.zeros(domain.num_states)
    tables = {
        "weights": index_weights(domain),
        "values": nothing if values is None else values,
        "slopes": nothing if slopes is None else slopes,
    }
    tables = {name: jnp.asarray(table, jnp.result_type(float)) for name, table in tables.items()}
    tables["is_valid"] = jnp.asarray(nothing == 0 if is_valid is None else is_valid)
    cubic = arrays_of(polynomial_target(domain, 1.0))
    return steppe.Target(
        Partial(_log_density, cubic, tables),
        domain,
        value_and_grad=Partial(_value_and_grad, cubic, tables),
        is_valid=Partial(_is_allowed, tables),
    )


def index_weights(domain) -> np.ndarray:
    """Weights whose product with a flat position is the row of the position in `domain.enumerate()`."""
    strides = np.append(np.cumprod(domain.num_levels[:0:-1])[::-1], 1)
    return np.outer(strides, np.arange(domain.max_levels)).ravel() if len(domain.shape) == 2 else strides


def _index(tables, position):
    return jnp.rint(position.ravel() @ tables["weights"]).astype(jnp.int32)


def _log_density(cubic: Cubic, tables, position):
    return cubic_log_density(*cubic, position) + tables["values"][_index(tables, position)]


def _value_and_grad(cubic, tables, position):
    value, gradient = jax.value_and_grad(cubic_log_density, argnums=3)(*cubic, position)
    index = _index(tables, position)
    return value + tables["values"][index], gradient + tables["slopes"][index]


def _is_allowed(tables, position):
    return tables["is_valid"][_index(tables, position)]


@quick_jit
def run_chains(sampler, keys, position):
    return jax.vmap(lambda key: one_chain(sampler, key, position, NUM_STEPS))(keys)


def run(name, target):
    recipe = RECIPES[name]
    if "step_size" in recipe.parameters:
        recipe = recipe.replace(step_size=BIG_STEP * target.domain.squared_unit)
    sampler = recipe.build(target, audit=False)
    keys = jax.random.split(jax.random.key(2), NUM_CHAINS)
    return run_chains(sampler, keys, target.domain.enumerate()[START])


def visited(target, states) -> np.ndarray:
    """How often each state of the domain was visited, by any chain or replica."""
    flat = np.asarray(states.position).reshape(-1, np.prod(target.domain.shape))
    indices = np.rint(flat @ index_weights(target.domain)).astype(int)
    return np.bincount(indices, minlength=target.domain.num_states)


def at_states(domain, states, value) -> np.ndarray:
    table = np.zeros(domain.num_states)
    table[list(states)] = value
    return table


# The others are made of the same components.
FAST = [
    "dula",
    "dmala",
    "edmala",
    "edmala_glu",
    "gibbs",
    "hamming_ball",
    "gwg",
    "robust_ensemble",
    "roughness_tilted",
]


def case(name, *others):
    return pytest.param(name, *others, marks=[pytest.mark.slow] * (name not in FAST))


RESTRICTED = [case(name, "binary") for name in RECIPES]
RESTRICTED += [
    pytest.param(name, "ragged", marks=pytest.mark.slow) for name in ("edmala", "gwg", "hamming_ball")
]


@pytest.mark.parametrize(("name", "domain"), RESTRICTED)
def test_invalid_states_never_enter_and_are_no_defect(domain, name):
    domain = DOMAINS[domain]
    forbidden = np.arange(domain.num_states) % 3 == 2
    by_constraint = broken_target(domain, is_valid=~forbidden)
    by_value = broken_target(domain, values=np.where(forbidden, -np.inf, 0.0))
    for target in (by_constraint, by_value):
        _, states, infos = run(name, target)
        counts = visited(target, states)
        assert counts[forbidden].sum() == 0
        assert np.count_nonzero(counts[~forbidden]) > 3
        assert np.sum(infos.num_nonfinite) == 0


DEFECTS = {
    "NaN log-density": {"values": np.nan},
    "infinite log-density": {"values": np.inf},
    "NaN gradient": {"slopes": np.nan},
    "infinite gradient": {"slopes": -np.inf},
}
MEETINGS = [
    case(name, defect)
    for name in RECIPES
    for defect in DEFECTS
    if "gradient" not in defect or name not in WITHOUT_GRADIENT
]


@pytest.mark.parametrize(("name", "defect"), MEETINGS)
def test_broken_states_are_rejected_and_counted_and_other_chains_are_untouched(name, defect):
    domain = DOMAINS["binary"]
    broken = [9]
    tables = {table: at_states(domain, broken, value) for table, value in DEFECTS[defect].items()}
    _, clean, _ = run(name, broken_target(domain))
    _, states, infos = run(name, broken_target(domain, **tables))
    assert visited(broken_target(domain), states)[broken].sum() == 0
    counted = np.cumsum(np.asarray(infos.num_nonfinite), axis=1)
    before = counted == 0
    assert np.any(before.any(axis=0) & ~before.all(axis=0))  # some chains ran on beside one that had met it
    # A chain is the clean one bit for bit until it meets the state itself.
    same = jax.tree.map(
        lambda a, b: np.array_equal(np.asarray(a)[before], np.asarray(b)[before]), states, clean
    )
    assert jax.tree.all(same)


@pytest.mark.parametrize("domain", ["binary", pytest.param("ragged", marks=pytest.mark.slow)])
def test_joint_rejection_leaves_the_center_untouched(domain):
    domain = DOMAINS[domain]
    target = broken_target(domain, is_valid=np.arange(domain.num_states) % 3 != 2)
    start, states, infos = run("edmala", target)
    before = np.concatenate([start.center[:, None], states.center[:, :-1]], axis=1)
    moved = (np.asarray(states.center) != before).any(axis=tuple(range(2, before.ndim)))
    is_accepted = np.asarray(infos.is_accepted)
    np.testing.assert_array_equal(moved, is_accepted)
    assert np.sum(np.asarray(infos.acceptance_rate) == 0) > 10  # rejected for leaving the support


EXACT = {
    "dmala": steppe.dmala(step_size=1.0),
    "edmala_glu": steppe.edmala_glu(step_size=1.0, coupling_variance=0.7),
    "gwg": steppe.gwg(),
    "gibbs": steppe.gibbs(),
    "block_gibbs": steppe.block_gibbs(block_size=2),
    "hamming_ball": steppe.hamming_ball(block_size=3, radius=1),
}


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", [case(name) for name in EXACT])
def test_distribution_restricted_to_valid_states_is_left_invariant(name):
    domain = DOMAINS["binary"]
    is_valid = np.arange(domain.num_states) % 3 != 2
    target = broken_target(domain, is_valid=is_valid)
    center = jnp.full(domain.shape, 0.3) if name == "edmala_glu" else None
    matrix = transition_matrix(EXACT[name], target, center=center)[np.ix_(is_valid, is_valid)]
    distribution = target_distribution(target)[is_valid]
    if center is not None:
        squared = np.sum((np.asarray(domain.enumerate())[is_valid] - 0.3) ** 2, axis=1)
        distribution = distribution * np.exp(-squared / (2 * 0.7))
        distribution /= distribution.sum()
    flow = distribution[:, None] * matrix
    assert np.abs(matrix.sum(axis=1) - 1).max() < 1e-13  # nothing leaves the valid states
    assert np.abs(flow - flow.T).max() < 1e-13
    assert target_distribution(target)[~is_valid].sum() == 0
