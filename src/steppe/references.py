"""References of parallel tempering: product distributions near a target, from which its ladder begins."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.arguments import checked
from steppe.compiling import quick_jit
from steppe.errors import TargetError
from steppe.target import Target

MIN_PROBABILITY = 1e-4
DAMPING = 0.5


@checked(TargetError, num_steps="[1, inf)")
def mean_field(target: Target, *, key: Array | None = None, num_steps: int = 200) -> np.ndarray:
    """Fit a product distribution to a target by the naive mean-field equations.

    Parameters
    ----------
    target
        On sites with as many levels each, real or one-hot.
    key
        Random key of the start, which breaks symmetries; by default the start is uniform.
    num_steps
        Damped steps of the fixed-point equations `q_i(k) ∝ exp{∂U/∂θ_i · level k}`, with the gradient at the
        mean of `q`. Where `U` is linear in each site a fixed point is a stationary point of the evidence
        bound; elsewhere it is only a guess, which a reference may be.

    Returns
    -------
    numpy.ndarray
        Probabilities (site, level), none below 10⁻⁴, for `parallel_tempering(reference=...)`.

    Examples
    --------
    >>> import steppe
    >>> target = steppe.targets.ising_lattice((4, 4), coupling=0.1, field=0.5)
    >>> steppe.mean_field(target)[0].round(2).tolist()
    [0.18, 0.82]
    """
    domain = target.domain
    if not domain.is_site_product or domain.is_ragged:
        raise TargetError(f"`mean_field(target)` needs sites with as many levels each; got {domain!r}.")
    logits = jnp.zeros((domain.num_sites, domain.max_levels))
    if key is not None:
        logits = logits + 0.1 * jax.random.normal(key, logits.shape)
    table = np.asarray(jax.nn.softmax(_iterate(target, logits, num_steps)), float)
    if not np.isfinite(table).all():
        raise TargetError(
            "`mean_field(target)` met a gradient that is not finite. Give a reference yourself."
        )
    table = np.maximum(table, MIN_PROBABILITY)
    return table / table.sum(axis=1, keepdims=True)


@quick_jit
def _iterate(target: Target, logits: Array, num_steps: int) -> Array:
    domain = target.domain
    levels = jnp.arange(domain.max_levels)
    table = jax.vmap(lambda level: domain.from_levels(jnp.full(domain.num_sites, level)), out_axes=1)(levels)

    def step(_: int, logits: Array) -> Array:
        weights = jax.nn.softmax(logits)
        weights = weights.reshape(weights.shape + (1,) * (table.ndim - 2))
        gradient = target.value_and_grad(jnp.sum(weights * table, axis=1))[1]
        products = gradient[:, None] * table
        slopes = products.reshape(*products.shape[:2], -1).sum(axis=-1)
        return (1 - DAMPING) * logits + DAMPING * slopes

    return jax.lax.fori_loop(0, num_steps, step, logits)
