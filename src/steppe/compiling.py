"""How programs are compiled."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
from jax import Array, lax
from jax.experimental.xla_metadata import set_xla_metadata

from steppe.pytree import is_concrete

# For what runs once or briefly, so that compiling is most of its time: level 1 compiles up to three times as
# fast and runs 0–30 % slower.
quick_jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 1})


def made_once(make: Callable[..., Array], *arguments: Array) -> Array:
    """Return the array that a function makes, made once and kept until it is used.

    On a CPU, XLA makes every array in a loop of its own and repeats in it all cheap arithmetic that leads
    there, however many loops need the same. A call that is not inlined ends the loop. Nothing is asked of
    other devices, and where XLA ignores the request, the array is the same.
    """
    if not _is_compiled_for_cpu(arguments):
        return make(*arguments)
    array: Any = set_xla_metadata(jax.jit(make)(*arguments), inlineable="false")
    return array


def words_made_once(make: Callable[..., tuple[Array, Array]], *arguments: Array) -> tuple[Array, Array]:
    """Return the two arrays of 32-bit words that a function makes, both from one loop.

    They travel as the halves of complex numbers, because a loop has one result.
    """
    if not _is_compiled_for_cpu(arguments):
        return make(*arguments)

    def packed(*arguments: Array) -> Array:
        return lax.complex(*(lax.bitcast_convert_type(words, "float32") for words in make(*arguments)))

    pairs = made_once(packed, *arguments)
    return lax.bitcast_convert_type(pairs.real, "uint32"), lax.bitcast_convert_type(pairs.imag, "uint32")


def _is_compiled_for_cpu(arguments: tuple[Array, ...]) -> bool:
    return not is_concrete(arguments) and jax.default_backend() == "cpu"
