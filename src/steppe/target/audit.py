"""Does the gradient of a log-density say anything about its one-site differences?

Gradient-guided samplers treat `gradient · jump` as an estimate of `U(after) − U(before)`. For a
log-density that branches on the value of a site (`x == 1`, a table look-up, a rounded index) the
automatic gradient is exactly zero: Metropolis then still samples the right distribution, slowly, but an
unadjusted sampler is silently wrong.

Changes of a site to its nearest other levels are compared: of ordered levels those next to it, where a step
goes; of unordered ones all.
"""

import warnings
import weakref
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.compiling import evaluate_at_once, quick_jit
from steppe.errors import GradientError, GradientWarning, PrecisionWarning, TargetError
from steppe.pytree import is_concrete
from steppe.target.log_density import Target
from steppe.validation import random_key

NUM_STATES = 8
SEED = 0
NUM_SITES = 64
MIN_CORRELATION = 0.2
COARSEST_RESOLUTION = 0.01
# Squared jumps that differ by this fraction are as near.
CLOSE = 1e-3
# Nats: a prediction that is off by this much is wrong about the odds of a flip by a factor of e.
USELESS_ERROR = 1.0
MIN_EXPLAINED = 0.2
# Below it, tables of exact differences are worth their evaluations to proposals that weigh single changes.
MIN_GUIDING = 0.5


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
    error_spread
        Standard deviation of the error: a constant error per change is mended by the step size, this is not.
    explained
        Fraction of the variance of differences that predictions explain; negative if worse than none.
    resolution
        Spacing of floating-point numbers at the largest `|U|` met.

    Examples
    --------
    >>> import jax, steppe
    >>> audit = steppe.audit_gradient(steppe.targets.ising_lattice((4, 4), coupling=0.3), jax.random.key(0))
    >>> audit.explained > 0.99  # U is linear in every single site, so the gradient says everything
    True
    """

    num_pairs: int
    correlation: float
    mean_error: float
    mean_difference: float
    error_spread: float
    explained: float
    resolution: float


@checked(TargetError)
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

    Examples
    --------
    >>> import jax, jax.numpy as jnp, steppe
    >>> target = steppe.Target(lambda bits: jnp.sum(bits) ** 2 / 8, steppe.Binary(8))
    >>> audit = steppe.audit_gradient(target, jax.random.key(0))
    >>> audit.correlation > 0.9, audit.mean_error < audit.mean_difference
    (True, True)
    """
    seed = jax.random.key_data(random_key("audit_gradient", key))
    measured = _measure(target, np.random.default_rng(np.asarray(seed)))
    _judge_unadjusted(measured)
    return measured.audit


def _judge_unadjusted(measured: "Measured") -> None:
    """Refuse, or warn of, a gradient that an unadjusted sampler would be wrong with."""
    _raise(measured)
    if measured.is_zero:
        raise GradientError(_describe_zero(measured))
    if measured.audit.correlation < MIN_CORRELATION:
        _warn(
            f"The gradient hardly predicts one-site differences: {_describe_error(measured.audit)}. An "
            "unadjusted sampler will be biased; use a Metropolis one (`dmala`, `edmala`) or `gibbs()`."
        )
    _warn_of_precision(measured.audit)


def check_guide(target: Target, name: str, *, is_adjusted: bool) -> None:
    """Measure once for each target whether its gradient can guide a sampler.

    Parameters
    ----------
    target
        What will be sampled.
    name
        What the sampler is called.
    is_adjusted
        Whether the distribution is right whatever the gradient says. A useless one is then warned of, not
        refused.
    """
    if not target.domain.is_site_product:
        return
    error = _find_gradient_problem(target)
    if error is not None:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise GradientError(
            f"`{name}` needs the gradient of the log-density, which cannot be taken: {reason} Give "
            "`Target(..., value_and_grad=...)`, or use a recipe without gradient such as `gibbs()`."
        ) from error
    measured = _measure_once(target)
    if not is_adjusted:
        _judge_unadjusted(measured)
        return
    _raise(measured._replace(is_broken=False))  # a state with U = NaN is rejected, and counted
    audit = measured.audit
    if measured.is_zero:
        _warn(_describe_zero(measured))
    elif audit.explained < MIN_EXPLAINED and audit.error_spread > USELESS_ERROR:
        _warn(
            f"The gradient explains next to nothing of one-site differences: {_describe_error(audit)}. "
            "Proposals will hardly ever be accepted; use `gibbs()`, which takes exact differences, or "
            "`differences='exact'` where the recipe has it."
        )


