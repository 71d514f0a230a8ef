"""How programs are compiled, and where compiled programs are kept."""

import hashlib
import os
import platform
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import jax
import jaxlib
import numpy as np
from jax import Array, lax
from jax.experimental.compilation_cache import compilation_cache
from jax.experimental.xla_metadata import set_xla_metadata
from jaxtyping import PyTree

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


# The switch: "off" keeps no programs. JAX's own settings, where there are any, are left alone.
CACHE_VARIABLE = "STEPPE_COMPILE_CACHE"
MAX_CACHE_BYTES = 500 * 2**20
# Programs that compile in less are not worth a file.
MIN_COMPILE_SECONDS = 0.1


def keep_programs() -> Path | None:
    """Let JAX keep compiled programs in a directory of the user, and return it; `None` where it is not used.

    One directory per version of jaxlib and set of processor features, of mode 0700. JAX bounds its size,
    drops what was not used for longest, and locks it, so that processes may share it.
    """
    given = jax.config.values
    is_own = given["jax_compilation_cache_dir"] is not None or not given["jax_enable_compilation_cache"]
    if is_own or is_switched_off(CACHE_VARIABLE):
        return None
    directory = find_program_directory()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)  # refused where the directory is another user's
    except (OSError, RuntimeError):  # or a home that is missing or may not be written to
        return None
    settings = {
        "jax_compilation_cache_dir": (None, str(directory)),
        "jax_compilation_cache_max_size": (-1, MAX_CACHE_BYTES),
        "jax_persistent_cache_min_compile_time_secs": (1.0, MIN_COMPILE_SECONDS),
    }
    for name, (default, value) in settings.items():
        if given[name] == default:
            jax.config.update(name, value)
    compilation_cache.reset_cache()  # which looks at its settings once, perhaps before this
    return directory


def is_switched_off(variable: str) -> bool:
    """Whether an environment variable says no."""
    return os.environ.get(variable, "").lower() in ("off", "0", "no", "false")


def find_program_directory() -> Path:
    """Where programs are kept that were compiled by this jaxlib for this processor."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    features = [line for line in lines if line.startswith(("flags", "Features", "model name"))][:2]
    described = "\n".join(features) or f"{platform.machine()} {platform.processor()}"
    digest = hashlib.sha256(described.encode()).hexdigest()[:12]
    return caches / "steppe" / "programs" / f"jaxlib-{jaxlib.version.__version__}-{digest}"


def evaluate_at_once() -> AbstractContextManager[None]:
    """Evaluate what is concrete at once, also inside a traced function.

    Elsewhere that happens anyway, and asking for it would compile every constant of a program by itself.
    """
    is_traced = not is_concrete(jax.device_put(np.zeros(())))
    return jax.ensure_compile_time_eval() if is_traced else nullcontext()


def materialize(make: Callable[..., Array], *arguments: PyTree) -> Array:
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


def _is_compiled_for_cpu(arguments: tuple[PyTree, ...]) -> bool:
    return not is_concrete(arguments) and jax.default_backend() == "cpu"


# Before anything is compiled: JAX looks at these settings once.
keep_programs()


def pad_rows(rows: np.ndarray, minimum: int = 16) -> np.ndarray:
    """Rows, the first repeated until their number is a power of two: few sizes are compiled."""
    size = max(minimum, 1 << max(len(rows) - 1, 0).bit_length())
    return np.concatenate([rows, np.repeat(rows[:1], size - len(rows), axis=0)]) if len(rows) else rows
