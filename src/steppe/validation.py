"""Validation of arguments: every refusal names the call, the rule, the value it got and a remedy.

`given` is what the user wrote, such as `"edmala(step_size=...)"`; `error` is the type of the refusal and
`remedy` its last sentence. Values are checked unless they are being traced, so that samplers and targets can
be made inside `jit`. What is not traced stays on the host: small operations there compile nothing.
"""

import difflib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.errors import CallbackError, RecipeError, RunError, SteppeError, TargetError
from steppe.pytree import Relative, is_concrete

Refusal = type[SteppeError]
P = ParamSpec("P")
R = TypeVar("R")
LEAVE_OUT = "Leave it out for the default."
MAX_SHOWN = 160


def refuse(given: str, rule: str, value: object, error: Refusal, remedy: str = "") -> SteppeError:
    """Return the error that says what was given, what it must be, and what to do."""
    return error(f"`{given}` must be {rule}; got {shorten(value)}. {remedy}".rstrip())


def shorten(value: object) -> str:
    """Show a value in one line of at most a hundred and some characters."""
    try:
        shown = " ".join(repr(value).split())
    except Exception:  # noqa: BLE001 - a value that cannot be shown is still refused
        shown = f"a {type(value).__name__}"
    return shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"


# ---- numbers -----------------------------------------------------------------------------------


def number(given: str, value: Any, *, error: Refusal = RecipeError, remedy: str = LEAVE_OUT) -> Any:
    """Pass tracers and multiples of a domain's unit through; make the rest finite floats."""
    if isinstance(value, Relative) or not is_concrete(value):
        return value
    try:
        array = np.asarray(value)
        is_real = array.shape == () and array.dtype.kind in "fiu" and bool(np.isfinite(array))
    except (TypeError, ValueError):  # a random key or rows of unequal length, for two
        array, is_real = np.zeros(()), False
    if not is_real:
        raise refuse(given, "a finite number", value, error, remedy)
    return float(array)


def positive(
    given: str, value: Any, default: Any = None, *, error: Refusal = RecipeError, remedy: str = LEAVE_OUT
) -> Any:
    """Return a positive finite number, or the default where nothing was given."""
    if value is None and default is not None:
        return default
    checked = number(given, value, error=error, remedy=remedy)
    if _is_known(checked) and checked <= 0:
        raise refuse(given, "a positive number", value, error, remedy)
    return checked


def not_negative(given: str, value: Any, *, error: Refusal = RecipeError, remedy: str = LEAVE_OUT) -> Any:
    """Return a finite number of at least 0."""
    checked = number(given, value, error=error, remedy=remedy)
    if _is_known(checked) and checked < 0:
        raise refuse(given, "a number of at least 0", value, error, remedy)
    return checked


def within(
    given: str,
    value: Any,
    interval: str,
    *,
    error: Refusal = RecipeError,
    remedy: str = LEAVE_OUT,
) -> Any:
    """Return a number inside an interval written as in a text: `"[0, 1)"` holds 0 and not 1."""
    low, high = map(float, interval[1:-1].split(","))
    checked = number(given, value, error=error, remedy=remedy)
    if _is_known(checked):
        is_above = low <= checked if interval[0] == "[" else low < checked
        is_below = checked <= high if interval[-1] == "]" else checked < high
        if not (is_above and is_below):
            raise refuse(given, f"in {interval}", value, error, remedy)
    return checked


def _is_known(checked: Any) -> bool:
    return not isinstance(checked, Relative) and is_concrete(checked)


