"""Checks of the numbers and options a recipe is called with."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.errors import RecipeError, RunError
from steppe.pytree import Relative, is_concrete


def number(name: str, argument: str, value: Any) -> Any:
    """Pass tracers and multiples of a domain's unit through; make the rest floats."""
    if isinstance(value, Relative) or not is_concrete(value):
        return value
    try:
        array = np.asarray(value)
        is_real = array.shape == () and array.dtype.kind in "fiu" and bool(np.isfinite(array))
    except (TypeError, ValueError):  # a random key or rows of unequal length, for two
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
    if not isinstance(checked, Relative) and is_concrete(checked) and checked <= 0:
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


def random_key(name: str, key: Any) -> Array:
    """Return one typed random key; raw key data is wrapped."""
    try:
        if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
            key = jax.random.wrap_key_data(jnp.asarray(key, jnp.uint32))
        if key.shape == ():
            return key
    except (AttributeError, TypeError, ValueError):
        pass
    raise RunError(f"`{name}(key=...)` must be one random key such as `jax.random.key(0)`; got {key!r}.")


def choice(name: str, argument: str, value: Any, allowed: Any) -> Any:
    """Return one of the strings of a `Literal`."""
    if not isinstance(value, str) or value not in allowed.__args__:
        options = " or ".join(repr(option) for option in allowed.__args__)
        raise RecipeError(f"`{name}({argument}=...)` must be {options}; got {value!r}.")
    return value
