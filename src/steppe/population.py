"""Population annealing: many states cooled together, multiplied or dropped by weight at every temperature.

Between `β` and `β'` a state of log-density `U` has weight `exp{(β' − β) U}`. Resampling by weight keeps the
population distributed as `exp{β U}` (Hukushima and Iba 2003; Machta 2010), the mean weights multiply to `Z`,
and moves at every temperature make the descendants of one state differ again.
"""

import dataclasses
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.arguments import checked
from steppe.errors import RunError
from steppe.kernel.blocks.tempering import parameters_at
from steppe.kernel.compose import Recipe
from steppe.kernel.sampler import Sampler
from steppe.kernel.types import SamplerState
from steppe.run.adaptation import TARGET_ACCEPTANCE
from steppe.run.progress import count_bar
from steppe.run.simulate import simulate
from steppe.samplers.baselines import gibbs
from steppe.target import Target
from steppe.validation import count, log_densities, random_key, within

MAX_TEMPERATURES = 10_000


@dataclasses.dataclass(frozen=True)
class Population:
    """States distributed as `exp U`, and how they came about.

    Attributes
    ----------
    positions, log_density
        The states, as the log-density takes them, and `U` of each.
    family
        From which of the first states each descends.
    inverse_temperatures
        `β` at every step, from 0 to 1.
    log_normalizer
        Estimate of `log Z`, unbiased in `Z`.
    mean_log_density
        Mean of `U` over the population at every temperature.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((4, 4), coupling=0.3)
    >>> population = steppe.anneal_population(target, key=jax.random.key(0), population=200)
    >>> population.positions.shape
    (200, 16)
    >>> bool(population.mean_log_density[-1] > population.mean_log_density[0])  # U rises as it cools
    True
    """

    positions: np.ndarray | dict[str, np.ndarray]
    log_density: np.ndarray
    family: np.ndarray
    inverse_temperatures: np.ndarray
    log_normalizer: float
    mean_log_density: np.ndarray

    @property
    def num_families(self) -> int:
        """How many of the first states have descendants."""
        return len(np.unique(self.family))

    @property
    def family_entropy(self) -> float:
        """`exp` of the entropy of the sizes of families: how many equal families they are worth."""
        sizes = np.bincount(self.family)
        fractions = sizes[sizes > 0] / sizes.sum()
        return float(np.exp(-np.sum(fractions * np.log(fractions))))

    @property
    def best(self) -> float:
        """Largest log-density in the population."""
        return float(self.log_density.max())

    def __str__(self) -> str:
        return (
            f"{len(self.log_density)} states after {len(self.inverse_temperatures) - 1} temperatures: "
            f"log Z = {self.log_normalizer:.3f}, best U = {self.best:.6g}, {self.num_families} families, "
            f"worth {self.family_entropy:.0f} equal ones"
        )


