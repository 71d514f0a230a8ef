"""Walks over the paper's eight cities: adjusted samplers, and the acceptance as the authors' code has it.

A tour is kept as one integer, its cities as digits in base 8.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.compiling import quick_jit
from steppe.kernel.compose import Recipe
from steppe.kernel.sampler import Sampler
from steppe.kernel.types import SamplerState, StepInfo
from steppe.run.simulate import simulate
from steppe.targets.tsp import tsp_paper
from steppe.targets.tsp_bits import TourBits
from steppe_edlp.tsp.enumeration import enumerate_costs

NUM_CITIES = 8
DIGITS = NUM_CITIES ** np.arange(NUM_CITIES)[::-1]


class Walk(NamedTuple):
    """What chains did, chain × step: tours as codes, and the fraction of steps that changed the tour."""

    codes: np.ndarray
    moves: np.ndarray


def unpack_tours(codes: np.ndarray) -> np.ndarray:
    """Cities 0 … 7 in the order they are visited, on a new last axis."""
    return np.asarray(codes)[..., None] // DIGITS % NUM_CITIES


def find_costs(codes: np.ndarray) -> np.ndarray:
    """Costs of tours, looked up among all of them."""
    exact = enumerate_costs()
    return exact.costs[np.searchsorted(exact.tours @ DIGITS, codes)]  # enumerated in increasing order


def make_keys(seeds: Sequence[int], chains_per_seed: int = 1) -> Array:
    """Keys of chains, seed by seed; that of a chain does not depend on how many others there are."""

    def make_of_seed(seed: Array) -> Array:
        return jax.vmap(partial(jax.random.fold_in, jax.random.key(seed)))(jnp.arange(chains_per_seed))

    return jax.vmap(make_of_seed)(jnp.asarray(seeds)).reshape(-1)


def walk(recipe: Recipe, starts: np.ndarray, keys: Array, num_steps: int) -> Walk:
    """Run one chain per start with a recipe that is adjusted as it should be, or not at all.

    Parameters
    ----------
    recipe
        A sampler of bits, or of permutations.
    starts
        Tours, one per chain.
    keys
        Keys, one per chain.
    num_steps
        Steps, all of which are kept.
    """
    is_of_permutations = recipe.name.endswith("permutation")
    target: Any = tsp_paper("permutation" if is_of_permutations else "bits")
    sampler = recipe.build(target, audit=False)
    positions = jnp.stack([target.position(tour) for tour in starts])
    codes, moved = _steps(sampler, positions, keys, num_steps)
    return _unpack(target, codes, moved, is_of_permutations)


def walk_as_coded(recipe: Recipe, starts: np.ndarray, keys: Array, num_steps: int) -> Walk:
    """Run chains with one decision per city instead of one per tour, as the authors' code does.

    The code keeps a tour as a table of 8 cities × 3 bits and its sampler takes the rows for a batch of
    chains. So eight decisions are made, each from the change in cost of the whole tour and the proposal
    probabilities of three bits; accepted and kept rows are mixed, and a mixture that is no tour is dropped.

    Parameters
    ----------
    recipe, starts, keys, num_steps
        As in `walk`; the recipe gives the numbers.
    """
    target: Any = tsp_paper("bits")
    positions = jnp.stack([target.position(tour) for tour in starts])
    numbers = recipe.build(target, audit=False).parameters
    codes, moved = _steps_as_coded(target, numbers, positions, keys, num_steps, recipe.is_adjusted)
    return _unpack(target, codes, moved, False)


def _unpack(target: Any, codes: Array, moved: Array, is_of_permutations: bool) -> Walk:
    found = np.asarray(codes).T
    if not is_of_permutations:  # digits are corners of the cube; name them by their cities
        cities = np.asarray(target.city_of_corner)
        found = sum(cities[found // power % NUM_CITIES] * power for power in DIGITS)
    return Walk(np.asarray(found, np.int64), np.asarray(moved, float))


@partial(quick_jit, static_argnames="num_steps")
def _steps(sampler: Sampler, positions: Array, keys: Array, num_steps: int) -> tuple[Array, Array]:
    def look(_: Sampler, state: SamplerState, info: StepInfo) -> tuple[Array, Array]:
        return _code(sampler, state.position), info.num_flips > 0

    states = jax.vmap(sampler.init)(positions, keys)
    codes, moved = simulate(sampler, keys, states, num_steps, observe=look).observed
    return codes, moved.mean(axis=0)


def _code(sampler: Sampler, positions: Array) -> Array:
    target = sampler.target
    digits = target.corners(positions) if isinstance(target, TourBits) else positions.astype(jnp.int32)
    return digits @ jnp.asarray(DIGITS, jnp.int32)


@partial(quick_jit, static_argnames=("num_steps", "is_adjusted"))
def _steps_as_coded(
    target: TourBits,
    numbers: dict[str, Array],
    positions: Array,
    keys: Array,
    num_steps: int,
    is_adjusted: bool,
) -> tuple[Array, Array]:
    one = partial(_step_as_coded, target, numbers, is_adjusted)

    def step(states: Any, index: Array) -> tuple[Any, tuple[Array, Array]]:
        now = jax.vmap(lambda key: jax.random.fold_in(key, index))(keys)
        new = jax.vmap(one)(now, *states)
        codes = target.corners(new[0]) @ jnp.asarray(DIGITS, jnp.int32)
        return new, (codes, jnp.any(new[0] != states[0], axis=-1))

    _, (codes, moved) = jax.lax.scan(step, (positions, positions), jnp.arange(num_steps))
    return codes, moved.mean(axis=0)


def _step_as_coded(
    target: TourBits, numbers: dict[str, Array], is_adjusted: bool, key: Array, theta: Array, center: Array
) -> tuple[Array, Array]:
    """Notation: paper eq. (8) and Algorithm 1; `rows` sums over the three bits of a city."""
    key_flips, key_center, key_accept = jax.random.split(key, 3)
    alpha, stiffness = numbers["step_size"], 1 / numbers.get("coupling_variance", jnp.inf)
    drift = 0.5 * numbers.get("center_step_size", jnp.zeros(())) * stiffness
    spread = jnp.sqrt(numbers.get("center_step_size", jnp.zeros(())))

    def logits(theta: Array, center: Array) -> tuple[Array, Array]:
        value, slope = target.value_and_grad(theta)
        slope = slope - (theta - center) * stiffness
        return value, 0.5 * (1 - 2 * theta) * slope - 0.5 / alpha

    def rows(terms: Array) -> Array:
        return terms.reshape(NUM_CITIES, -1).sum(axis=-1)

    value, z = logits(theta, center)
    flips = jax.random.uniform(key_flips, theta.shape) < jax.nn.sigmoid(z)
    new = jnp.where(flips, 1 - theta, theta)
    new_center = center + drift * (theta - center) + spread * jax.random.normal(key_center, theta.shape)
    is_tour = target.is_valid(new)
    new, new_center = jnp.where(is_tour, new, theta), jnp.where(is_tour, new_center, center)
    if not is_adjusted:
        return new, new_center
    new_value, new_z = logits(new, new_center)
    log_ratio = new_value - value + rows(_log_flips(flips, new_z) - _log_flips(flips, z))
    log_ratio += 0.5 * stiffness * rows((theta - center) ** 2 - (new - new_center) ** 2)
    forth = new_center - center - drift * (theta - center)
    back = center - new_center - drift * (new - new_center)
    variance = jnp.where(spread > 0, spread**2, 1)
    log_ratio += rows(forth**2 - back**2) / (2 * variance)
    taken = jnp.log(jax.random.uniform(key_accept, (NUM_CITIES,))) < log_ratio
    taken = jnp.repeat(taken, theta.size // NUM_CITIES)
    mixed, mixed_center = jnp.where(taken, new, theta), jnp.where(taken, new_center, center)
    is_tour = target.is_valid(mixed)
    return jnp.where(is_tour, mixed, theta), jnp.where(is_tour, mixed_center, center)


def _log_flips(flips: Array, z: Array) -> Array:
    return jnp.where(flips, jax.nn.log_sigmoid(z), jax.nn.log_sigmoid(-z))
