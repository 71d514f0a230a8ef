"""The ladder of parallel tempering: how many inverse temperatures, where they stand, and a step size at each.

Notation: `r_i` is the fraction of swaps that neighbours `i` and `i + 1` refuse, and the barrier
`Λ(β) = Σ_{β_i < β} r_i` hardly depends on the ladder it is measured with. Rungs at equal steps of `Λ` refuse
equally often, which makes round trips fastest (Syed, Bouchard-Côté, Deligiannidis, Doucet 2022); about
`2 Λ + 1` rungs are best. A ladder that needs many of them is cut at its hot end, where what was found in the
cold is forgotten all the same (`hot_end.py`).
"""

import dataclasses
import math
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.arguments import checked
from steppe.errors import RunError
from steppe.kernel.blocks.isoenergetic import IsoenergeticBlock
from steppe.kernel.blocks.tempering import Fate, TemperedBlock
from steppe.kernel.sampler import Sampler
from steppe.kernel.types import SamplerState, StepInfo
from steppe.run.adaptation import TARGET_ACCEPTANCE
from steppe.run.hot_end import find_hottest
from steppe.run.plan import MAX_STEPS
from steppe.run.simulate import simulate
from steppe.target import Target
from steppe.validation import count, random_key

if TYPE_CHECKING:
    from steppe.kernel.compose import Recipe
    from steppe.run.storage.record import RungsRecord

MIN_RUNGS, MAX_RUNGS = 3, 96
# Ladders that need more rungs than this are asked whether they can do without their hot end.
MANY_RUNGS = 12
FIRST_ROUND = 16
# A ladder whose swaps are refused more often than this sees too little of the barrier to be adapted.
MAX_REJECTION = 0.7
# How far a step size moves in the first round, in logarithms per unit of acceptance.
FIRST_GAIN = 3.0
SCALES = 1e-3, 1e3


class Observed(NamedTuple):
    """Sums over the rounds of one chain: fraction of swaps accepted by pair, and of moves by rung."""

    swaps: Array
    moves: Array


class TunedLadder(NamedTuple):
    """A ladder adapted to a target.

    Attributes
    ----------
    recipe
        The tempered recipe with it.
    inverse_temperatures
        `β_r`, increasing to 1.
    barrier
        `Λ(1)`: the sum of all refused fractions.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((3, 3), coupling=0.5)
    >>> recipe = steppe.parallel_tempering(base=steppe.gibbs(num_updates=9), num_rungs=4)
    >>> ladder = steppe.tune_ladder(target, recipe, key=jax.random.key(0), num_steps=200)
    >>> float(ladder.inverse_temperatures[0]), float(ladder.inverse_temperatures[-1])
    (0.0, 1.0)
    >>> ladder.barrier > 0
    True
    """

    recipe: "Recipe"
    inverse_temperatures: np.ndarray
    barrier: float


@checked(RunError)
def tune_ladder(
    target: Target, recipe: "Recipe", *, key: Array, num_steps: int = 1000, num_chains: int = 4
) -> TunedLadder:
    """Adapt the temperatures of a tempered recipe to a target, and the step size at each.

    Parameters
    ----------
    target
        What to sample.
    recipe
        `steppe.parallel_tempering(...)`. Given `inverse_temperatures` stay; only step sizes are adapted.
    key
        Random key.
    num_steps
        Steps of every replica for a ladder of a given size, in rounds that double in length.
    num_chains
        Number of independent ladders to average over.

    Returns
    -------
    TunedLadder
        The recipe with its ladder, which `sample` then leaves as it is.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((3, 3), coupling=0.5)
    >>> recipe = steppe.parallel_tempering(base=steppe.gibbs(num_updates=9))
    >>> ladder = steppe.tune_ladder(target, recipe, key=jax.random.key(0), num_steps=200)
    >>> run = steppe.sample(target, ladder.recipe, key=jax.random.key(1), num_draws=100)
    >>> run.levels.shape
    (4, 100, 9)
    """
    count("tune_ladder(num_steps=...)", num_steps, FIRST_ROUND, error=RunError)
    count("tune_ladder(num_chains=...)", num_chains, error=RunError)
    block = find_tempered(recipe)
    if block is None:
        raise RunError(f"`tune_ladder` needs `steppe.parallel_tempering(...)`; got {recipe!r}.")
    key = random_key("tune_ladder", key)
    fate = block.fate
    while True:
        tuned = _tune_rounds(target, recipe, key, num_steps, num_chains)
        betas = tuned.inverse_temperatures
        wanted, hottest = _choose_size(tuned.barrier, len(betas)), betas[0]
        key = jax.random.fold_in(key, wanted)
        if fate == "adapted" and wanted > MANY_RUNGS:
            hottest, fate = find_hottest(target, *base_of(tuned.recipe, betas), betas, key=key), "sized"
            kept = 1 - np.interp(hottest, betas, np.linspace(0, 1, len(betas)))
            wanted = max(math.ceil(kept * wanted), MIN_RUNGS)
        if fate not in ("adapted", "sized") or (wanted == len(betas) and hottest == betas[0]):
            return tuned
        recipe = _resize(tuned, wanted, hottest, fate)


