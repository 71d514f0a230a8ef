"""How many states are this high *and* this flat: counts by log-density and roughness, not by enumeration."""

import dataclasses
import math
from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.arguments import checked
from steppe.errors import RunError
from steppe.kernel.blocks.flat_histogram import FlatHistogramBlock, Histogram
from steppe.kernel.compose import recipe
from steppe.kernel.density import mean_roughness
from steppe.kernel.sampler import Sampler
from steppe.kernel.types import SamplerState
from steppe.run.anneal import anneal
from steppe.run.schedule import geometric_schedule, parameter_schedule
from steppe.run.simulate import simulate
from steppe.samplers.baselines import gibbs
from steppe.target import Target
from steppe.validation import count, random_key

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_BINS = 2**16
# Steps of exploration that find the range of U and R.
NUM_EXPLORED = 200


@dataclasses.dataclass(frozen=True)
class StateCounts:
    """Estimated number of states by log-density and roughness.

    Attributes
    ----------
    log_density_edges, roughness_edges
        Edges of the bins; the first and the last bin hold everything beyond.
    log_counts
        Logarithm of the number of states in every bin, (bin of U, bin of R); −inf where none was met.
    standard_error
        Its standard error over independent walks; NaN where fewer than two walks came.

    Examples
    --------
    >>> import jax, numpy as np, steppe
    >>> target = steppe.targets.paper_bernoulli()
    >>> counts = steppe.count_states(target, key=jax.random.key(0), num_bins=(4, 3), num_steps=2000)
    >>> round(float(np.exp(counts.log_counts).sum()))  # all states of four bits
    16
    """

    log_density_edges: np.ndarray
    roughness_edges: np.ndarray
    log_counts: np.ndarray
    standard_error: np.ndarray

    def log_counts_of_log_density(self) -> np.ndarray:
        """Logarithm of the number of states by log-density alone."""
        return np.logaddexp.reduce(self.log_counts, axis=1)

    def plot(self) -> "Figure":
        """Draw the counts: log-density across, roughness upward, colour the decimal logarithm."""
        import matplotlib.pyplot as plt

        figure, axis = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
        shown = np.where(np.isfinite(self.log_counts), self.log_counts / math.log(10), np.nan)
        mesh = axis.pcolormesh(self.log_density_edges, self.roughness_edges, shown.T, cmap="viridis")
        figure.colorbar(mesh, label="log₁₀ number of states")
        axis.set_xlabel("log-density U")
        axis.set_ylabel("roughness R (mean |ΔU|)")
        return figure


