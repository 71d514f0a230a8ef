"""What changes of one site, or noise on all of them, do to the log-density of a state.

No continuous extension is involved: only states of the domain are evaluated.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe import validation
from steppe.arguments import checked
from steppe.diagnostics.flatness.log_tables import log_table, noisy_mean, normalize_table
from steppe.diagnostics.neighbours import gains
from steppe.diagnostics.states import Progress, is_exact_wanted, map_states, means
from steppe.domain import Domain
from steppe.errors import TargetError
from steppe.target.log_density import Target
from steppe.validation import count, not_negative


class SingleSiteDifferences(NamedTuple):
    """How `U` changes over the one-site changes of each state. Exact for each state.

    Attributes
    ----------
    mean_absolute
        Mean of `|U(θ') − U(θ)|`: the roughness `R`.
    mean_drop, max_drop
        Mean and largest `U(θ) − U(θ')`; positive where changes lose.
    share_within
        Fraction of changes with `|U(θ') − U(θ)| ≤ within`.
    num_changes
        How many changes there are: those to valid states. Where there is none, the statistics are NaN.
    log_density
        `U(θ)`.
    mean_log_density
        Its mean over the states given. A flat state of low `U` is nothing to be proud of.
    exact_under_target
        Expectations of the statistics and of `log_density` under `π`, where it was enumerated.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from steppe.diagnostics.flatness import single_site_differences
    >>> from steppe.targets import ising_lattice
    >>> changes = single_site_differences(ising_lattice((4, 4), coupling=0.5), jnp.ones((1, 16)))
    >>> changes.max_drop.tolist(), changes.num_changes.tolist()  # four bonds of 0.5, twice
    ([4.0], [16])
    """

    mean_absolute: np.ndarray
    mean_drop: np.ndarray
    max_drop: np.ndarray
    share_within: np.ndarray
    num_changes: np.ndarray
    log_density: np.ndarray
    mean_log_density: float
    exact_under_target: dict[str, float] | None


class NoiseDrop(NamedTuple):
    """What random changes of a fraction of all sites cost each state.

    Attributes
    ----------
    drop
        Estimate of `U(θ) − E U(θ')`, positive where noise loses.
    standard_error
        Of each estimate, from its own noise samples.
    log_density
        `U(θ)`.
    mean_log_density
        Its mean over the states given.
    exact_under_target
        Expectations of `drop` and of `log_density` under `π`, where it was enumerated.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from steppe.diagnostics.flatness import noise_drop
    >>> from steppe.targets import ising_lattice
    >>> noise = noise_drop(ising_lattice((4, 4), coupling=1.0), jnp.ones((1, 16)), jax.random.key(0), 0.1)
    >>> bool(noise.drop[0] > 0)  # all spins up: any noise loses
    True
    """

    drop: np.ndarray
    standard_error: np.ndarray
    log_density: np.ndarray
    mean_log_density: float
    exact_under_target: dict[str, float] | None


@checked(TargetError)
def single_site_differences(
    target: Target,
    positions: ArrayLike,
    *,
    within: float = 1.0,
    exact: bool | None = None,
    batch_size: int = 32,
    progress: Progress | None = None,
) -> SingleSiteDifferences:
    """Statistics of all one-site changes of each state; on orders, of all swaps, reversals and insertions.

    Parameters
    ----------
    target
        The log-density. Its own table of differences is used if it has one.
    positions
        States, of shape `(..., *domain.shape)`; statistics keep the leading axes.
    within
        `τ ≥ 0`, in nats, for `share_within`.
    exact
        Also compute expectations under `π` by enumeration: `True`, `False`, or `None` for "if there are at
        most 4096 states".
    batch_size
        How many states are evaluated at once.
    progress
        Called as `progress(done, total)` now and then.

    Examples
    --------
    >>> from steppe.diagnostics.flatness import single_site_differences
    >>> from steppe.targets import planted_mixture
    >>> planted = planted_mixture()
    >>> changes = single_site_differences(planted.target, planted.patterns)
    >>> int(changes.mean_absolute.argmin()) == planted.flat  # the flat mode is the least rough
    True
    """
    tau = not_negative("single_site_differences(within=...)", within, remedy="It is a difference in nats.")
    statistics = map_states(_gaps, target, positions, tau, batch_size=batch_size, progress=progress)
    expected = None
    if is_exact_wanted(target, exact):
        over_all = map_states(_gaps, target, target.domain.enumerate(), tau, batch_size=batch_size)
        expected = means(normalize_table(np.asarray(over_all["log_density"], float)), **over_all)
    return SingleSiteDifferences(
        **statistics, mean_log_density=float(np.mean(statistics["log_density"])), exact_under_target=expected
    )


@checked(TargetError)
def noise_drop(
    target: Target,
    positions: ArrayLike,
    key: Array,
    flip_fraction: float,
    num_samples: int = 32,
    *,
    exact: bool | None = None,
    batch_size: int = 16,
    progress: Progress | None = None,
) -> NoiseDrop:
    """Loss of log-density when every site changes with a given probability, to any other level alike.

    Parameters
    ----------
    target
        The log-density.
    positions
        States, of shape `(..., *domain.shape)`.
    key
        Random key of the noise.
    flip_fraction
        `f`, strictly between 0 and 1/2.
    num_samples
        Noise samples per state, at least 2: without two there is no error to state.
    exact, batch_size, progress
        As in `single_site_differences`.

    Examples
    --------
    >>> import jax
    >>> from steppe.diagnostics.flatness import noise_drop
    >>> from steppe.targets import planted_mixture
    >>> planted = planted_mixture()
    >>> noise = noise_drop(planted.target, planted.patterns, jax.random.key(0), flip_fraction=0.1)
    >>> int(noise.drop.argmin()) == planted.flat  # the flat mode loses least
    True
    """
    remedy = "It is the fraction of sites that noise changes."
    fraction = validation.within("noise_drop(flip_fraction=...)", flip_fraction, "(0, 0.5)", remedy=remedy)
    count("noise_drop(num_samples=...)", num_samples, 2, remedy="With one there is no error to state.")
    drop, error, log_density = map_states(
        _noise_drop,
        target,
        positions,
        fraction,
        keys=key,
        options=(num_samples,),
        batch_size=batch_size,
        progress=progress,
    )
    expected = None
    if is_exact_wanted(target, exact):
        table = log_table(target)
        lost = table - noisy_mean(table, target.domain, fraction)
        expected = means(normalize_table(table), drop=lost.ravel(), log_density=table.ravel())
    return NoiseDrop(drop, error, log_density, float(np.mean(log_density)), expected)


def _gaps(target: Target, position: Array, within: Array) -> dict[str, Array]:
    table, counts = gains(target, position)
    num_changes = jnp.sum(counts)
    size = jnp.abs(table)

    def mean(values: Array) -> Array:
        return jnp.sum(jnp.where(counts, values, 0)) / num_changes

    return {
        "mean_absolute": mean(size),
        "mean_drop": mean(-table),
        "max_drop": jnp.where(num_changes > 0, jnp.max(jnp.where(counts, -table, -jnp.inf)), jnp.nan),
        "share_within": mean(size <= within),
        "num_changes": num_changes,
        "log_density": target.log_density(position),
    }


def _noise_drop(
    target: Target, position: Array, key: Array, flip_fraction: Array, num_samples: int
) -> tuple[Array, Array, Array]:
    keys = jax.random.split(key, num_samples)
    noisy = jax.vmap(_with_noise, (None, None, 0, None))(target.domain, position, keys, flip_fraction)
    value = target.log_density(position)
    drops = value - jax.vmap(target.log_density)(noisy)
    return jnp.mean(drops), jnp.std(drops, ddof=1) / jnp.sqrt(num_samples), value


def _with_noise(domain: Domain, position: Array, key: Array, flip_fraction: Array) -> Array:
    key_sites, key_levels = jax.random.split(key)
    changes = jax.random.uniform(key_sites, (domain.num_sites,)) < flip_fraction
    if domain.is_two_level:
        return domain.flip(position, changes)
    sizes = np.asarray(domain.num_levels, np.int32)
    offsets = jax.random.randint(key_levels, (domain.num_sites,), 1, sizes)
    return domain.from_levels((domain.to_levels(position) + jnp.where(changes, offsets, 0)) % sizes)