@checked(RunError)
def anneal_population(
    target: Target,
    recipe: Recipe | None = None,
    *,
    key: Array,
    population: int = 1000,
    num_sweeps: int = 10,
    survival: float = 0.9,
    progress: bool | None = None,
) -> Population:
    """Cool a population of states from the uniform distribution to `exp U`.

    Parameters
    ----------
    target
        What to sample or to optimise.
    recipe
        How states move at a temperature, an adjusted recipe without center; `gibbs()` by default.
    key
        Random key.
    population
        Number of states. The error of `log Z` falls as one over its square root.
    num_sweeps
        Steps of every state at every temperature.
    survival
        Effective fraction of states that a step in temperature leaves, which decides how large it is.
    progress
        Show a progress bar; by default when standard error is a terminal.

    Returns
    -------
    Population
        The states with their families. Few families mean that the population was too small.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((4, 4), coupling=0.3)
    >>> found = steppe.anneal_population(target, key=jax.random.key(0), population=200)
    >>> float(found.inverse_temperatures[-1])
    1.0
    """
    size = count("anneal_population(population=...)", population, 2, error=RunError)
    sweeps = count("anneal_population(num_sweeps=...)", num_sweeps, error=RunError)
    survival = float(within("anneal_population(survival=...)", survival, "(0, 1)", error=RunError))
    moves = gibbs() if recipe is None else recipe
    if not isinstance(moves, Recipe) or moves.coupling.has_center or not moves.is_adjusted:
        raise RunError(
            "`anneal_population(recipe=...)` needs an adjusted recipe without center, such as `gibbs()`; got "
            f"{moves!r}."
        )
    sampler = moves.build(target, audit=False)
    start_key, walk_key = jax.random.split(random_key("anneal_population", key))
    state = _start(sampler, start_key, size)
    values = log_densities("anneal_population(target)", state.log_density)
    family, log_z = np.arange(size), math.log(target.domain.num_states)
    betas, means, scale = [0.0], [_average(values)], 1.0
    with count_bar("cooling", 100, progress) as report:
        while betas[-1] < 1:
            beta = _next_beta(values, betas[-1], survival)
            weights = _weigh(values, beta - betas[-1])
            if not np.isfinite(weights).any():
                raise RunError(
                    f"None of {size} states is allowed (`U > −inf`). Use a larger population, or give "
                    "forbidden states a finite penalty."
                )
            log_z += float(np.logaddexp.reduce(weights)) - math.log(size)
            index = len(betas)
            kept = _resample(np.random.default_rng([index, *_seed(walk_key)]), weights)
            family = family[kept]
            state, rate = _move(
                sampler, jax.random.fold_in(walk_key, index), state, kept, sweeps, beta, scale
            )
            scale = float(np.clip(scale * math.exp(float(rate) - TARGET_ACCEPTANCE), 1e-3, 1e3))
            values = np.asarray(state.log_density, float)
            betas.append(beta)
            means.append(_average(values))
            report(int(100 * beta))
            if len(betas) > MAX_TEMPERATURES:
                raise RunError(
                    f"{MAX_TEMPERATURES} temperatures were not enough; `survival` must be smaller than "
                    f"{survival}."
                )
    return Population(
        jax.tree.map(np.asarray, jax.vmap(target.domain.unflatten)(state.position)),
        values,
        family,
        np.array(betas),
        log_z,
        np.array(means),
    )


def _average(values: np.ndarray) -> float:
    return float(values[np.isfinite(values)].mean()) if np.isfinite(values).any() else -math.inf


def _weigh(values: np.ndarray, rise: float) -> np.ndarray:
    return np.where(np.isfinite(values), rise * np.where(np.isfinite(values), values, 0), -np.inf)


def _next_beta(values: np.ndarray, beta: float, survival: float) -> float:
    """The largest step whose weights leave an effective fraction of states; bisection."""

    def fraction(rise: float) -> float:
        weights = _weigh(values, rise)
        weights = np.exp(weights - weights.max())
        return float(weights.sum() ** 2 / (weights**2).sum() / len(weights))

    low, high = 0.0, 1.0 - beta
    reachable = float(np.mean(np.isfinite(values)))  # forbidden states are lost whatever the step
    if reachable == 0 or fraction(high) >= survival * reachable:
        return 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if fraction(middle) >= survival * reachable else (low, middle)
    return beta + max(low, 1e-9)


def _seed(key: Array) -> list[int]:
    return [int(word) for word in np.asarray(jax.random.key_data(key)).ravel()]


def _resample(rng: np.random.Generator, log_weights: np.ndarray) -> np.ndarray:
    """Systematic resampling: every state comes down by its expected number of descendants, ± 1."""
    weights = np.exp(log_weights - log_weights.max())
    bounds = np.cumsum(weights) / weights.sum() * len(weights)
    places = rng.uniform() + np.arange(len(weights))
    return np.minimum(np.searchsorted(bounds, places, side="right"), len(weights) - 1)


@partial(jax.jit, static_argnames="size")
def _start(sampler: Sampler, key: Array, size: int) -> SamplerState:
    draw = jax.vmap(sampler.target.domain.draw)
    return jax.vmap(sampler.init)(draw(jax.random.split(key, size)))


@jax.jit
def _move(
    sampler: Sampler,
    key: Array,
    state: SamplerState,
    kept: Array,
    num_sweeps: Array,
    beta: Array,
    scale: Array,
) -> tuple[SamplerState, Array]:
    """Take descendants and move them at a temperature; their mean acceptance rate."""
    state = jax.tree.map(lambda leaf: leaf[kept], state)
    cooled = sampler.replace(parameters_at(sampler.parameters, beta, scale))
    zero = jnp.zeros(state.log_density.shape)
    done = simulate(
        cooled,
        key,
        state,
        num_sweeps,
        reduce=lambda rate, state, info, step: rate + info.acceptance_rate,
        reduced=zero,
    )
    return done.state, jnp.mean(done.reduced) / num_sweeps
