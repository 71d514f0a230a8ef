"""Identity of a run: what a directory knows target, sampler, chains and software by.

No printed form of anything is part of it. JAX prints programs in colour on a terminal, other versions print
them otherwise, and a callback prints as its address; so the program is walked, and the log-density is
evaluated at a few fixed states.
"""

import dataclasses
import hashlib
import json
import math
import os
import platform
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.metadata import distribution, version
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var

from steppe.compiling import quick_jit
from steppe.domain.base import Domain
from steppe.domain.product import Product
from steppe.target import Target

if TYPE_CHECKING:
    from steppe.run.storage.record import Number, TargetIdentity

NUM_STATES = 16
# Names of functions: renaming one changes no draw.
_IGNORED_PARAMETERS = ("name", "debug_info")
_UNFIT = re.compile(r"[^A-Za-z0-9_.-]")
HARMLESS_FLAGS = ("--xla_force_host_platform_device_count",)
GIT_SECONDS = 5.0
# Instruction sets that XLA compiles for.
CPU_FEATURES = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512_bf16", "amx_tile", "asimd", "sve")


def identify_target(target: Target, *, uses_gradient: bool) -> "TargetIdentity":
    """Return what a target is known by.

    Parameters
    ----------
    target
        The target.
    uses_gradient
        Whether the sampler uses its gradient, so that it is part of the identity.
    """
    from steppe.run.storage.record import TargetIdentity

    shown = _hold_fixed_reals(target)
    values, slopes = _evaluate(shown, *_fixed_states(target.domain), uses_gradient=uses_gradient)
    return TargetIdentity(
        arrays=digest_arrays(jax.tree.leaves(target)),
        program=digest_program(shown, uses_gradient=uses_gradient),
        log_density=_as_numbers(values),
        slope=None if slopes is None else _as_numbers(slopes),
    )


def identify_observable(evaluate: Callable[..., Array], domain: Domain, *, of_pairs: bool) -> "list[Number]":
    """Return the values of an observable at the fixed states, or at pairs of them, as kernels hold them."""
    positions = domain.from_levels(jnp.asarray(_fixed_states(domain)[0]))
    others = (jnp.roll(positions, 1, axis=0),) if of_pairs else ()
    return _as_numbers(jax.lax.map(lambda states: evaluate(*states), (positions, *others)))


def are_close(first: "Sequence[Number] | None", second: "Sequence[Number] | None", dtype: str) -> bool:
    """Whether values are the same but for rounding, relative to the largest of them."""
    if first is None or second is None or len(first) != len(second):
        return first is second
    pairs = [(float(a), float(b)) for a, b in zip(first, second, strict=True)]
    scale = max([1.0, *(abs(a) for a, _ in pairs if math.isfinite(a))])
    tolerance = math.sqrt(float(jnp.finfo(dtype).eps)) * scale
    return all(a == b or abs(a - b) <= tolerance or (math.isnan(a) and math.isnan(b)) for a, b in pairs)


# ---- values ----------------------------------------------------------------------------------------


def _fixed_states(domain: Domain) -> tuple[np.ndarray, np.ndarray]:
    """Levels and directions, from bits that depend on no library's random numbers."""
    words = [_words(f"steppe state {i}", domain.num_sites) for i in range(NUM_STATES)]
    if domain.is_site_product:
        levels = np.stack(words) % np.asarray(domain.num_levels, np.uint32)
    else:
        levels = np.argsort(np.stack(words), axis=-1, kind="stable")
    size = math.prod(domain.shape)
    signs = np.stack([_words(f"steppe direction {i}", size) % 2 for i in range(NUM_STATES)])
    directions = (2.0 * signs - 1).reshape((NUM_STATES, *domain.shape))
    return levels.astype(np.int32), directions.astype(jnp.result_type(float))


def _hold_fixed_reals(target: Target) -> Target:
    """A mixed target at fixed real coordinates, uniform within a scale about 0; others as they are."""
    domain = target.domain
    if not isinstance(domain, Product) or not domain.num_reals:
        return target
    uniform = _words("steppe reals", domain.num_reals) / 2**31 - 1
    return target.given(jnp.asarray(uniform * domain.real_scales, jnp.result_type(float)))


def _words(seed: str, count: int) -> np.ndarray:
    return np.frombuffer(hashlib.shake_256(seed.encode()).digest(4 * count), "<u4")


