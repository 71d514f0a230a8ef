"""Names typed by the user → targets and recipes."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar, get_type_hints

import steppe.targets
from steppe.cli.runfile import check_run_file, read_run_file
from steppe.errors import RunError, SteppeError
from steppe.kernel.compose import Recipe
from steppe.run.adaptation import Adapt
from steppe.samplers.registry import list_entries
from steppe.target import Target
from steppe.validation import find_name

Made = TypeVar("Made")


def list_targets() -> dict[str, Callable[..., Target]]:
    """Return the functions of `steppe.targets` that make targets."""
    functions = {name: getattr(steppe.targets, name) for name in steppe.targets.__all__}
    return {name: function for name, function in functions.items() if _makes_target(function)}


def _makes_target(function: Callable[..., object]) -> bool:
    made = get_type_hints(function).get("return")
    return isinstance(made, type) and issubclass(made, Target)


def is_own_code(name: str) -> bool:
    """Whether a target name is the user's `module:function`."""
    return ":" in name


def find_target(text: str) -> Target:
    """Build what a verb was told to look at: a target by its name, or that of a run file."""
    if not text.endswith(".toml"):
        return make_target(text, {})
    request = check_run_file(read_run_file(Path(text)))
    return make_target(request.target, request.target_parameters)


def make_target(name: str, parameters: Mapping[str, object]) -> Target:
    """Build a target by the name of a built-in one or as `module:function`."""
    known = list_targets()
    make = _import(name) if is_own_code(name) else known[find_name(name, known, "target")]
    target = _call(make, name, parameters)
    if not isinstance(target, Target):
        raise RunError(f"`{name}` must return a `steppe.Target`; it returned {type(target).__name__}.")
    return target


def make_recipe(name: str, parameters: Mapping[str, object]) -> Recipe:
    """Build a recipe by name."""
    makers = {known: entry.make for known, entry in list_entries().items()}
    return _call(makers[find_name(name, makers, "sampler")], name, parameters)


def make_adapt(adapt: bool | Mapping[str, object]) -> bool | Adapt:
    """Build what warm-up adapts from its fields."""
    return adapt if isinstance(adapt, bool) else _call(Adapt, "adapt", adapt)


def _import(name: str) -> Callable[..., object]:
    module, _, function = name.partition(":")
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, ValueError, SyntaxError, NameError, TypeError) as error:
        raise RunError(f"The module of `{name}` cannot be imported: {error}.") from error
    except AttributeError as error:
        raise RunError(f"`{name}`: {error}.") from error


def _call(make: Callable[..., Made], name: str, parameters: Mapping[str, object]) -> Made:
    try:
        inspect.signature(make).bind(**parameters)
    except TypeError as error:
        raise RunError(f"`{name}` takes {inspect.signature(make)}: {error}.") from error
    try:
        return make(**parameters)
    except SteppeError:
        raise
    except (TypeError, ValueError) as error:
        raise RunError(f"`{name}` refused its parameters {dict(parameters)}: {error}.") from error
