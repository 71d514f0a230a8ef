"""Where chains spend their time on a domain that can be enumerated: visits of every state, seed by seed."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.compiling import quick_jit
from steppe.diagnostics.exact import target_distribution, total_variation
from steppe.diagnostics.spectrum import interaction_spectrum
from steppe.kernel.compose import Recipe
from steppe.kernel.sampler import Sampler
from steppe.kernel.types import SamplerState, StepInfo
from steppe.run.simulate import simulate
from steppe.target import Target
from steppe.targets.bernoulli import PAPER_MODES, Modes

FIRST_STEP = 2  # keys 0 and 1 of a chain are those of its start

Sums = tuple[Array, ...]


class Visits(NamedTuple):
    """How often each state was visited.

    Attributes
    ----------
    shares
        Seeds × states: fraction of the kept steps of all chains of a seed.
    acceptance, flips
        Per seed: mean acceptance probability, and sites changed per step.
    """

    fractions: np.ndarray
    acceptance: np.ndarray
    flips: np.ndarray


def visit(
    recipe: Recipe, target: Target, seeds: Sequence[int], *, num_chains: int, num_warmup: int, num_draws: int
) -> Visits:
    """Run independent chains from uniform starts; the replicas of an ensemble count as chains.

    Parameters
    ----------
    recipe, target
        What to run, on a domain that can be enumerated.
    seeds
        One group of chains each.
    num_chains
        Chains per seed; for an ensemble a multiple of its replicas, which share the budget.
    num_warmup, num_draws
        Steps dropped and steps kept.
    """
    sampler = recipe.build(target, audit=False)  # our targets, whose gradients are known to be exact
    replicas = sampler.replicas or 1
    keys = jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))
    keys = jax.vmap(lambda key: jax.random.split(key, num_chains // replicas))(keys)
    sums = _run(sampler, keys.ravel(), num_warmup, num_draws)
    visits, acceptance, flips = (divide_by_seed(values, len(seeds), num_draws) for values in sums)
    return Visits(visits / replicas, acceptance, flips / replicas)


@quick_jit
def _run(sampler: Sampler, keys: Array, num_warmup: Array, num_draws: Array) -> Sums:
    """Visits of every state, acceptance and flips, summed over the kept steps of every chain."""
    domain = sampler.target.domain
    states = jnp.arange(domain.num_states)

    def see(state: SamplerState, info: StepInfo) -> Sums:
        here = domain.index(state.position).reshape(-1, 1) == states
        return here.sum(axis=0), info.acceptance_rate, info.num_flips

    return add_up(sampler, keys, num_warmup, num_draws, see, [(domain.num_states,), (), ()])


def add_up(
    sampler: Sampler,
    keys: Array,
    num_warmup: Array,
    num_draws: Array,
    see: Callable[[SamplerState, StepInfo], Sums],
    shapes: Sequence[tuple[int, ...]],
) -> Sums:
    """Run chains from uniform starts and add up what is seen of them at every kept step.

    Parameters
    ----------
    sampler, keys
        What to run, and a key for every chain.
    num_warmup, num_draws
        Steps dropped and steps kept.
    see, shapes
        What is added, of one chain, and its shapes.
    """
    domain = sampler.target.domain

    def start(key: Array) -> SamplerState:
        shape = () if sampler.replicas is None else (sampler.replicas,)
        return sampler.init(domain.draw(key, shape), jax.random.fold_in(key, 1))

    def add(total: Sums, state: SamplerState, info: StepInfo, step: Array) -> Sums:
        is_kept = step >= num_warmup + FIRST_STEP
        return jax.tree.map(lambda old, new: old + is_kept * new, total, see(state, info))

    return simulate(
        sampler,
        keys,
        jax.vmap(start)(keys),
        num_warmup + num_draws,
        first_step=FIRST_STEP,
        reduce=add,
        reduced=tuple(jnp.zeros((len(keys), *shape)) for shape in shapes),
    ).reduced


def divide_by_seed(values: Array, num_seeds: int, num_draws: int) -> np.ndarray:
    """Mean over the chains of every seed of what was added up over draws."""
    return np.asarray(values, float).reshape(num_seeds, -1, *values.shape[1:]).mean(axis=1) / num_draws


class SmallTarget:
    """Everything about a small target that distributions on its states are read with."""

    def __init__(self, target: Target, modes: Modes = PAPER_MODES) -> None:
        states = target.domain.enumerate()
        self.target = target
        self.probabilities = target_distribution(target).astype(float)
        self.log_density = np.asarray(jax.vmap(target.log_density)(states), float)
        self.eigenvalues = interaction_spectrum(target, states, exact=False).eigenvalues.astype(float)
        self.flat, self.sharp = (_indices(target, kind) for kind in modes)

    def flat_mass(self, fractions: np.ndarray) -> np.ndarray:
        """Mass on the flat modes."""
        return fractions[..., self.flat].sum(axis=-1)

    def sharp_mass(self, fractions: np.ndarray) -> np.ndarray:
        """Mass on the sharp modes."""
        return fractions[..., self.sharp].sum(axis=-1)

    def distance(self, fractions: np.ndarray) -> float:
        """Total variation to `π`, of the mean over seeds."""
        return total_variation(np.atleast_2d(fractions).mean(axis=0), self.probabilities)

    def spectrum_std(self, fractions: np.ndarray) -> np.ndarray:
        """Standard deviation of all eigenvalues pooled; their mean is zero at every state."""
        return np.sqrt(fractions @ (self.eigenvalues**2).mean(axis=1))

    def spectrum_iqr(self, fractions: np.ndarray) -> np.ndarray:
        """Distance of the quartiles of all eigenvalues pooled."""
        order = np.argsort(self.eigenvalues.ravel())
        pooled = self.eigenvalues.ravel()[order]
        weights = np.repeat(
            np.atleast_2d(fractions) / self.eigenvalues.shape[1], self.eigenvalues.shape[1], 1
        )
        cumulative = np.cumsum(weights[:, order], axis=1)
        lower, upper = ((cumulative >= level - 1e-9).argmax(axis=1) for level in (0.25, 0.75))
        return (pooled[upper] - pooled[lower]).reshape(fractions.shape[:-1])


def estimate_noise(fractions: np.ndarray, num_seeds: int | None = None) -> float | None:
    """Total variation to `π` that a sampler of exactly `π` would show, from the noise of the seeds alone.

    Parameters
    ----------
    shares
        Seeds × states; a single seed does not show its noise.
    num_seeds
        How many seeds are averaged; all of them by default.
    """
    if len(fractions) < 2:
        return None
    errors = fractions.std(axis=0, ddof=1) / np.sqrt(num_seeds or len(fractions))
    return float(0.5 * np.sqrt(2 / np.pi) * errors.sum())  # the mean of |normal| is √(2/π) deviations


def _indices(target: Target, states: Sequence[Sequence[int]]) -> np.ndarray:
    return np.asarray(target.domain.index(target.domain.from_levels(np.asarray(states))))