def adapt_ladder(
    recipe: "Recipe", target: Target, key: Array, stored: "RungsRecord | None" = None
) -> "Recipe":
    """Return the recipe with a ladder for a target, if it is tempered and its ladder is not fixed.

    `stored` is the ladder of a run that is continued. It serves where the same was asked for; otherwise the
    ladder is adapted, and the run on disk is found to be another one.
    """
    block = find_tempered(recipe)
    if block is None or block.fate == "fixed":
        return recipe
    if stored is not None and is_asked(stored, block):
        arrays = np.asarray(stored.inverse_temperatures), np.asarray(stored.step_scales)
        return _with_ladder(recipe, *arrays, "fixed")
    # Chains are counted from 0, so that no chain has this key.
    return tune_ladder(target, recipe, key=jax.random.fold_in(key, MAX_STEPS)).recipe


def describe_ladder(asked: "Recipe", recipe: "Recipe") -> dict[str, object] | None:
    """Return what a directory keeps of a ladder that was adapted; `None` where none was."""
    before, block = find_tempered(asked), find_tempered(recipe)
    if before is None or block is None or before.fate == block.fate:
        return None
    return {
        "asked": before.fate,
        "num_asked": before.num_rungs,
        "hottest_asked": float(before.inverse_temperatures[0]),
        "inverse_temperatures": np.asarray(block.inverse_temperatures, float).tolist(),
        "step_scales": np.asarray(block.step_scales, float).tolist(),
    }


def find_tempered(recipe: "Recipe") -> TemperedBlock | None:
    """Return the block that tempers a recipe, if there is one."""
    inner = (block.block if isinstance(block, IsoenergeticBlock) else block for block in recipe.blocks)
    return next((block for block in inner if isinstance(block, TemperedBlock)), None)


def with_uniform_end(recipe: "Recipe") -> "Recipe":
    """Return a recipe whose ladder is adapted from `β = 0` on, if its hot end was still to be found."""
    block = find_tempered(recipe)
    if block is None or block.fate != "adapted":
        return recipe
    arrays = np.asarray(block.inverse_temperatures), np.asarray(block.step_scales)
    return _with_ladder(recipe, *arrays, "sized")


def base_of(recipe: "Recipe", path: np.ndarray) -> tuple["Recipe", np.ndarray]:
    """Return how a replica of a tempered recipe moves, and by what its step size is scaled along a path."""
    block = find_tempered(recipe)
    assert block is not None
    betas, scales = (np.asarray(a, float) for a in (block.inverse_temperatures, block.step_scales))
    return dataclasses.replace(recipe, blocks=(block.block,)), np.exp(np.interp(path, betas, np.log(scales)))


def is_asked(stored: "RungsRecord", block: TemperedBlock) -> bool:
    """Whether a stored ladder was adapted for what a recipe asks."""
    hottest = float(block.inverse_temperatures[0])
    asked = stored.asked, stored.num_asked, stored.hottest_asked
    return asked == (block.fate, block.num_rungs, hottest)


def _choose_size(barrier: float, size: int) -> int:
    """Rungs for a barrier; doubled where the ladder was too short to see it; kept where it is about right."""
    if barrier > MAX_REJECTION * (size - 1) and size < MAX_RUNGS:
        return min(2 * size, MAX_RUNGS)
    best = int(np.clip(math.ceil(2 * barrier) + 1, MIN_RUNGS, MAX_RUNGS))
    # Another size is compiled anew; rungs too many in a short ladder cost less than that.
    most = 1.5 * best + 2 if size <= MANY_RUNGS else 1.25 * best
    return size if best <= size <= most else best