@partial(quick_jit, static_argnames="uses_gradient")
def _evaluate(
    target: Target, levels: Array, directions: Array, *, uses_gradient: bool
) -> tuple[Array, Array | None]:
    """U, and its derivative along the directions, one state after another."""
    positions = target.domain.from_levels(levels)
    if not uses_gradient:
        return jax.lax.map(target.log_density, positions), None

    def at(state: tuple[Array, Array]) -> tuple[Array, Array]:
        value, gradient = target.value_and_grad(state[0])
        return value, jnp.sum(gradient * state[1])

    return jax.lax.map(at, (positions, directions))


def _as_numbers(values: Array) -> "list[Number]":
    numbers: list[float] = np.asarray(values, float).tolist()
    return [value if math.isfinite(value) else str(value) for value in numbers]  # type: ignore[misc]


# ---- digests ---------------------------------------------------------------------------------------


def digest_arrays(arrays: Sequence[object]) -> str:
    """Digest of arrays, the same in any order."""
    digests = sorted(hashlib.sha256(_content(array)).digest() for array in arrays)
    return hashlib.sha256(b"".join(digests)).hexdigest()


def digest_program(target: Target, *, uses_gradient: bool) -> str:
    """Digest of the operations that evaluate a target, and of the constants in them."""
    position = jax.ShapeDtypeStruct(target.domain.shape, jnp.result_type(float))
    leaves, structure = jax.tree.flatten(target)

    def evaluate(arrays: Sequence[Array], position: Array) -> object:
        bound = jax.tree.unflatten(structure, arrays)
        return bound.value_and_grad(position) if uses_gradient else bound.log_density(position)

    # Arrays of the target are inputs, so that the program is the same for all targets of one kind.
    walk = _Walk()
    walk.follow_closed(jax.make_jaxpr(evaluate)(leaves, position))
    return walk.digest.hexdigest()


