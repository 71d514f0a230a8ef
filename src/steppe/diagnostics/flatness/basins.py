"""Which local maximum a state belongs to, and how much mass each one collects."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.diagnostics.flatness.log_tables import log_table, normalize_table, steepest_roots
from steppe.diagnostics.neighbours import after, gains
from steppe.diagnostics.states import Progress, flat_states, is_exact_wanted, map_states
from steppe.errors import DomainError, TargetError
from steppe.kernel.cost import makes_tables
from steppe.target.log_density import Target
from steppe.validation import count, positive

# Gains are told apart down to this many roundings of the numbers they are made of.
ROUNDINGS = 8


class LocalSearch(NamedTuple):
    """Where steepest ascent ends.

    Attributes
    ----------
    modes
        Local maxima, of the shape of the states given.
    mode_log_density
        `U` of each.
    num_steps
        Changes made on the way.
    is_converged
        Whether no change improves any further; false where `max_steps` was reached.
    log_density
        `U` of each state given.
    mean_log_density
        Its mean.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from steppe.diagnostics.flatness import local_search
    >>> from steppe.targets import ising_lattice
    >>> found = local_search(ising_lattice((3, 3), coupling=1.0), jnp.asarray([[1.0] * 8 + [-1.0]]))
    >>> found.modes.astype(int).tolist(), found.num_steps.tolist()
    ([[1, 1, 1, 1, 1, 1, 1, 1, 1]], [1])
    """

    modes: np.ndarray
    mode_log_density: np.ndarray
    num_steps: np.ndarray
    is_converged: np.ndarray
    log_density: np.ndarray
    mean_log_density: float


class BasinMass(NamedTuple):
    """How much mass ascends to which local maximum, heaviest first.

    Attributes
    ----------
    modes
        Local maxima, `(num_modes, *domain.shape)`.
    mass
        Fraction of `π`, or of the states given, that ascends to each.
    standard_error
        Of each share; zero when all states were enumerated.
    mode_log_density
        `U` of each mode.
    mean_log_density
        Mean of `U`: under `π` when all states were enumerated, else over the states given.
    exact_under_target
        Fraction of `π` for the same modes, where it was enumerated.

    Examples
    --------
    >>> from steppe.diagnostics.flatness import basin_mass
    >>> from steppe.targets import paper_bernoulli
    >>> basins = basin_mass(paper_bernoulli())
    >>> basins.modes.shape, round(float(basins.mass.sum()), 6)
    ((4, 4), 1.0)
    """

    modes: np.ndarray
    mass: np.ndarray
    standard_error: np.ndarray
    mode_log_density: np.ndarray
    mean_log_density: float
    exact_under_target: np.ndarray | None


class Occupancy(NamedTuple):
    """How often states are exactly at given modes.

    Attributes
    ----------
    share
        Fraction of the states given, per mode.
    standard_error
        Of each share.
    mean_log_density
        Mean of `U` over the states given; `None` without a target.
    exact_under_target
        `π` of each mode, where it was enumerated.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from steppe.diagnostics.flatness import occupancy
    >>> draws = jnp.asarray([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
    >>> found = occupancy(draws, modes=jnp.asarray([[0.0, 0.0], [1.0, 1.0]]))
    >>> found.fraction.tolist()
    [0.25, 0.5]
    """

    fraction: np.ndarray
    standard_error: np.ndarray
    mean_log_density: float | None
    exact_under_target: np.ndarray | None


@checked(TargetError)
def local_search(
    target: Target,
    positions: ArrayLike,
    *,
    max_steps: int = 10_000,
    batch_size: int = 32,
    progress: Progress | None = None,
) -> LocalSearch:
    """Follow the best change (of one site, or of an order by one move) until none improves.

    Parameters
    ----------
    target
        The log-density. Cost: one table of differences per change.
    positions
        States, of shape `(..., *domain.shape)`.
    max_steps
        Give up after this many changes.
    batch_size, progress
        As in `single_site_differences`; a batch takes as long as its longest ascent.

    Notes
    -----
    Of equally good changes the first is made, in the order of sites, then levels. A plateau is not crossed.

    Examples
    --------
    >>> import jax
    >>> from steppe.diagnostics.flatness import local_search
    >>> from steppe.targets import paper_bernoulli
    >>> target = paper_bernoulli()
    >>> found = local_search(target, target.domain.enumerate())
    >>> bool(found.is_converged.all()), bool((found.mode_log_density >= found.log_density).all())
    (True, True)
    """
    limit = count("local_search(max_steps=...)", max_steps)
    statistics = map_states(_climb, target, positions, limit, batch_size=batch_size, progress=progress)
    return LocalSearch(**statistics, mean_log_density=float(np.mean(statistics["log_density"])))


@checked(TargetError)
def basin_mass(
    target: Target,
    positions: ArrayLike | None = None,
    *,
    effective_size: float | None = None,
    max_steps: int = 10_000,
    exact: bool | None = None,
    batch_size: int = 32,
    progress: Progress | None = None,
) -> BasinMass:
    """Mass of the basin of attraction of every local maximum under steepest ascent.

    Parameters
    ----------
    target
        The log-density.
    positions
        States whose basins are counted, or `None` for the exact mass of `π` in every basin, which
        enumerates up to 2**20 states.
    effective_size
        How many independent states the given ones are worth, for the error; their number by default.
    max_steps, batch_size, progress
        As in `local_search`.
    exact
        As in `single_site_differences`.

    Examples
    --------
    >>> from steppe.diagnostics.flatness import basin_mass
    >>> from steppe.targets import planted_mixture
    >>> basins = basin_mass(planted_mixture().target)
    >>> len(basins.modes), bool(basins.mass[0] >= basins.mass[-1])  # heaviest first
    (7, True)
    """
    if positions is None:
        return basins_of_table(target, log_table(target))
    flat, _ = flat_states(target, positions)
    found = local_search(target, flat, max_steps=max_steps, batch_size=batch_size, progress=progress)
    if not found.is_converged.all():
        raise DomainError(
            f"{np.sum(~found.is_converged)} of {len(flat)} states had not reached a local maximum after "
            f"{max_steps} changes. Raise `max_steps`."
        )
    rows = found.modes.reshape(len(flat), -1)
    _, first, counts = np.unique(rows, axis=0, return_index=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    modes, fraction = found.modes[first[order]], counts[order] / len(flat)
    expected = _exact_masses(target, modes) if is_exact_wanted(target, exact) else None
    return BasinMass(
        modes,
        fraction,
        share_error(fraction, positive("basin_mass(effective_size=...)", effective_size, len(flat))),
        found.mode_log_density[first[order]],
        found.mean_log_density,
        expected,
    )


@checked(TargetError, positions=1, modes=1)
def occupancy(
    positions: ArrayLike,
    modes: ArrayLike,
    *,
    target: Target | None = None,
    effective_size: float | None = None,
    exact: bool | None = None,
) -> Occupancy:
    """Fraction of states that are exactly at each of some modes.

    Parameters
    ----------
    positions
        States; axes before those of one state are flattened.
    modes
        `(num_modes, ...)`, states to look for.
    target
        For `mean_log_density` and the exact shares.
    effective_size
        How many independent states the given ones are worth, for the error; their number by default.
    exact
        As in `single_site_differences`.

    Examples
    --------
    >>> import jax, steppe
    >>> from steppe.diagnostics.flatness import occupancy
    >>> target = steppe.targets.paper_bernoulli()
    >>> run = steppe.sample(target, steppe.gibbs(num_updates=4), key=jax.random.key(0), num_draws=1000)
    >>> modes = target.domain.enumerate()[:1]
    >>> found = occupancy(run.positions, modes, target=target, effective_size=1000)
    >>> bool(abs(found.fraction - found.exact_under_target) < 5 * found.standard_error)
    True
    """
    wanted, states = np.asarray(modes), np.asarray(positions)
    shape = wanted.shape[1:]
    if wanted.ndim < 2 or states.shape[states.ndim - len(shape) :] != shape or not states.size:
        raise DomainError(
            f"`modes` must be a list of states like `positions`; got shapes {wanted.shape} and "
            f"{states.shape}."
        )
    states = states.reshape((-1, *shape))
    axes = tuple(range(1, states.ndim))
    fraction = np.array([np.mean(np.all(states == mode, axis=axes)) for mode in wanted])
    mean = expected = None
    if target is not None:
        mean = float(np.mean(map_states(_log_density, target, states)))
        if is_exact_wanted(target, exact):
            expected = normalize_table(log_table(target))[_indices(target, wanted)]
    size = positive("occupancy(effective_size=...)", effective_size, len(states))
    return Occupancy(fraction, share_error(fraction, size), mean, expected)


def resolve(target: Target, state: Array, table: Array) -> Array:
    """Differences in a table of gains that are rounding, of the values if the target makes none."""
    sizes = jnp.abs(table) if makes_tables(target) else jnp.abs(target.log_density(state))
    largest = jnp.max(jnp.where(jnp.isfinite(sizes), sizes, 0))
    return ROUNDINGS * jnp.finfo(table.dtype).eps * jnp.maximum(largest, 1)


def _climb(target: Target, position: Array, max_steps: Array) -> dict[str, Array]:
    def best_change(state: Array) -> tuple[Array, Array]:
        table, is_change = gains(target, state)
        table = jnp.where(is_change, table, -jnp.inf)
        resolution = resolve(target, state, table)
        gain = jnp.max(table)
        return gain > 2 * resolution, jnp.argmax(table >= gain - resolution)

    def is_climbing(carry: tuple[Array, ...]) -> Array:
        _, num_steps, improves, _ = carry
        return improves & (num_steps < max_steps)

    def step(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        state, num_steps, _, change = carry
        state = after(target, state, change)
        return (state, num_steps + 1, *best_change(state))

    start = (position, jnp.asarray(0), *best_change(position))
    mode, num_steps, improves, _ = jax.lax.while_loop(is_climbing, step, start)
    return {
        "modes": mode,
        "mode_log_density": target.log_density(mode),
        "num_steps": num_steps,
        "is_converged": ~improves,
        "log_density": target.log_density(position),
    }


def _log_density(target: Target, position: Array) -> Array:
    return target.log_density(position)


def _roots(target: Target, table: np.ndarray) -> np.ndarray:
    finite = np.abs(table[np.isfinite(table)])
    return steepest_roots(table, ROUNDINGS * np.finfo(jnp.result_type(float)).eps * max(finite.max(), 1))


def basins_of_table(target: Target, table: np.ndarray) -> BasinMass:
    """Exact mass of every basin, from the table of all log-densities."""
    distribution = normalize_table(table)
    mass = np.bincount(_roots(target, table), weights=distribution, minlength=distribution.size)
    indices = np.flatnonzero(mass)
    indices = indices[np.argsort(-mass[indices], kind="stable")]
    modes = np.asarray(target.domain.enumerate()[indices])
    values = table.ravel()
    mean = float(distribution[distribution > 0] @ values[distribution > 0])
    return BasinMass(modes, mass[indices], np.zeros(len(indices)), values[indices], mean, mass[indices])


def _exact_masses(target: Target, modes: np.ndarray) -> np.ndarray:
    table = log_table(target)
    distribution = normalize_table(table)
    mass = np.bincount(_roots(target, table), weights=distribution, minlength=distribution.size)
    return mass[_indices(target, modes)]


def _indices(target: Target, states: np.ndarray) -> np.ndarray:
    return np.asarray(target.domain.index(jnp.asarray(states, jnp.result_type(float))))


def share_error(fraction: np.ndarray, size: float) -> np.ndarray:
    """Standard error of shares among `size` independent states.

    Agresti–Coull: a fraction of 0 or 1 among finitely many states is not certain.
    """
    shrunk = (fraction * size + 2) / (size + 4)
    return np.sqrt(shrunk * (1 - shrunk) / (size + 4))
