"""Checks of the numbers and options a recipe is called with."""

from typing import Any

import numpy as np

from steppe.errors import RecipeError
from steppe.pytree import is_concrete


def number(name: str, argument: str, value: Any) -> Any:
    """Pass tracers through, so that recipes can be made inside `jit`; make the rest floats."""
    if not is_concrete(value):
        return value
    try:
        array = np.asarray(value)
        is_real = array.shape == () and array.dtype.kind in "fiu" and bool(np.isfinite(array))
    except TypeError:  # a random key, for one
        array, is_real = np.zeros(()), False
    if not is_real:
        raise RecipeError(
            f"`{name}({argument}=...)` must be a finite number; got {value!r}. Leave it out for the default."
        )
    return float(array)


def positive(name: str, argument: str, value: Any, default: Any = None) -> Any:
    """Return a positive finite number, or the default where nothing was given."""
    if value is None and default is not None:
        return default
    checked = number(name, argument, value)
    if is_concrete(checked) and checked <= 0:
        raise RecipeError(
            f"`{name}({argument}=...)` must be a positive number; got {value!r}. Leave it out for the "
            "default."
        )
    return checked


def count(name: str, argument: str, value: Any) -> int:
    """Return an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise RecipeError(
            f"`{name}({argument}=...)` must be an integer of at least 1; got {value!r}. Leave it out for "
            "the default."
        )
    return int(value)


def choice(name: str, argument: str, value: Any, allowed: Any) -> Any:
    """Return one of the strings of a `Literal`."""
    if value not in allowed.__args__:
        options = " or ".join(repr(option) for option in allowed.__args__)
        raise RecipeError(f"`{name}({argument}=...)` must be {options}; got {value!r}.")
    return value