def _resize(tuned: TunedLadder, size: int, hottest: float, fate: Fate) -> "Recipe":
    """Rungs at equal steps of the barrier, as those of the tuned ladder are, from a hot end on."""
    block = find_tempered(tuned.recipe)
    assert block is not None
    old, betas = np.arange(block.num_rungs), tuned.inverse_temperatures
    new = np.linspace(np.interp(hottest, betas, old), old[-1], size)
    scales = np.exp(np.interp(new, old, np.log(np.asarray(block.step_scales))))
    return _with_ladder(tuned.recipe, np.interp(new, old, betas), scales, fate)


def _with_ladder(recipe: "Recipe", betas: np.ndarray, scales: np.ndarray, fate: Fate) -> "Recipe":
    def replace(block: object) -> object:
        if isinstance(block, IsoenergeticBlock):
            return dataclasses.replace(block, block=replace(block.block))
        if not isinstance(block, TemperedBlock):
            return block
        arrays = jnp.asarray(betas, float), jnp.asarray(scales, float)
        return TemperedBlock(block.block, *arrays, block.reference, fate)

    return dataclasses.replace(recipe, blocks=tuple(map(replace, recipe.blocks)))


def _tune_rounds(
    target: Target, recipe: "Recipe", key: Array, num_steps: int, num_chains: int
) -> TunedLadder:
    """Rounds that double in length, each followed by an adaptation of the ladder."""
    block = find_tempered(recipe)
    assert block is not None
    betas, scales = np.asarray(block.inverse_temperatures, float), np.asarray(block.step_scales, float)
    sampler = recipe.build(target, audit=False)
    starts, walks = jax.random.split(key)
    state = _start(sampler, jax.random.split(starts, num_chains))
    rejections = np.ones(len(betas) - 1)
    done, index = 0, 0
    while done < num_steps:
        length = min(FIRST_ROUND * 2**index, num_steps - done)
        if num_steps - done - length < length // 2:
            length = num_steps - done
        state, seen = _walk(sampler, jax.random.fold_in(walks, index), state, length)
        rejections = 1 - np.mean(np.asarray(seen.swaps, float), axis=0) / length
        acceptance = np.mean(np.asarray(seen.moves, float), axis=0) / length
        gain = FIRST_GAIN / math.sqrt(index + 1)
        scales = np.clip(scales * np.exp(gain * (acceptance - TARGET_ACCEPTANCE)), *SCALES)
        if block.fate != "fixed":
            placed = place_rungs(betas, rejections, len(betas))
            scales = np.exp(np.interp(placed, betas, np.log(scales)))
            betas = placed
        sampler = Sampler(_with_ladder(sampler.recipe, betas, scales, block.fate), target)
        done, index = done + length, index + 1
    return TunedLadder(_with_ladder(recipe, betas, scales, "fixed"), betas, float(np.sum(rejections)))


def place_rungs(betas: np.ndarray, rejections: np.ndarray, size: int) -> np.ndarray:
    """Return inverse temperatures at equal steps of the barrier, by monotone cubic interpolation.

    Parameters
    ----------
    betas, rejections
        A ladder, and the fraction of swaps that every pair of neighbours refused.
    size
        Number of rungs.
    """
    from scipy.interpolate import PchipInterpolator

    steps = np.maximum(rejections, 1e-4)
    barrier = np.concatenate([[0.0], np.cumsum(steps)])
    fine = np.unique(np.concatenate([betas, np.linspace(betas[0], betas[-1], 2001)]))
    heights = PchipInterpolator(betas, barrier)(fine)
    placed = np.interp(np.linspace(0, barrier[-1], size), heights, fine)
    placed[0], placed[-1] = betas[0], betas[-1]
    return placed


@jax.jit
def _start(sampler: Sampler, keys: Array) -> SamplerState:
    """Chains whose replicas start at places of their own."""
    domain = sampler.target.domain

    def one(key: Array) -> SamplerState:
        draw, init = jax.random.split(key)
        return sampler.init(domain.draw(draw), init)

    return jax.vmap(one)(keys)


@jax.jit
def _walk(sampler: Sampler, key: Array, state: SamplerState, length: Array) -> tuple[SamplerState, Observed]:
    block = find_tempered(sampler.recipe)
    assert block is not None
    chains = state.log_density.shape[0]
    nothing = Observed(jnp.zeros((chains, block.num_rungs - 1)), jnp.zeros((chains, block.num_rungs)))

    def look(seen: Observed, state: SamplerState, info: StepInfo, step: Array) -> Observed:
        assert info.rungs is not None
        return Observed(seen.swaps + info.rungs.swap_rate, seen.moves + info.rungs.acceptance_rate)

    done = simulate(sampler, key, state, length, reduce=look, reduced=nothing)
    return done.state, done.reduced
