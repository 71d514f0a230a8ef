"""The cycle of `dmala_cyclical`: between which step sizes it goes, and the balancing exponent of every move.

Notation: Pynadath, Bhattacharya, Hariharan, Zhang (2024). With `ρ` the wanted acceptance rate, moves of
`α_min` are accepted at the rate `ρ` with `β = 1/2`, `α_max` is the largest step size that is accepted at
least so often with `β` close to 1, and every step size between has the `β` that is accepted most often, no
smaller than that of smaller step sizes.
"""

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.kernel.blocks.cycle import BALANCED, CycleBlock, fall_by_cosine
from steppe.kernel.sampler import Sampler
from steppe.kernel.types import SamplerState, StepInfo
from steppe.run.adaptation import TARGET_ACCEPTANCE, resolve_adaptation
from steppe.run.adaptation.warmup import STEP_RANGE, Searches
from steppe.run.plan import MAX_STEPS
from steppe.run.simulate import simulate
from steppe.target import Target

if TYPE_CHECKING:
    from steppe.kernel.compose import Recipe
    from steppe.run.storage.record import CycleRecord

NUM_CHAINS = 8
# Steps that lead chains to where they stay, and steps at each pair of a step size and an exponent.
NUM_WARMUP, NUM_STEPS = 256, 16
# Pairs that are tried by one call of the program.
NUM_PAIRS = 16
BOLDEST = 0.95
EXPONENTS = np.linspace(BALANCED, BOLDEST, 10)


class Cycle(NamedTuple):
    """A cycle adapted to a target: the largest step size, the others relative to it, and exponents."""

    step_size: float
    factors: np.ndarray
    exponents: np.ndarray


def adapt_cycle(
    recipe: "Recipe", target: Target, key: Array, stored: "CycleRecord | None" = None
) -> "Recipe":
    """Return the recipe with a cycle for a target, if it has one that is not fixed.

    `stored` is the cycle of a run that is continued, which serves where one of the same length was asked for.
    """
    block = find_cycle(recipe)
    if block is None or block.fate == "fixed":
        return recipe
    if stored is not None and len(stored.factors) == block.length:
        cycle = Cycle(stored.step_size, np.asarray(stored.factors), np.asarray(stored.exponents))
    else:
        # Chains are counted from 0, so that no chain has this key.
        cycle = tune_cycle(recipe, target, jax.random.fold_in(key, MAX_STEPS))
    places = jnp.asarray(cycle.factors, float), jnp.asarray(cycle.exponents, float)
    made = CycleBlock(block.block, *places, "fixed")
    return dataclasses.replace(recipe, blocks=(made,)).replace(step_size=cycle.step_size)


def describe_cycle(asked: "Recipe", recipe: "Recipe") -> dict[str, object] | None:
    """Return what a directory keeps of a cycle that was adapted; `None` where none was."""
    before, block = find_cycle(asked), find_cycle(recipe)
    if before is None or block is None or before.fate == block.fate:
        return None
    return {
        "step_size": float(np.asarray(recipe.parameters["step_size"])),
        "factors": np.asarray(block.factors, float).tolist(),
        "exponents": np.asarray(block.exponents, float).tolist(),
    }


def find_cycle(recipe: "Recipe") -> CycleBlock | None:
    """Return the block that goes through a cycle, if a recipe is made of one."""
    return next((block for block in recipe.blocks if isinstance(block, CycleBlock)), None)


def tune_cycle(recipe: "Recipe", target: Target, key: Array) -> Cycle:
    """Adapt a cycle to a target: its range of step sizes, then an exponent for each.

    Parameters
    ----------
    recipe
        `steppe.dmala_cyclical(...)`.
    target
        What will be sampled.
    key
        Random key.
    """
    block = find_cycle(recipe)
    assert block is not None
    moves = dataclasses.replace(recipe, blocks=(block.block,)).build(target, audit=False)
    begin, *keys = jax.random.split(key, 3)
    state, found = _warm_up(moves, begin)
    smallest = float(np.exp(np.mean(np.asarray(found, float))))
    most = max(STEP_RANGE[1] * target.domain.squared_unit, smallest)
    sizes = np.geomspace(smallest, most, NUM_PAIRS)
    rates = _measure_rates(moves, keys[0], state, sizes, np.full(NUM_PAIRS, BOLDEST))
    often = np.flatnonzero(rates >= TARGET_ACCEPTANCE)
    largest = float(sizes[often[-1] if len(often) else np.argmax(rates)])
    factors = fall_by_cosine(block.length, smallest / largest)
    tried = np.repeat(largest * factors, len(EXPONENTS)), np.tile(EXPONENTS, block.length)
    table = _measure_rates(moves, keys[1], state, *tried).reshape(block.length, -1)
    return Cycle(largest, factors, choose_exponents(factors, table))


def choose_exponents(factors: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """The exponent that is accepted most often at each place, no smaller than at places of smaller steps.

    Parameters
    ----------
    factors
        Step sizes of the places, falling.
    rates
        Acceptance rates, (place, exponent).
    """
    chosen, first = np.empty(len(factors)), 0
    for place in reversed(range(len(factors))):
        first += int(np.argmax(rates[place, first:]))
        chosen[place] = EXPONENTS[first]
    return chosen


def _measure_rates(
    moves: Sampler, key: Array, state: SamplerState, sizes: np.ndarray, exponents: np.ndarray
) -> np.ndarray:
    """Acceptance rates of pairs of a step size and an exponent, all from the same states."""
    number = -(-len(sizes) // NUM_PAIRS) * NUM_PAIRS
    pairs = np.stack([np.resize(sizes, number), np.resize(exponents, number)])
    found = [
        _try_pairs(
            moves, jax.random.fold_in(key, first), state, jnp.asarray(pairs[:, first:][:, :NUM_PAIRS], float)
        )
        for first in range(0, number, NUM_PAIRS)
    ]
    return np.concatenate([np.asarray(rates, float) for rates in found])[: len(sizes)]


@jax.jit
def _warm_up(moves: Sampler, key: Array) -> tuple[SamplerState, Array]:
    """Chains where they stay, and the logarithms of step sizes that are accepted as wanted."""
    starts, walks = jax.random.split(key)
    domain = moves.target.domain

    def start(key: Array) -> SamplerState:
        return moves.init(domain.draw(key))

    state = jax.vmap(start)(jax.random.split(starts, NUM_CHAINS))
    adapt = resolve_adaptation(True, moves)
    done = simulate(moves, walks, state, NUM_WARMUP, adapt=adapt, num_warmup=NUM_WARMUP)
    adapted: Searches = done.adapted
    assert adapted.step is not None
    return done.state, adapted.step.log_average


@jax.jit
def _try_pairs(moves: Sampler, key: Array, state: SamplerState, pairs: Array) -> Array:
    """Mean acceptance rates over steps and chains."""

    def add(total: Array, state: SamplerState, info: StepInfo, step: Array) -> Array:
        return total + info.acceptance_rate

    def try_pair(given: tuple[Array, Array]) -> Array:
        index, (step_size, exponent) = given
        sampler = moves.replace({"step_size": step_size, "exponent": exponent})
        nothing = jnp.zeros(state.log_density.shape)
        walk = jax.random.fold_in(key, index)
        return jnp.mean(simulate(sampler, walk, state, NUM_STEPS, reduce=add, reduced=nothing).reduced)

    return jax.lax.map(try_pair, (jnp.arange(pairs.shape[1]), pairs.T)) / NUM_STEPS