@checked(RunError)
def count_states(
    target: Target,
    *,
    key: Array,
    num_bins: tuple[int, int] = (24, 12),
    num_steps: int = 100_000,
    num_chains: int = 8,
) -> StateCounts:
    """Count the states of a target by log-density and roughness, by flat-histogram walks.

    Parameters
    ----------
    target
        Whose states, on sites that can be changed one by one.
    key
        Random key.
    num_bins
        Bins of the log-density and of the roughness, between the extremes that a short exploration meets.
    num_steps
        Steps of every walk: half of them learn the weights, half count with weights that stay.
    num_chains
        Independent walks, from which errors come.

    Returns
    -------
    StateCounts
        `log_counts` by bin with their standard errors, normalised to the number of all states.

    Notes
    -----
    Every step evaluates the differences of all one-site changes. Forbidden states (`U = −inf`) are not
    visited; counts are normalised to all states as if there were none.

    Examples
    --------
    >>> import jax, numpy as np, steppe
    >>> target = steppe.targets.ising_lattice((3, 3), coupling=0.5)
    >>> counts = steppe.count_states(target, key=jax.random.key(0), num_bins=(6, 4), num_steps=4000)
    >>> best = counts.log_counts[-1]  # bins of the largest log-density, by roughness
    >>> round(float(np.exp(best).sum()))
    2
    """
    rows, columns = _check_bins(target, num_bins)
    steps = count("count_states(num_steps=...)", num_steps, 100, error=RunError)
    chains = count("count_states(num_chains=...)", num_chains, 2, error=RunError)
    explore_key, walk_key = jax.random.split(random_key("count_states", key))
    starts, heights, widths = _explore(target, explore_key, chains)
    height_edges = np.linspace(heights.min(), heights.max(), rows + 1)
    width_edges = np.linspace(widths.min(), widths.max(), columns + 1)
    block = FlatHistogramBlock(
        jnp.asarray(height_edges[1:-1]), jnp.asarray(width_edges[1:-1]), jnp.asarray(10.0 * rows * columns)
    )
    sampler = recipe("flat_histogram", block).build(target, audit=False)
    learned, visits = _walk(sampler, walk_key, jnp.asarray(starts), steps // 2)
    log_counts, error = _combine(np.asarray(learned, float), np.asarray(visits, float), target)
    return StateCounts(height_edges, width_edges, log_counts, error)


def _check_bins(target: Target, num_bins: tuple[int, int]) -> tuple[int, int]:
    try:
        rows, columns = num_bins
    except (TypeError, ValueError):
        raise RunError(f"`count_states(num_bins=...)` must be two numbers; got {num_bins!r}.") from None
    for number in (rows, columns):
        count("count_states(num_bins=...)", number, 2, error=RunError)
    if rows * columns > MAX_BINS:
        raise RunError(
            f"`count_states(num_bins=...)` asks for {rows * columns} bins; at most {MAX_BINS} fit. Use fewer."
        )
    return rows, columns


def _explore(target: Target, key: Array, num_chains: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts of the walks, and log-densities and roughnesses met between uniform states and modes."""
    draw_key, up_key, down_key = jax.random.split(key, 3)
    positions = [jax.vmap(target.domain.draw)(jax.random.split(draw_key, 64 * num_chains))]
    for sign, own in ((1.0, up_key), (-1.0, down_key)):
        ends = (0.05 * sign, 5.0 * sign)
        schedule = parameter_schedule(inverse_temperature=geometric_schedule(*map(abs, ends)))
        turned = target if sign > 0 else _turn(target)
        found = anneal(
            turned, gibbs(), schedule, key=own, num_steps=NUM_EXPLORED, num_chains=8, progress=False
        )
        positions.append(found.best_position)
        positions.append(found.position)
    every = jnp.concatenate([one.reshape(-1, *target.domain.shape) for one in positions])
    heights, widths = (np.asarray(values, float) for values in _measure(target, every))
    is_allowed = np.isfinite(heights)
    if not is_allowed.any():
        raise RunError("No allowed state (`U > −inf`) was met, so there is nothing to count.")
    allowed = np.asarray(every)[is_allowed]
    starts = allowed[np.arange(num_chains) % len(allowed)]
    return starts, heights[is_allowed], widths[is_allowed]


def _turn(target: Target) -> Target:
    """Return the target with its log-density negated where it is finite, to look for the lowest states."""

    def negate(position: Array) -> Array:
        value = target.log_density(position)
        return jnp.where(jnp.isfinite(value), -value, -jnp.inf)

    return Target(negate, target.domain)


@jax.jit
def _measure(target: Target, positions: Array) -> tuple[Array, Array]:
    def one(position: Array) -> tuple[Array, Array]:
        table = target.differences(position)
        return target.log_density(position), mean_roughness(target.domain, position, table)

    return jax.lax.map(one, positions)


@partial(jax.jit, static_argnames="num_steps")
def _walk(sampler: Sampler, key: Array, starts: Array, num_steps: int) -> tuple[Array, Array]:
    """Weights that were learned, and visits while they stayed; axes (walk, bin of U, bin of R)."""
    learn_key, count_key = jax.random.split(key)
    state = simulate(sampler, learn_key, jax.vmap(sampler.init)(starts), num_steps).state
    fixed = _stop_learning(sampler)
    state = simulate(fixed, count_key, _forget_visits(state), num_steps).state
    histogram: Histogram = state.memory[0]
    return histogram.log_weights, histogram.visits


def _stop_learning(sampler: Sampler) -> Sampler:
    """Return the sampler with weights that stay."""
    block = sampler.recipe.blocks[0]
    assert isinstance(block, FlatHistogramBlock)
    fixed = dataclasses.replace(block, learning=jnp.zeros_like(block.learning))
    return Sampler(dataclasses.replace(sampler.recipe, blocks=(fixed,)), sampler.target)


def _forget_visits(state: SamplerState) -> SamplerState:
    histogram: Histogram = state.memory[0]
    return state._replace(memory=(histogram._replace(visits=jnp.zeros_like(histogram.visits)),))


def _combine(log_weights: np.ndarray, visits: np.ndarray, target: Target) -> tuple[np.ndarray, np.ndarray]:
    """Mean over walks of their counts, each normalised to the number of states; and its error."""
    with np.errstate(divide="ignore"):
        each = log_weights + np.log(visits)
    total = np.logaddexp.reduce(each.reshape(len(each), -1), axis=1)
    each = each - total[:, None, None]
    largest = each.max()
    shares = np.exp(each - largest)
    mean = shares.mean(axis=0)
    came = (shares > 0).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_counts = np.log(mean) + largest + math.log(target.domain.num_states)
        error = shares.std(axis=0, ddof=1) / (mean * math.sqrt(len(shares)))
    return log_counts, np.where(came >= 2, error, np.nan)
