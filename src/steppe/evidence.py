"""The log-normaliser `log Z = log Σ exp U` of any target: its evidence, with an error and a second opinion.

- Along the ladder of parallel tempering, from the uniform distribution at `β = 0`: `log Z_{i+1}/Z_i` of
  neighbouring rungs from the draws of both (stepping stones in their best form, Bennett's acceptance ratio),
  with the error of a jackknife over blocks of time.
- By annealed importance sampling (AIS): independent chains from uniform states through all temperatures,
  whose weights have mean `Z / Z_0` (Neal 2001).
"""

import dataclasses
import math
from functools import partial
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.arguments import checked
from steppe.domain.base import MAX_ENUMERATED
from steppe.errors import RunError
from steppe.kernel.blocks.tempering import parameters_at
from steppe.kernel.compose import Recipe
from steppe.kernel.sampler import Sampler
from steppe.kernel.types import SamplerState, StepInfo
from steppe.run.result import Run
from steppe.run.sample import sample
from steppe.run.simulate import simulate
from steppe.run.temperature_ladder import base_of, find_tempered, place_rungs, tune_ladder, with_uniform_end
from steppe.samplers.further import parallel_tempering
from steppe.target import Target
from steppe.targets.rbm_normalizer import LogWeights
from steppe.validation import count, flag, log_densities, random_key

MIN_BLOCKS = 20
NUM_UNIFORM = 20_000


@runtime_checkable
class KnowsEvidence(Protocol):
    """A target that knows better ways to its own `log Z`, such as an RBM."""

    def sum_states(self) -> float | None:
        """`log Z` as a sum, if there is a short one."""
        ...

    def make_tempered(self) -> tuple[Target, Recipe, np.ndarray | None]:
        """Return a target of the same `log Z` that tempers well, how its replicas move, and a reference."""
        ...

    def anneal_weights(self, key: Array, num_chains: int, num_temperatures: int) -> LogWeights:
        """Annealed importance sampling along a path of its own."""
        ...


class Estimate(NamedTuple):
    """A number with its standard error and 95 % interval."""

    value: float
    standard_error: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.standard_error:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclasses.dataclass(frozen=True)
class Evidence:
    """A log-normaliser.

    Attributes
    ----------
    tempered
        The estimate along the ladder; with error 0 where all states were summed.
    annealed
        The estimate by annealed importance sampling, or `None`.
    rejections
        Fraction of swaps that every pair of neighbouring rungs refused.
    round_trips
        How often replicas went up and down the ladder. Few mean that the error is not to be relied on.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((3, 3), coupling=0.0)
    >>> evidence = steppe.log_normalizer(target, key=jax.random.key(0))
    >>> round(evidence.tempered.value, 3)  # 9 log 2: all 512 states count alike
    6.238
    """

    tempered: Estimate
    annealed: Estimate | None = None
    rejections: np.ndarray = dataclasses.field(default_factory=partial(np.zeros, 0))
    round_trips: int = 0

    @property
    def barrier(self) -> float:
        """`Λ`: the sum of all refused fractions."""
        return float(self.rejections.sum())

    @property
    def value(self) -> float:
        """`log Z`."""
        return self.tempered.value

    @property
    def standard_error(self) -> float:
        """Its standard error."""
        return self.tempered.standard_error

    @property
    def interval(self) -> tuple[float, float]:
        """Its 95 % interval."""
        return self.tempered.low, self.tempered.high

    def __sub__(self, other: "Evidence") -> Estimate:
        """Return the logarithm of the Bayes factor of two targets."""
        error = math.hypot(self.standard_error, other.standard_error)
        value = self.value - other.value
        return Estimate(value, error, value - 1.96 * error, value + 1.96 * error)

    def __str__(self) -> str:
        if self.standard_error == 0:
            return f"log Z = {self.value:.3f}, summed over all states"
        second = "" if self.annealed is None else f"; annealed importance sampling: {self.annealed}"
        return (
            f"log Z = {self.tempered} along the ladder (Λ = {self.barrier:.1f}, {self.round_trips} round "
            f"trips){second}"
        )