class _Walk:
    """Operations of a program in order, with what they are applied to."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()

    def follow_closed(self, program: ClosedJaxpr) -> None:
        self.follow(program.jaxpr)
        for constant in program.consts:
            self.digest.update(_content(constant))

    def follow(self, program: Jaxpr) -> None:
        numbers: dict[Var, int] = {}
        for variable in (*program.constvars, *program.invars):
            self._define(variable, numbers)
        for operation in program.eqns:
            self._note("operation", operation.primitive.name)
            for atom in operation.invars:
                self._use(atom, numbers)
            for name, value in sorted(operation.params.items()):
                if name not in _IGNORED_PARAMETERS:
                    self._note("parameter", name)
                    self._parameter(value)
            for variable in operation.outvars:
                self._define(variable, numbers)
        for atom in program.outvars:
            self._use(atom, numbers)

    def _define(self, variable: Var, numbers: dict[Var, int]) -> None:
        numbers[variable] = len(numbers)
        self._note("type", *_type(variable))

    def _use(self, atom: Var | Literal, numbers: dict[Var, int]) -> None:
        if isinstance(atom, Literal):
            self.digest.update(_content(atom.val))
        else:
            self._note("use", numbers[atom])

    def _parameter(self, value: object) -> None:
        """What has no form of its own, such as a callback, leaves no trace; its values do."""
        if isinstance(value, ClosedJaxpr):
            self.follow_closed(value)
        elif isinstance(value, Jaxpr):
            self.follow(value)
        elif isinstance(value, tuple | list):
            self._note("length", len(value))
            for item in value:
                self._parameter(item)
        elif isinstance(value, np.ndarray | np.generic | jax.Array):
            self.digest.update(_content(value))
        elif value is None or isinstance(value, bool | int | float | str | np.dtype):
            self._note("value", value)

    def _note(self, *what: object) -> None:
        self.digest.update("\0".join(map(str, what)).encode() + b"\n")


def _type(variable: Var) -> tuple[object, object]:
    kind = variable.aval
    return getattr(kind, "shape", ()), getattr(kind, "dtype", "")


def _content(array: object) -> bytes:
    if isinstance(array, Array) and jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    host = np.asarray(array)
    return f"{host.dtype}{host.shape}".encode() + np.ascontiguousarray(host).tobytes()


# ---- components ----------------------------------------------------------------------------------


def identify_component(kind: type) -> str:
    """Return the id of a class of components.

    A class states its id (`component_id`), which never changes and is never given to another one. A class
    without one, such as a block of your own, is known by module and name.
    """
    # Not inherited: a subclass does something else.
    return vars(kind).get("component_id", f"{kind.__module__}:{kind.__qualname__}")


def describe_component(node: object) -> object:
    """Return a component with everything in it as JSON: ids, numbers, choices; not the target."""
    if isinstance(node, tuple | list):
        return [describe_component(child) for child in node]
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        values = {field.name: getattr(node, field.name) for field in dataclasses.fields(node)}
        inside = {
            name: describe_component(value) for name, value in values.items() if not isinstance(value, Target)
        }
        return {"id": identify_component(type(node)), **inside}
    return _describe_value(node)


def _describe_value(value: object) -> object:
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        return _describe_array(np.asarray(value))
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    kind = value if callable(value) and hasattr(value, "__qualname__") else type(value)
    return f"{kind.__module__}:{kind.__qualname__}"


def _describe_array(array: np.ndarray) -> object:
    if array.ndim == 0:
        return _describe_value(array.item())
    content = np.ascontiguousarray(array)
    digest = hashlib.sha256(content.tobytes()).hexdigest()
    return {"shape": list(array.shape), "dtype": str(array.dtype), "sha256": digest}


# ---- chains --------------------------------------------------------------------------------------


def name_leaves(tree: object) -> list[str]:
    """Return the name of every leaf of a tree, in the order of `jax.tree.leaves`.

    A name is the path of fields, keys and positions that leads to the leaf, such as `state.position`.
    """
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(tree)]
    names: list[str] = []
    for path in paths:
        name = _UNFIT.sub("_", jax.tree_util.keystr(path, simple=True, separator=".")) or "value"
        while name in names:  # keys of a dictionary may look alike once they are fit for a file
            name += "_"
        names.append(name)
    return names


# ---- software ------------------------------------------------------------------------------------


def describe_software() -> dict[str, str]:
    """Return versions, device, processor features and flags, and the commit where it is known."""
    flags, commit = os.environ.get("XLA_FLAGS", "").strip(), find_commit()
    return {
        "steppe": _version("steppe"),
        "jax": jax.__version__,
        "jaxlib": _version("jaxlib"),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "device": jax.devices()[0].device_kind,
        "cpu": _cpu(),
        **({"xla_flags": flags} if flags else {}),
        **({"commit": commit} if commit else {}),
    }


def find_other_software(saved: Mapping[str, str], here: Mapping[str, str]) -> tuple[str, str, str] | None:
    """Return the first difference that may change the last bit of a draw: what, there, and here."""
    for what in ("jax", "jaxlib", "device", "cpu", "xla_flags"):
        there, now = saved.get(what, ""), here.get(what, "")
        if what == "xla_flags":
            there, now = _drop_harmless(there), _drop_harmless(now)
        if there != now:
            return what, there, now
    return None


def _drop_harmless(flags: str) -> str:
    """Flags in order, without those that say where chains run and not what they compute."""
    return " ".join(sorted(flag for flag in flags.split() if not flag.startswith(HARMLESS_FLAGS)))


_version = cache(version)  # which looks for it on disk


@cache
def find_commit() -> str:
    """Commit of the code that runs, with a `+` behind it if files differ from it; empty if nobody knows.

    It is what the package was installed from, or that of the checkout it is imported from.
    """
    origin = json.loads(distribution("steppe").read_text("direct_url.json") or "{}")
    installed = origin.get("vcs_info", {}).get("commit_id", "")
    package = Path(__file__).parents[2]
    root = package.parents[1]
    if installed or not (root / ".git").exists():
        return installed
    try:
        head = _ask_git(root, "rev-parse", "HEAD")
        changed = _ask_git(root, "status", "--porcelain", "--untracked-files=no", "--", str(package))
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"{head}+" if changed else head


def _ask_git(root: Path, *words: str) -> str:
    command = ["git", "-C", str(root), "--no-optional-locks", *words]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=GIT_SECONDS, check=True)
    return answer.stdout.strip()


@cache
def _cpu() -> str:
    """Architecture and the features of it that programs may use."""
    try:
        words = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    except OSError:  # not on every system
        words = set()
    return " ".join([platform.machine(), *(name for name in CPU_FEATURES if name in words)])
