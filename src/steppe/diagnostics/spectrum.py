"""How strongly pairs of sites interact at a state: the Hessian of the multilinear extension."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.diagnostics.exact import target_distribution
from steppe.diagnostics.states import Progress, is_exact_wanted, map_states
from steppe.errors import DomainError, TargetError
from steppe.target.log_density import Target

NUM_RESAMPLES = 200


class InteractionSpectrum(NamedTuple):
    """Eigenvalues of pairwise interactions, pooled over states.

    Attributes
    ----------
    eigenvalues
        Per state, ascending, `(..., num_sites)`.
    std, std_error
        Population standard deviation of all eigenvalues pooled, and its standard error.
    iqr, iqr_error
        Distance of the quartiles of all eigenvalues pooled (linear interpolation), and its standard error.
    log_density
        `U` of each state.
    mean_log_density
        Its mean over the states given.
    exact_under_target
        `std`, `iqr` and the mean of `log_density` under `π`, where it was enumerated.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from steppe.diagnostics.flatness import interaction_spectrum
    >>> from steppe.targets import ising
    >>> spectrum = interaction_spectrum(ising([[0.0, 1.0], [1.0, 0.0]]), jnp.ones((1, 2)))
    >>> spectrum.eigenvalues.round(3).tolist()
    [[-1.0, 1.0]]
    """

    eigenvalues: np.ndarray
    std: float
    std_error: float
    iqr: float
    iqr_error: float
    log_density: np.ndarray
    mean_log_density: float
    exact_under_target: dict[str, float] | None


@checked(TargetError)
def interaction_spectrum(
    target: Target,
    positions: ArrayLike,
    *,
    exact: bool | None = None,
    batch_size: int = 8,
    progress: Progress | None = None,
) -> InteractionSpectrum:
    """Spectrum of pairwise interaction strength at each state (the paper's "eigenspectrum").

    Entry `i, j` of the matrix at a state is the mixed second difference of `U` over the two sites, all
    others held, divided by the two level distances: the Hessian of the *multilinear* extension of `U`.

    Parameters
    ----------
    target
        A log-density on two-level sites.
    positions
        States, of shape `(..., num_sites)`, with multiplicity.
    exact, batch_size, progress
        As in `single_site_differences`.

    Notes
    -----
    This is not a measure of flatness. A Hessian belongs to an extension of `U` to the reals, and `π` does
    not know it: adding `(κ/2) Σ θ_i(1 − θ_i)` shifts every eigenvalue by `−κ` and changes no state. The
    multilinear extension is fixed here; its diagonal is zero, so eigenvalues sum to zero at every state,
    and the matrix says nothing about gradients: read it as pairwise interaction strength, beside
    `single_site_differences`. Errors are bootstrapped over states and hold for independent ones; correlated
    draws
    know less. Cost: one table of differences per site and state, and an eigendecomposition.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from steppe.diagnostics.flatness import interaction_spectrum
    >>> from steppe.targets import ising_lattice
    >>> spectrum = interaction_spectrum(ising_lattice((3, 3), coupling=0.3), jnp.ones((1, 9)))
    >>> spectrum.eigenvalues.shape, bool(abs(spectrum.eigenvalues.sum()) < 1e-4)
    ((1, 9), True)
    """
    if not target.domain.is_two_level:
        raise DomainError(
            f"`interaction_spectrum` needs two levels per site (bits or spins); got {target.domain!r}. Mixed "
            "differences of more levels are no matrix; use `single_site_differences`."
        )
    if target.has_constraint:
        raise DomainError(
            "`interaction_spectrum` needs every pair of changes to lead to a valid state, but the target has "
            "a constraint (`is_valid`). Use `single_site_differences`, which leaves invalid states out."
        )
    eigenvalues, log_density = map_states(
        _spectrum, target, positions, batch_size=batch_size, progress=progress
    )
    rows = eigenvalues.reshape(-1, eigenvalues.shape[-1]).astype(float)
    std_error, iqr_error = _bootstrap_errors(rows)
    expected = _under_target(target, batch_size) if is_exact_wanted(target, exact) else None
    return InteractionSpectrum(
        eigenvalues,
        float(rows.std()),
        std_error,
        _iqr(rows),
        iqr_error,
        log_density,
        float(np.mean(log_density)),
        expected,
    )


def _spectrum(target: Target, position: Array) -> tuple[Array, Array]:
    domain = target.domain
    sites = jnp.arange(domain.num_sites)

    def slopes(state: Array) -> Array:
        """Divided difference along every site; it does not depend on the level of the site itself."""
        gains = jnp.sum(jnp.where(domain.squared_jumps(state) > 0, target.differences(state), 0), axis=1)
        return gains / domain.flip_slopes(state, jnp.ones(domain.num_sites))

    def along(site: Array) -> Array:
        flipped = domain.flip(position, sites == site)
        return (slopes(flipped) - slopes(position)) / jnp.sum(flipped - position)

    matrix = jax.vmap(along)(sites)
    matrix = jnp.where(sites[:, None] == sites, 0, (matrix + matrix.T) / 2)
    return jnp.linalg.eigvalsh(matrix), target.log_density(position)


def _iqr(values: np.ndarray) -> float:
    upper, lower = np.percentile(values, [75, 25])
    return float(upper - lower)


def _bootstrap_errors(rows: np.ndarray) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    resamples = (rows[rng.integers(0, len(rows), len(rows))] for _ in range(NUM_RESAMPLES))
    statistics = np.array([(sample.std(), _iqr(sample)) for sample in resamples])
    std_error, iqr_error = statistics.std(axis=0, ddof=1)
    return float(std_error), float(iqr_error)


def _under_target(target: Target, batch_size: int) -> dict[str, float]:
    """Spread of the eigenvalues of a state drawn from `π`; quartiles invert the distribution function."""
    eigenvalues, log_density = map_states(_spectrum, target, target.domain.enumerate(), batch_size=batch_size)
    distribution = target_distribution(target).astype(float)
    weights = np.repeat(distribution / eigenvalues.shape[1], eigenvalues.shape[1])
    pooled = eigenvalues.ravel().astype(float)
    order = np.argsort(pooled)
    cumulative = np.cumsum(weights[order])
    lower, upper = pooled[order][np.searchsorted(cumulative, [0.25, 0.75])]
    mean = weights @ pooled
    return {
        "std": float(np.sqrt(weights @ (pooled - mean) ** 2)),
        "iqr": float(upper - lower),
        "log_density": float(distribution @ log_density),
    }