@checked(RunError, num_chains="[1, inf)", num_warmup="[0, inf)", num_draws="[1, inf)")
def log_normalizer(
    target: Target,
    *,
    key: Array,
    recipe: Recipe | None = None,
    num_chains: int = 4,
    num_warmup: int = 500,
    num_draws: int = 2000,
    num_annealed: int = 64,
    num_temperatures: int = 1000,
    exact: bool | None = None,
    progress: bool | None = None,
) -> Evidence:
    """Estimate `log Z = log Σ_θ exp U(θ)` of a target.

    Parameters
    ----------
    target
        Whose log-normaliser.
    key
        Random key.
    recipe
        `steppe.parallel_tempering(...)` whose ladder begins at 0; by default one that is adapted.
    num_chains, num_warmup, num_draws
        Size of the tempered run.
    num_annealed, num_temperatures
        Chains of the annealed importance sampling and their steps; 0 chains leave it out.
    exact
        Sum all states (`True`), estimate (`False`), or by default sum domains of at most 2²⁰ states.
    progress
        Show a progress bar of the tempered run.

    Returns
    -------
    Evidence
        `value`, `standard_error`, `interval`; `a - b` is the log Bayes factor of two targets.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice(3, coupling=0.2)
    >>> print(steppe.log_normalizer(target, key=jax.random.key(0)))
    log Z = 2.147, summed over all states
    """
    key = random_key("log_normalizer", key)
    annealed_chains = count("log_normalizer(num_annealed=...)", num_annealed, 0, error=RunError)
    steps = count("log_normalizer(num_temperatures=...)", num_temperatures, 2, error=RunError)
    if exact is not None:
        flag("log_normalizer(exact=...)", exact)
    value = None if exact is False else _sum_states(target, exact is True)
    if value is not None:
        return Evidence(Estimate(value, 0.0, value, value))
    tune_key, run_key, uniform_key, anneal_key = jax.random.split(key, 4)
    own = target if isinstance(target, KnowsEvidence) else None
    if recipe is None and own is not None:
        target, base, reference = own.make_tempered()
        recipe = parallel_tempering(base=base, reference=reference)
    # A hot end that was left to be found is found at β = 0, where the sum is known.
    tempered = with_uniform_end(parallel_tempering() if recipe is None else recipe)
    block = find_tempered(tempered)
    if block is None or float(block.inverse_temperatures[0]) != 0:
        raise RunError(
            "`log_normalizer(recipe=...)` needs `parallel_tempering(...)` with temperatures from β = 0, "
            f"where the sum is known; got {tempered!r}."
        )
    if block.fate != "fixed":
        tempered = tune_ladder(target, tempered, key=tune_key).recipe
    run = sample(
        target,
        tempered,
        key=run_key,
        num_chains=num_chains,
        num_warmup=num_warmup,
        num_draws=num_draws,
        progress=progress,
    )
    found = estimate_from_run(run, target, key=uniform_key)
    if annealed_chains < 2:
        return found
    weights = (
        _anneal(run.recipe, target, anneal_key, annealed_chains, steps, found.rejections)
        if own is None
        else own.anneal_weights(anneal_key, annealed_chains, steps)
    )
    annealed = _interval(weights.value, weights.standard_error, annealed_chains - 1)
    return dataclasses.replace(found, annealed=annealed)


def estimate_from_run(run: Run, target: Target, *, key: Array) -> Evidence:
    """Estimate `log Z` from a tempered run in hand, whose ladder begins at `β = 0`.

    Parameters
    ----------
    run
        Made by `sample` with `parallel_tempering`.
    target
        What was sampled.
    key
        Random key of the draws that measure which fraction of all states is allowed.
    """
    block = find_tempered(run.recipe)
    if block is None or float(block.inverse_temperatures[0]) != 0:
        raise RunError(
            "`estimate_from_run(run, ...)` needs a run of `parallel_tempering` with temperatures from β = 0; "
            f"got {run.recipe!r}."
        )
    betas = np.asarray(block.inverse_temperatures, float)
    values = run.trace.statistic("rung_log_density").astype(float)
    ratio, error, freedom, rejections = _bridge(betas, values)
    fraction = _measure_allowed(target, key, block.reference)
    start = fraction.value
    if block.reference is None:  # a reference sums to 1
        start += math.log(target.domain.num_states)
    tempered = _interval(ratio + start, math.hypot(error, fraction.standard_error), freedom)
    trips = run.trace.statistic("round_trips").astype(int)
    return Evidence(tempered, rejections=rejections, round_trips=int((trips[:, -1] - trips[:, 0]).sum()))


def _sum_states(target: Target, demanded: bool) -> float | None:
    """`log Z` as a sum, where there are few enough terms; else `None`, or an error if it is demanded."""
    found = target.sum_states() if isinstance(target, KnowsEvidence) else None
    if found is None and target.domain.num_states <= MAX_ENUMERATED:
        values = log_densities("log_normalizer(target)", _evaluate(target, target.domain.enumerate()))
        found = float(np.logaddexp.reduce(values))
        if found == -math.inf:
            raise RunError(
                f"`log_normalizer(target)`: all {target.domain.num_states} states are forbidden "
                "(`U = −inf`), so there is nothing to sum."
            )
    if found is None and demanded:
        raise RunError(
            f"`log_normalizer(exact=True)` sums at most {MAX_ENUMERATED} states; {target.domain!r} has more. "
            "Leave `exact` out."
        )
    return found


@jax.jit
def _evaluate(target: Target, positions: Array) -> Array:
    return jax.lax.map(target.log_density, positions, batch_size=1024)


def _measure_allowed(target: Target, key: Array, reference: Array | None) -> Estimate:
    """Logarithm of the probability of states that are not forbidden, by draws of the reference."""
    domain = target.domain
    if reference is None:
        states = jax.vmap(domain.draw)(jax.random.split(key, NUM_UNIFORM))
    else:
        levels = jax.random.categorical(key, reference, shape=(NUM_UNIFORM, domain.num_sites))
        states = domain.from_levels(levels)
    values = log_densities("log_normalizer(target)", _evaluate(target, states))
    allowed = float(np.mean(values > -np.inf))
    if allowed == 0:
        drawn = "uniform states" if reference is None else "states of the reference"
        raise RunError(
            f"None of {NUM_UNIFORM} {drawn} is allowed (`U > −inf`), so the sum at β = 0 is "
            "not known. Give forbidden states a finite penalty."
        )
    error = math.sqrt((1 - allowed) / (allowed * NUM_UNIFORM))
    return Estimate(math.log(allowed), error, math.log(allowed) - 2 * error, math.log(allowed) + 2 * error)


