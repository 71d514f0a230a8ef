"""Checks of what a target is made from: each refusal names the function, the field and a remedy.

Shapes are always checked. Values are checked unless they are being traced, so that a target can be made
inside `jit` from weights under training or a temperature that is annealed. What is not traced stays a
NumPy array until the target is complete: small operations on the host compile nothing.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from steppe.errors import TargetError
from steppe.pytree import is_concrete


def real_array(name: str, value: Any, *, ndim: int | None = None) -> Any:
    """Return `value` in the default float type, refusing NaN, infinities and a wrong number of axes."""
    dtype = jnp.result_type(float)
    try:
        array = np.asarray(value, dtype) if is_concrete(value) else jnp.asarray(value, dtype)
    except (TypeError, ValueError) as error:
        raise TargetError(f"`{name}` must be an array of real numbers; got {value!r}.") from error
    if ndim is not None and array.ndim != ndim:
        raise TargetError(f"`{name}` must have {ndim} axes; got an array of shape {array.shape}.")
    if isinstance(array, np.ndarray) and not np.isfinite(array).all():
        where = np.argwhere(~np.isfinite(array))[0].tolist()
        raise TargetError(f"`{name}` must be finite; got {array[tuple(where)]} at index {where}.")
    return array


def array_of_shape(name: str, value: Any, *shapes: tuple[int, ...]) -> Any:
    """Return `value` in the first shape; it must have one of the shapes or be one number."""
    array = real_array(name, value)
    if array.shape not in ((), *shapes):
        wanted = " or ".join(str(shape) for shape in shapes)
        raise TargetError(f"`{name}` must be one number or an array of shape {wanted}; got {array.shape}.")
    if array.size == np.prod(shapes[0]):
        return array.reshape(shapes[0])
    return (np if isinstance(array, np.ndarray) else jnp).broadcast_to(array, shapes[0])


def zeros(*shape: int) -> Any:
    """Zeros in the default float type, on the host."""
    return np.zeros(shape, jnp.result_type(float))


def number(name: str, value: Any) -> Any:
    """Return one finite real number; tracers pass."""
    array = real_array(name, value)
    if array.shape != ():
        raise TargetError(f"`{name}` must be one number; got an array of shape {array.shape}.")
    return array


def positive(name: str, value: Any) -> Any:
    """Return one positive number; tracers pass."""
    checked = number(name, value)
    if is_concrete(checked) and not checked > 0:
        raise TargetError(f"`{name}` must be positive; got {value!r}.")
    return checked


def count(name: str, value: Any, minimum: int = 1) -> int:
    """Return an integer of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise TargetError(f"`{name}` must be an integer of at least {minimum}; got {value!r}.")
    return int(value)


def square_matrix(name: str, value: Any) -> Any:
    """Return a finite square matrix with at least one row."""
    matrix = real_array(name, value)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise TargetError(f"`{name}` must be a square matrix; got an array of shape {matrix.shape}.")
    return matrix


def symmetric_matrix(name: str, value: Any) -> Any:
    """Return a finite symmetric matrix with a zero diagonal."""
    matrix = square_matrix(name, value)
    if not isinstance(matrix, np.ndarray):
        return matrix
    gap = np.abs(matrix - matrix.T)
    if gap.max() > 1e-6 * np.abs(matrix).max():
        i, j = np.unravel_index(np.argmax(gap), gap.shape)
        raise TargetError(
            f"`{name}` must be symmetric; got {matrix[i, j]:g} at ({i}, {j}) and {matrix[j, i]:g} at "
            f"({j}, {i}). Give `(A + A.T) / 2` if pairs were meant to be summed from both entries."
        )
    if matrix.diagonal().any():
        site = int(np.argmax(matrix.diagonal() != 0))
        raise TargetError(
            f"`{name}` must have a zero diagonal; got {matrix[site, site]:g} at site {site}. A site does "
            "not interact with itself; put terms of single sites into the field."
        )
    return matrix


def choice(name: str, value: Any, options: tuple[str, ...]) -> str:
    """Return one of the options."""
    if value not in options:
        listed = " or ".join(repr(option) for option in options)
        raise TargetError(f"`{name}` must be {listed}; got {value!r}.")
    return value
