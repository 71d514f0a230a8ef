"""Names typed by the user → targets and recipes."""

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, get_args, get_type_hints

import steppe.targets
from steppe.cli.extensions import SAMPLERS, TARGETS, describe_point, find_extensions, load_function
from steppe.cli.runfile import check_run_file, read_run_file
from steppe.errors import CallbackError, RunError, SteppeError
from steppe.kernel.compose import Recipe
from steppe.run.adaptation import Adapt
from steppe.run.observables import Function, Observable, Overlap
from steppe.samplers.registry import list_entries
from steppe.target import Target
from steppe.validation import find_name, shorten

Made = TypeVar("Made")


def list_targets() -> dict[str, Callable[..., Target]]:
    """Return the functions of `steppe.targets` that make targets, by name."""
    functions = {name: getattr(steppe.targets, name) for name in steppe.targets.__all__}
    return {name: function for name, function in functions.items() if _makes_target(function)}


def _makes_target(function: Callable[..., object]) -> bool:
    made = get_type_hints(function).get("return")
    kinds = get_args(made) or (made,)
    return all(isinstance(kind, type) and issubclass(kind, Target) for kind in kinds)


def describe_targets() -> dict[str, str]:
    """Every target that has a name, with what it is and its parameters; those of other packages last."""
    own = {name: _describe_function(make) for name, make in list_targets().items()}
    return own | _describe_extensions(TARGETS, own)


def describe_samplers() -> dict[str, str]:
    """Every sampler that has a name, with what a step does; those of other packages last."""
    own = {name: (entry.make.__doc__ or "").strip() for name, entry in list_entries().items()}
    return own | _describe_extensions(SAMPLERS, own)


def _describe_function(make: Callable[..., object]) -> str:
    summary = (make.__doc__ or "").strip().splitlines()[0]
    parameters = ", ".join(inspect.signature(make).parameters)
    return f"{summary} ({parameters})" if parameters else summary


def _describe_extensions(group: str, own: Mapping[str, str]) -> dict[str, str]:
    found = find_extensions(group)
    return {name: f"Of {describe_point(points[0])}." for name, points in found.items() if name not in own}


def is_own_code(name: str) -> bool:
    """Whether a target name is the user's `module:function` or `file.py:function`."""
    return ":" in name


def find_target(text: str) -> Target:
    """Build what a verb was told to look at: a target by its name, or that of a run file."""
    if not text.endswith(".toml"):
        return make_target(text, {})
    request = check_run_file(read_run_file(Path(text)))
    return make_target(request.target, request.target_parameters)


def make_target(name: str, parameters: Mapping[str, object]) -> Target:
    """Build a target by its name, as `module:function` or as `file.py:function`."""
    make = _import(name) if is_own_code(name) else _find(name, list_targets(), TARGETS, "target")
    target = _call(make, name, parameters)
    if not isinstance(target, Target):
        raise RunError(f"`{name}` must return a `steppe.Target`; it returned {type(target).__name__}.")
    return target


def make_recipe(name: str, parameters: Mapping[str, object]) -> Recipe:
    """Build a recipe by name."""
    makers = {known: entry.make for known, entry in list_entries().items()}
    recipe = _call(_find(name, makers, SAMPLERS, "sampler"), name, parameters)
    if not isinstance(recipe, Recipe):
        raise RunError(f"`{name}` must return a recipe of `steppe`; it returned {type(recipe).__name__}.")
    return recipe


def _find(
    name: str, own: Mapping[str, Callable[..., object]], group: str, kind: str
) -> Callable[..., object]:
    """Return the function of a name: ours, or that of a package, which is imported now."""
    given = find_extensions(group)
    found = find_name(name, [*own, *given], kind)
    return own[found] if found in own else load_function(given[found], f"The {kind} `{found}`")


def make_adapt(adapt: bool | Mapping[str, object]) -> bool | Adapt:
    """Build what warm-up adapts from its fields."""
    return adapt if isinstance(adapt, bool) else _call(Adapt, "adapt", adapt)


def make_observables(given: Sequence[str]) -> dict[str, Function | Observable | Overlap]:
    """Find observables: `[name=]module:function`, `[name=]path/to/file.py:function` or `[name=]overlap`."""
    made: dict[str, Function | Observable | Overlap] = {}
    for text in given:
        name, is_named, place = text.rpartition("=")
        if place != "overlap" and not is_own_code(place):
            raise RunError(
                f"An observable is `module:function`, `file.py:function` or `overlap`; got {shorten(text)}."
            )
        name = name if is_named else place.rpartition(":")[2].rpartition(".")[2]
        if name in made:
            raise RunError(f"Two observables are called {name!r}; name one otherwise: `other={place}`.")
        made[name] = "overlap" if place == "overlap" else _import(place)  # type: ignore[assignment]
    return made


def _import(name: str) -> Callable[..., object]:
    """Find `module:function` from the current directory on, or `path/to/file.py:function`."""
    place, _, function = name.rpartition(":")
    make = call_user(f"The module of `{name}`", _load, place, name)
    for part in function.split("."):
        if not hasattr(make, part):
            raise RunError(f"`{name}`: there is no {function!r} in {place}.")
        make = getattr(make, part)
    if not callable(make):
        raise RunError(f"`{name}` must be a function that returns a `steppe.Target`; got {shorten(make)}.")
    return make


def _load(place: str, name: str) -> object:
    """Import a module, or run a file as one."""
    if not place.endswith(".py"):
        sys.path.insert(0, str(Path.cwd()))
        try:
            return importlib.import_module(place)
        finally:
            sys.path.pop(0)
    if not Path(place).is_file():
        raise RunError(f"`{name}`: there is no file {place}.")
    spec = importlib.util.spec_from_file_location(Path(place).stem, place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _call(make: Callable[..., Made], name: str, parameters: Mapping[str, object]) -> Made:
    try:
        signature = inspect.signature(make)
    except ValueError:  # built into Python, so none of ours
        raise RunError(f"`{name}` is not a function that returns what is wanted.") from None
    try:
        signature.bind(**parameters)
    except TypeError as error:
        raise RunError(f"`{name}` takes {signature}: {error}.") from error
    return call_user(f"`{name}`", make, **parameters)


def call_user(what: str, function: Callable[..., Made], *args: object, **kwargs: object) -> Made:
    """Call the user's code: whatever it raises, or exits with, is one sentence that names it."""
    try:
        return function(*args, **kwargs)
    except SteppeError:
        raise
    except (Exception, SystemExit) as error:
        trace = traceback.extract_tb(error.__traceback__)  # of Python's imports and of this module too
        foreign = (__file__, importlib.__file__)
        own = [one for one in trace if not one.filename.startswith("<") and one.filename not in foreign]
        where = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
        raise CallbackError(f"{what} raised {type(error).__name__}: {shorten(str(error))}{where}.") from error
