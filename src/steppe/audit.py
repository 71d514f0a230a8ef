"""Does the gradient of a log-density say anything about its one-site differences?

Gradient-guided samplers treat `gradient · jump` as an estimate of `U(after) − U(before)`. For a
log-density that branches on the value of a site (`x == 1`, a table look-up, a rounded index) the
automatic gradient is exactly zero: Metropolis then still samples the right distribution, slowly, but an
unadjusted sampler is silently wrong.
"""

import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.compiling import quick_jit
from steppe.errors import GradientError, GradientWarning, PrecisionWarning, TargetError
from steppe.target import Target

NUM_STATES = 8
NUM_SITES = 64
MIN_CORRELATION = 0.2
COARSEST_RESOLUTION = 0.01


class GradientAudit(NamedTuple):
    """What the audit measured.

    Attributes
    ----------
    num_pairs
        How many one-site changes were compared.
    correlation
        Correlation of half the first-order prediction with half the true difference.
    mean_error
        Mean absolute error of the half-step prediction, in nats: the error of a flip logit.
    mean_difference
        Mean absolute half difference, to compare the error with.
    resolution
        Spacing of floating-point numbers at the largest `|U|` met.
    """

    num_pairs: int
    correlation: float
    mean_error: float
    mean_difference: float
    resolution: float


def audit_gradient(target: Target, key: Array) -> GradientAudit:
    """Compare half-step first-order predictions with true one-site differences on random states.

    Parameters
    ----------
    target
        The log-density to look at.
    key
        Random key for the states and sites compared.

    Returns
    -------
    GradientAudit
        The figures, for reading.

    Raises
    ------
    GradientError
        If the gradient is zero at every state although the log-density is not constant, or if it is
        not finite.

    Warns
    -----
    GradientWarning
        If predictions hardly correlate with differences.
    PrecisionWarning
        If floating-point numbers near `U` are further apart than 0.01.
    """
    predicted, true, values, gradients = _pairs(target, key)
    if not np.isfinite(gradients).all():
        raise GradientError(
            "The gradient of the log-density is not finite at a random state whose log-density is. "
            "Give `Target(..., value_and_grad=...)` a finite one, or use a sampler without gradients "
            "such as `gibbs()`."
        )
    if true.size and np.any(true != 0) and not np.any(gradients):
        raise GradientError(
            "The gradient of the log-density is exactly zero at every random state, while changing one "
            f"site changes it by up to {2 * np.abs(true).max():.3g}. Log-densities that branch on the "
            "value of a site (`x == 1`, `jnp.where`, integer indexing) have no gradient. Write it as a "
            "smooth function of the position, give `value_and_grad`, or use `gibbs()`."
        )
    audit = _figures(predicted, true, values)
    _warn(audit)
    return audit


def _pairs(target: Target, key: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Half predictions and half differences at random states and sites, with what they came from."""
    slopes, differences, values, gradients = (np.asarray(r, float) for r in _at_random(target, key))
    inside = np.isfinite(values)
    if np.isnan(values).any() or (values == np.inf).any():
        raise TargetError(
            "The log-density is NaN or +inf at a random state of the domain. It must be a finite "
            "number, or -inf where a state is impossible."
        )
    usable = inside[:, None, None] & np.isfinite(differences)
    return slopes[usable] / 2, differences[usable] / 2, values[inside], gradients[inside]


@quick_jit
def _at_random(target: Target, key: Array) -> tuple[Array, Array, Array, Array]:
    """Slopes and differences by state, site and level, NaN where nothing changes; values and gradients."""
    domain = target.domain
    key_states, key_sites = jax.random.split(key)
    positions = domain.draw(key_states, (NUM_STATES,))
    num_sites = min(NUM_SITES, domain.num_sites)
    sites = jax.random.permutation(key_sites, domain.num_sites)[:num_sites]

    def at(position: Array) -> tuple[Array, Array, Array, Array]:
        value, gradient = target.value_and_grad(position)
        if domain.is_two_level:
            levels = (1 - domain.to_levels(position)[sites].astype(jnp.int32))[:, None]
        else:
            levels = jnp.broadcast_to(jnp.arange(domain.max_levels), (num_sites, domain.max_levels))
        slopes = jnp.take_along_axis(domain.slopes(position, gradient)[sites], levels, axis=1)
        set_site = jax.vmap(jax.vmap(domain.replace_sites, (None, None, 0)), (None, 0, 0))
        changed = jax.vmap(jax.vmap(target.log_density))(set_site(position, sites, levels))
        exists = jnp.asarray(domain.level_mask)[sites[:, None], levels]
        moves = levels != domain.to_levels(position)[sites][:, None]
        difference = jnp.where(exists & moves, changed - value, jnp.nan)
        return slopes, difference, value, gradient

    return jax.vmap(at)(positions)


def _figures(predicted: np.ndarray, true: np.ndarray, values: np.ndarray) -> GradientAudit:
    # Nothing to predict is predicted perfectly; constant predictions of something say nothing.
    varies = true.size > 0 and true.std() > 0
    spread = predicted.std() * true.std() if varies else 0.0
    covariance = np.mean((predicted - predicted.mean()) * (true - true.mean())) if spread else 0.0
    largest = np.abs(values).max() if values.size else 0.0
    return GradientAudit(
        num_pairs=true.size,
        correlation=float(covariance / spread) if spread else float(not varies),
        mean_error=float(np.abs(predicted - true).mean()) if true.size else 0.0,
        mean_difference=float(np.abs(true).mean()) if true.size else 0.0,
        resolution=float(np.spacing(np.asarray(largest, jnp.result_type(float)))),
    )


def _warn(audit: GradientAudit) -> None:
    if audit.correlation < MIN_CORRELATION:
        warnings.warn(
            f"The gradient hardly predicts one-site differences: correlation {audit.correlation:.2f} over "
            f"{audit.num_pairs} changes, mean error {audit.mean_error:.3g} nats against a mean of "
            f"{audit.mean_difference:.3g}. An unadjusted sampler will be biased; use a Metropolis one "
            "(`dmala`, `edmala`) or `gibbs()`.",
            GradientWarning,
            stacklevel=3,
        )
    if audit.resolution > COARSEST_RESOLUTION:
        warnings.warn(
            f"Near this log-density numbers are {audit.resolution:.2g} apart, so differences of single "
            "changes are lost. Subtract a constant from the log-density, or switch to float64 with "
            "`jax.config.update('jax_enable_x64', True)`.",
            PrecisionWarning,
            stacklevel=3,
        )
