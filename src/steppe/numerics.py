"""Elementary functions written for speed where JAX's own are slower for the same result.

Logarithms are a large part of a step on a CPU. In float32 two of them are replaced here by polynomials,
 accurate to the last bit or two (`tests/unit/test_numerics.py`); float64 uses JAX's own.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.compiling import materialize

# log(1 + e) / e on [0, 1], interpolated at Chebyshev points; highest power first.
LOG1P = (
    0.00512610214, -0.0290740647, 0.0775160867, -0.136022476, 0.190768807, -0.24835399, 0.333181217,
    -0.49999445, 0.999999966,
)  # fmt: skip

# log(1 + f) / f for 1 + f between √½ and √2, interpolated likewise.
LOG = (
    0.0872229412, -0.14366813, 0.149522752, -0.165623978, 0.199568331, -0.250020742, 0.333341867,
    -0.499999881, 1.0,
)  # fmt: skip
SQRT_HALF_BITS = np.int32(0x3F3504F3)
MANTISSA_BITS = 23

# erf⁻¹(x) / x as a polynomial in w = −log(1 − x²), near and far (Giles 2010, single precision).
NEAR = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
    -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
FAR = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
    0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


def softplus(x: Array) -> Array:
    """`log(1 + exp x)` without overflow, from one exponential."""
    return jnp.maximum(x, 0) + log1p_of_fraction(jnp.exp(-jnp.abs(x)))


@jax.custom_jvp
def log1p_of_fraction(fraction: Array) -> Array:
    """`log(1 + e)` for `e` in [0, 1], to a relative 3·10⁻⁷ in float32."""
    if jnp.result_type(fraction) != jnp.float32:
        return jnp.log1p(fraction)
    return fraction * _polynomial(LOG1P, fraction)


@log1p_of_fraction.defjvp
def _log1p_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (fraction,), (tangent,) = primals, tangents
    return log1p_of_fraction(fraction), tangent / (1 + fraction)


def log1p(x: Array) -> Array:
    """`log(1 + x)`, in float32 to a relative 4·10⁻⁷; NaN where `x ≤ −1`."""
    if jnp.result_type(x) != jnp.float32:
        return jnp.log1p(x)
    rounded = 1 + x
    # What rounding took away is put back, to first order.
    logarithm = log_of_normal_number(rounded) + (x - (rounded - 1)) / rounded
    return jnp.where(rounded > 0, logarithm, jnp.nan)


def log_of_normal_number(x: Array) -> Array:
    """`log x` in float32 for `x` in the range of normal numbers, to a relative 2.4·10⁻⁷.

    Without the cases that JAX's own provides for: zero, infinities, subnormal numbers, NaN.
    """
    bits = jax.lax.bitcast_convert_type(x, jnp.int32)
    exponent = (bits - SQRT_HALF_BITS) >> MANTISSA_BITS
    rest = jax.lax.bitcast_convert_type(bits - (exponent << MANTISSA_BITS), jnp.float32) - 1
    return exponent.astype(jnp.float32) * np.float32(math.log(2)) + rest * _polynomial(LOG, rest)


def normal_quantile(x: Array) -> Array:
    """`√2 erf⁻¹(x)` for `x` in (−1, 1): a standard normal where `x` is uniform."""
    if jnp.result_type(x) != jnp.float32:
        return math.sqrt(2) * jax.lax.erf_inv(x)
    w = -log_of_normal_number((1 - x) * (1 + x))
    near, far = _polynomial(NEAR, w - 2.5), _polynomial(FAR, jnp.sqrt(w) - 3)
    return x * (math.sqrt(2) * jnp.where(w < 5, near, far))


def total(terms: Array) -> Array:
    """Sum over the last axis, as a product with ones.

    On a CPU, XLA hands a plain sum to a library together with part of the arithmetic of its terms, and leaves
    the rest behind in many arrays; for a single chain it does the same to a product. In a call of its own it
    gets one array of terms, made in one pass.
    """
    return materialize(_total, terms)


def _total(terms: Array) -> Array:
    return jnp.matmul(terms, jnp.ones(terms.shape[-1:], terms.dtype), precision="highest")


def log_sum_exp(values: Array) -> Array:
    """`log Σ exp` over the last axis, where `−inf` counts nothing; summed as `total` does."""
    largest = jnp.max(values, axis=-1, keepdims=True)
    zero = jnp.where(jnp.isfinite(largest), largest, 0)
    return jnp.log(total(jnp.exp(values - zero))) + zero[..., 0]


def first_maximum(values: Array) -> Array:
    """Index of the largest value along the last axis, as `argmax` where nothing is NaN.

    On a CPU, XLA makes the values of an `argmax` one at a time inside its loop; a maximum and a comparison
    are vectorised.
    """
    return jnp.argmax(values == jnp.max(values, axis=-1, keepdims=True), axis=-1)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    result = jnp.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        result = result * x + np.float32(coefficient)
    return result