def is_gradient_informative(target: Target) -> bool:
    """Whether first-order predictions correlate with one-site differences on random states; never warns."""
    measured = _measure_once(target)
    return measured.is_finite and measured.audit.correlation >= MIN_CORRELATION


def needs_exact_differences(target: Target) -> bool:
    """Whether a target makes tables of exact differences and its gradient explains less than half of them.

    Not where its arrays are being traced: nothing can be measured then.
    """
    makes_tables = target.has_differences or target.incremental is not None
    if not makes_tables or target.is_multilinear or not is_concrete(target):
        return False
    if not target.domain.is_site_product:
        return False
    if _find_gradient_problem(target) is not None:
        return True
    with evaluate_at_once():  # a recipe may be built inside a traced function
        measured = _measure_once(target)
    return measured.is_zero or not measured.is_finite or measured.audit.explained < MIN_GUIDING


def _find_gradient_problem(target: Target) -> Exception | None:
    """Return why the gradient cannot be taken, or `None` where it can."""
    position = jax.ShapeDtypeStruct(target.domain.shape, jnp.result_type(float))
    try:
        jax.eval_shape(target.value_and_grad, position)
    except Exception as problem:  # noqa: BLE001 - whatever the user's function raises
        return problem
    return None


def check_multilinear(target: Target) -> None:
    """Refuse a target that is declared multilinear and whose gradient is not its differences."""
    measured = _measure_once(target)
    # Both are differences of numbers as large as these, each rounded some dozen times.
    allowed = 1e4 * float(jnp.finfo(jnp.result_type(float)).eps) * measured.scale
    if measured.worst > allowed:
        raise TargetError(
            "`Target(multilinear=True)`: the log-density is not linear in every single site. A change of one "
            f"site changes it by {2 * measured.worst:.3g} more or less than its gradient says. Leave it out."
        )


class Measured(NamedTuple):
    """What was measured, and what is wrong with it."""

    audit: GradientAudit
    largest: float
    worst: float
    scale: float
    is_zero: bool
    is_finite: bool
    is_broken: bool


_MEASURED: "weakref.WeakKeyDictionary[Target, Measured]" = weakref.WeakKeyDictionary()


def _measure_once(target: Target) -> Measured:
    if target not in _MEASURED:
        _MEASURED[target] = _measure(target, np.random.default_rng(SEED))
    return _MEASURED[target]


def _measure(target: Target, generator: np.random.Generator) -> Measured:
    """Compare half predictions with half differences at random states and sites."""
    domain = target.domain
    levels = generator.integers(0, domain.num_levels, (NUM_STATES, domain.num_sites))
    sites = generator.permutation(domain.num_sites)[:NUM_SITES]
    others = np.arange(domain.max_levels) if not domain.is_two_level else np.arange(1)
    others = np.where(domain.is_two_level, 1 - levels[:, sites, None], others)
    exists = (others < np.asarray(domain.num_levels)[sites][:, None]) & (others != levels[:, sites, None])
    found = _evaluate(target, levels, sites, np.where(exists, others, 0))
    slopes, changed, values, gradients, jumps = (np.asarray(array, float) for array in found)
    jumps = np.where(exists, jumps, np.inf)
    is_near = jumps <= jumps.min(axis=2, keepdims=True) * (1 + CLOSE)
    inside = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        differences = np.where(exists, changed - values[:, None, None], np.nan)
    usable = inside[:, None, None] & np.isfinite(differences)
    predicted, true = slopes[usable] / 2, differences[usable] / 2
    near = is_near[usable]
    undefined = GradientAudit(0, *[np.nan] * 6)
    is_finite = bool(np.isfinite(gradients[inside]).all())
    return Measured(
        audit=_figures(predicted[near], true[near], values[inside]) if is_finite else undefined,
        largest=float(2 * np.abs(true).max(initial=0)),
        worst=float(np.abs(predicted - true).max(initial=0.0)),
        scale=float(max(np.abs(values[inside]).max(initial=0.0), np.abs(true).max(initial=0.0), 1.0)),
        is_zero=bool(true.any() and not gradients[inside].any()),
        is_finite=is_finite,
        is_broken=bool(np.isnan(values).any() or (values == np.inf).any()),
    )


