"""How programs are compiled."""

from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

import jax
from jax import Array, lax
from jax.experimental.xla_metadata import set_xla_metadata

from steppe.pytree import is_concrete

P = ParamSpec("P")
R = TypeVar("R")

# For what runs once or briefly, so that compiling is most of its time: level 1 compiles up to three times as
# fast and runs 0–30 % slower.
quick_jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 1})

# Elementary updates (steps × chains × sites) below which compiling takes longer than running.
SHORT_WORK = 1e8


def jit_by_work(function: Callable[P, R], **options: Any) -> Callable[[float], Callable[P, R]]:
    """Compile a function in one of two ways, chosen by the work it is called for.

    Parameters
    ----------
    function
        What to compile.
    options
        As for `jax.jit`.

    Returns
    -------
    choose
        `choose(work)` is the function compiled briefly where the work is short, and well otherwise.
    """
    briefly, well = quick_jit(function, **options), jax.jit(function, **options)
    return lambda work: briefly if work < SHORT_WORK else well


def materialize(make: Callable[..., Array], *arguments: Array) -> Array:
    """Return the array that a function makes, computed once and kept until it is used.

    On a CPU, XLA makes every array in a loop of its own and repeats in it all cheap arithmetic that leads
    there, however many loops need the same. A call that is not inlined ends the loop. Nothing is asked of
    other devices, and where XLA ignores the request, the array is the same.
    """
    if not _is_compiled_for_cpu(arguments):
        return make(*arguments)
    array: Any = set_xla_metadata(jax.jit(make)(*arguments), inlineable="false")
    return array


def materialize_words(make: Callable[..., tuple[Array, Array]], *arguments: Array) -> tuple[Array, Array]:
    """Return the two arrays of 32-bit words that a function makes, both from one loop.

    They travel as the halves of complex numbers, because a loop has one result.
    """
    if not _is_compiled_for_cpu(arguments):
        return make(*arguments)

    def packed(*arguments: Array) -> Array:
        return lax.complex(*(lax.bitcast_convert_type(words, "float32") for words in make(*arguments)))

    pairs = materialize(packed, *arguments)
    return lax.bitcast_convert_type(pairs.real, "uint32"), lax.bitcast_convert_type(pairs.imag, "uint32")


def _is_compiled_for_cpu(arguments: tuple[Array, ...]) -> bool:
    return not is_concrete(arguments) and jax.default_backend() == "cpu"