def _interval(value: float, error: float, freedom: float) -> Estimate:
    from scipy.stats import t

    half = float(t.ppf(0.975, freedom)) * error
    return Estimate(value, error, value - half, value + half)


def _bridge(betas: np.ndarray, values: np.ndarray) -> tuple[float, float, int, np.ndarray]:
    """`log Z(1) / Z(0)` from `U` at every rung, (chain, draw, rung); its error; refused fraction of swaps.

    For neighbours with `w = Δβ U`, the log-ratio `c` solves `Σ_hot σ(w − c) = Σ_cold σ(c − w)`. Leaving out
    one block of time moves `c` by one Newton step.
    """
    num_chains, num_draws, _ = values.shape
    per_chain = max(2, -(-MIN_BLOCKS // num_chains))
    length = num_draws // per_chain
    if length < 1:
        raise RunError(f"`log_normalizer(num_draws=...)` must be at least {per_chain}; got {num_draws}.")
    used = values[:, : length * per_chain].reshape(num_chains * per_chain, length, -1)
    hot, cold = (np.diff(betas) * part for part in (used[..., :-1], used[..., 1:]))
    ratio = _solve(hot, cold)
    slope = _weigh(hot - ratio) * (1 - _weigh(hot - ratio))
    slope_back = _weigh(ratio - cold) * (1 - _weigh(ratio - cold))
    excess = (_weigh(hot - ratio) - _weigh(ratio - cold)).sum(axis=1)
    steepness = (slope + slope_back).sum(axis=1)
    left_out = -excess / (steepness.sum(axis=0) - steepness)
    totals = left_out.sum(axis=1)
    size = len(totals)
    error = math.sqrt((size - 1) / size * float(((totals - totals.mean()) ** 2).sum()))
    accepted = np.exp(np.minimum(np.diff(betas) * (used[..., :-1] - used[..., 1:]), 0)).mean(axis=(0, 1))
    return float(ratio.sum()), error, size - 1, 1 - accepted


def _weigh(values: np.ndarray) -> np.ndarray:
    from scipy.special import expit

    return expit(values)


def _solve(hot: np.ndarray, cold: np.ndarray) -> np.ndarray:
    """Bisection, for every pair of neighbours at once."""
    both = np.concatenate([hot, cold])
    low, high = both.min(axis=(0, 1)) - 1, both.max(axis=(0, 1)) + 1
    for _ in range(60):
        middle = (low + high) / 2
        excess = (_weigh(hot - middle) - _weigh(middle - cold)).sum(axis=(0, 1))
        low, high = np.where(excess > 0, middle, low), np.where(excess > 0, high, middle)
    return (low + high) / 2


def _anneal(
    recipe: Recipe, target: Target, key: Array, num_chains: int, num_steps: int, rejections: np.ndarray
) -> LogWeights:
    """Annealed importance sampling with the base recipe, at temperatures of equal steps of the barrier."""
    block = find_tempered(recipe)
    assert block is not None
    path = place_rungs(np.asarray(block.inverse_temperatures, float), rejections, num_steps + 1)
    base, scales = base_of(recipe, path)
    arrays = jnp.asarray(path, float), jnp.asarray(scales, float)
    weights = _walk(base.build(target, audit=False), key, *arrays, num_chains)
    return LogWeights(math.log(target.domain.num_states), np.asarray(weights, float))


@partial(jax.jit, static_argnames="num_chains")
def _walk(sampler: Sampler, key: Array, path: Array, scales: Array, num_chains: int) -> Array:
    """Log-weights of chains that start uniform and follow the path."""
    start_key, walk_key = jax.random.split(key)
    domain, num_steps = sampler.target.domain, path.shape[0] - 1
    starts = jax.vmap(domain.draw)(jax.random.split(start_key, num_chains))
    state = jax.vmap(sampler.init)(starts)

    def schedule(step: Array) -> dict[str, Array]:
        return parameters_at(sampler.parameters, path[step + 1], scales[step + 1])

    def weigh(weight: Array, state: SamplerState, info: StepInfo, step: Array) -> Array:
        # The last step is only a move.
        rise = jnp.where(step + 1 < num_steps, path[jnp.minimum(step + 2, num_steps)] - path[step + 1], 0)
        return weight + jnp.where(rise > 0, rise * state.log_density, 0)

    first = (path[1] - path[0]) * state.log_density
    done = simulate(sampler, walk_key, state, num_steps, schedule=schedule, reduce=weigh, reduced=first)
    # A chain from a forbidden state weighs nothing, wherever it went.
    return jnp.where(first == -jnp.inf, -jnp.inf, done.reduced)