@quick_jit
def _evaluate(target: Target, levels: ArrayLike, sites: ArrayLike, others: ArrayLike) -> tuple[Array, ...]:
    """Predicted changes and log-densities after them by state, site and level; values, gradients, jumps."""
    domain = target.domain

    def at(position: Array, others: Array) -> tuple[Array, ...]:
        value, gradient = target.value_and_grad(position)
        slopes = jnp.take_along_axis(domain.slopes(position, gradient)[sites], others, axis=1)
        set_site = jax.vmap(jax.vmap(domain.replace_sites, (None, None, 0)), (None, 0, 0))
        return (
            slopes,
            jax.vmap(jax.vmap(target.log_density))(set_site(position, jnp.asarray(sites), others)),
            value,
            gradient,
            jnp.take_along_axis(domain.squared_jumps(position)[sites], others, axis=1),
        )

    return jax.vmap(at)(domain.from_levels(levels), jnp.asarray(others))


def _raise(measured: Measured) -> None:
    if measured.is_broken:
        raise TargetError(
            "The log-density is NaN or +inf at a random state of the domain. It must be a finite "
            "number, or -inf where a state is impossible."
        )
    if not measured.is_finite:
        raise GradientError(
            "The gradient of the log-density is not finite at a random state whose log-density is "
            "(`jnp.sqrt` at 0 and `jnp.where` around `jnp.log` do that). "
            "Give `Target(..., value_and_grad=...)` a finite one, or use a sampler without gradients "
            "such as `gibbs()`."
        )


def _describe_zero(measured: Measured) -> str:
    return (
        "The gradient of the log-density is exactly zero at every random state, while changing one "
        f"site changes it by up to {measured.largest:.3g}. Log-densities that branch on the "
        "value of a site (`x == 1`, `jnp.where`, `jnp.round`, integer indexing) have no gradient. Write it "
        "as a smooth function of the position, give `value_and_grad`, or use `gibbs()`, which takes exact "
        "differences."
    )


def _describe_error(audit: GradientAudit) -> str:
    return (
        f"correlation {audit.correlation:.2f} over {audit.num_pairs} changes, mean error "
        f"{audit.mean_error:.3g} nats against a mean of {audit.mean_difference:.3g}"
    )


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
        error_spread=float((predicted - true).std()) if true.size else 0.0,
        explained=float(1 - (predicted - true).var() / true.var()) if varies else 1.0,
        resolution=float(np.spacing(np.asarray(largest, jnp.result_type(float)))),
    )


def _warn(sentence: str) -> None:
    warnings.warn(sentence, GradientWarning, stacklevel=4)


def _warn_of_precision(audit: GradientAudit) -> None:
    if audit.resolution > COARSEST_RESOLUTION:
        warnings.warn(
            f"Near this log-density numbers are {audit.resolution:.2g} apart, so differences of single "
            "changes are lost. Subtract a constant from the log-density, or switch to float64 with "
            "`jax.config.update('jax_enable_x64', True)`.",
            PrecisionWarning,
            stacklevel=3,
        )