def count(
    given: str, value: Any, minimum: int = 1, *, error: Refusal = RecipeError, remedy: str = LEAVE_OUT
) -> int:
    """Return an integer of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise refuse(given, f"an integer of at least {minimum}", value, error, remedy)
    return int(value)


# ---- everything else that is one value ---------------------------------------------------------


def choice(given: str, value: Any, options: Any, *, error: Refusal = RecipeError, remedy: str = "") -> Any:
    """Return one of the strings of a tuple or of a `Literal`."""
    allowed = get_args(options) or options
    if not isinstance(value, str) or value not in allowed:
        raise refuse(given, " or ".join(map(repr, allowed)), value, error, remedy)
    return value


def flag(given: str, value: Any, *, error: Refusal = RunError, remedy: str = "") -> bool:
    """Return True or False; nothing else stands for them."""
    if not isinstance(value, bool):
        raise refuse(given, "True or False", value, error, remedy)
    return value


def log_densities(given: str, values: ArrayLike, error: Refusal = RunError) -> np.ndarray:
    """Return values of a log-density, of which none may be NaN or +inf."""
    array = np.asarray(values, float)
    is_broken = np.isnan(array) | (array == np.inf)
    if is_broken.any():
        raise error(
            f"`{given}`: the log-density is {array[is_broken].flat[0]} at {int(is_broken.sum())} of "
            f"{array.size} states. It must be a finite number, or −inf where a state is forbidden; look for "
            "a 0/0 or the log of a negative."
        )
    return array


def path(given: str, value: Any, *, error: Refusal = RunError, remedy: str = "") -> Path:
    """Return the path of a file or directory, which need not be there."""
    if not isinstance(value, str | Path) or not str(value).strip("\0"):
        raise refuse(given, "the path of a directory", value, error, remedy)
    return Path(value)


def random_key(call: str, key: Any) -> Array:
    """Return one typed random key; raw key data is wrapped."""
    if not is_random_key(key):
        raise refuse(f"{call}(key=...)", "one random key such as `jax.random.key(0)`", key, RunError)
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key
    return jax.random.wrap_key_data(jnp.asarray(key, jnp.uint32))


def is_random_key(key: Any) -> bool:
    """Whether a value is one typed random key or the data of one."""
    if not isinstance(key, Array | np.ndarray):
        return False
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key.shape == ()
    return key.dtype == np.uint32 and key.shape == (2,)


# ---- arrays ------------------------------------------------------------------------------------


def real_array(given: str, value: Any, *, ndim: int | None = None, error: Refusal = TargetError) -> Any:
    """Return `value` in the default float type, refusing NaN, infinities and a wrong number of axes."""
    dtype = jnp.result_type(float)
    try:
        array = np.asarray(value, dtype) if is_concrete(value) else jnp.asarray(value, dtype)
    except (TypeError, ValueError) as problem:
        raise refuse(given, "an array of real numbers", value, error) from problem
    if ndim is not None and array.ndim != ndim:
        raise error(f"`{given}` must have {ndim} axes; got an array of shape {array.shape}.")
    if isinstance(array, np.ndarray) and not np.isfinite(array).all():
        where = np.argwhere(~np.isfinite(array))[0].tolist()
        raise error(f"`{given}` must be finite; got {array[tuple(where)]} at index {where}.")
    return array


def array_of_shape(given: str, value: Any, *shapes: tuple[int, ...], error: Refusal = TargetError) -> Any:
    """Return `value` in the first shape; it must have one of the shapes or be one number."""
    array = real_array(given, value, error=error)
    if array.shape not in ((), *shapes):
        wanted = " or ".join(str(shape) for shape in shapes)
        raise error(f"`{given}` must be one number or an array of shape {wanted}; got {array.shape}.")
    if array.size == np.prod(shapes[0]):
        return array.reshape(shapes[0])
    return (np if isinstance(array, np.ndarray) else jnp).broadcast_to(array, shapes[0])


def real_scalar(given: str, value: Any, *, error: Refusal = TargetError) -> Any:
    """Return one finite real number as an array without axes; tracers pass."""
    array = real_array(given, value, error=error)
    if array.shape != ():
        raise error(f"`{given}` must be one number; got an array of shape {array.shape}.")
    return array


def positive_scalar(given: str, value: Any, *, error: Refusal = TargetError) -> Any:
    """Return one positive number as an array without axes; tracers pass."""
    checked = real_scalar(given, value, error=error)
    if is_concrete(checked) and not checked > 0:
        raise refuse(given, "positive", value, error)
    return checked


def square_matrix(given: str, value: Any, *, error: Refusal = TargetError) -> Any:
    """Return a finite square matrix with at least one row."""
    matrix = real_array(given, value, error=error)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise error(f"`{given}` must be a square matrix; got an array of shape {matrix.shape}.")
    return matrix


def symmetric_matrix(given: str, value: Any, *, error: Refusal = TargetError) -> Any:
    """Return a finite symmetric matrix with a zero diagonal."""
    matrix = square_matrix(given, value, error=error)
    if not isinstance(matrix, np.ndarray):
        return matrix
    gap = np.abs(matrix - matrix.T)
    if gap.max() > 1e-6 * np.abs(matrix).max():
        i, j = np.unravel_index(np.argmax(gap), gap.shape)
        raise error(
            f"`{given}` must be symmetric; got {matrix[i, j]:g} at ({i}, {j}) and {matrix[j, i]:g} at "
            f"({j}, {i}). Give `(A + A.T) / 2` if pairs were meant to be summed from both entries."
        )
    if matrix.diagonal().any():
        site = int(np.argmax(matrix.diagonal() != 0))
        raise error(
            f"`{given}` must have a zero diagonal; got {matrix[site, site]:g} at site {site}. A site does "
            "not interact with itself; put terms of single sites into the field."
        )
    return matrix


def zeros(*shape: int) -> Any:
    """Zeros in the default float type, on the host."""
    return np.zeros(shape, jnp.result_type(float))


# ---- functions of the user -----------------------------------------------------------------------


def call_back(given: str, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function that the user gave; say which one it was if it raises."""
    try:
        return function(*args, **kwargs)
    except SteppeError:
        raise
    except Exception as error:
        raise CallbackError(f"`{given}` raised {type(error).__name__}: {shorten(str(error))}.") from error


# ---- names -------------------------------------------------------------------------------------


def find_name(name: str, known: Iterable[str], kind: str) -> str:
    """Return a name that is known, or say which known ones are near it."""
    names = list(known)
    if name in names:
        return name
    near = find_near_names(name, names)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"There are {', '.join(names)}."
    raise RunError(f"There is no {kind} named {name!r}. {hint}")


def find_near_names(name: str, known: Iterable[str], number: int = 3) -> list[str]:
    """Return the known names that are spelled most like a name, none where nothing is like it."""
    return difflib.get_close_matches(name, list(known), n=number)
