"""Arguments of public functions, checked against the annotations of their signature.

`@checked(RunError)` refuses, before anything happens, what a parameter cannot take: a text for a number, NaN,
a function for an array, an argument too many or too few. Ranges and shapes are checked where they are known,
in the function. Keywords that several functions share are written once, as a `TypedDict` that each takes as
`**stated: Unpack[Shared]`; its signature shows them one by one.
"""

import collections.abc
import inspect
import math
import os
import re
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import (
    Any,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

import jax
import numpy as np
from jax import Array

from steppe.pytree import Relative, is_concrete
from steppe.validation import Refusal, is_random_key, real_array, refuse, within

# What a user may give, and what an annotation may be: anything.
Value = Any
P = ParamSpec("P")
R = TypeVar("R")

UNIONS = (Union, type(int | str))
PATHS = (Path, os.PathLike)
# What the type of an array-like value is a union of, beside which other kinds may stand.
ARRAY_MEMBERS = {Array, np.ndarray, np.bool, np.number, bool, int, float, complex, str, bytes}
MAX_INTEGER = 2**63 - 1
SOME = {
    "Target": "a `steppe.Target`",
    "Recipe": "a recipe such as `steppe.dmala()`",
    "Domain": "a domain such as `steppe.Binary(64)`",
    "Run": "a run such as `steppe.sample` returns",
    "Adapt": "a `steppe.Adapt`",
    "Adaptive": "what `steppe.adaptive_schedule` makes",
    "Until": "what `steppe.until` makes",
}


class Rule(NamedTuple):
    """What a parameter takes, as a test and in words."""

    accepts: Callable[[Value], bool]
    words: str


ANYTHING = Rule(lambda _: True, "anything")


def checked(error: Refusal, **ranges: str | int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function whose arguments are checked against its annotations.

    Parameters
    ----------
    error
        What is raised.
    ranges
        Of a number its interval, such as `"[1, inf)"`; of an array its least number of axes, none empty.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature, name = _list_shared(function), function.__qualname__.removesuffix(".__init__")
        rules: dict[str, list[Rule]] = {}

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as problem:
                raise error(
                    f"`{name}(...)` was called with other arguments than it has: {problem}."
                ) from None
            for parameter, value in bound.arguments.items():
                declared = signature.parameters[parameter]
                if declared.kind in (declared.VAR_KEYWORD, declared.VAR_POSITIONAL) or parameter == "self":
                    continue
                if parameter not in rules:  # at the first call, when all modules are there
                    rules[parameter] = _find_rules(declared)
                if not any(rule.accepts(value) for rule in rules[parameter]):
                    words = " or ".join(dict.fromkeys(rule.words for rule in rules[parameter]))
                    raise refuse(f"{name}({parameter}=...)", words, value, error)
                if value is not None and parameter in ranges:
                    _check_range(f"{name}({parameter}=...)", value, ranges[parameter], error)
            try:
                return function(*args, **kwargs)
            except jax.errors.JaxRuntimeError as failure:
                raise error(
                    f"`{name}(...)` failed while its program ran: {_name_cause(str(failure))}. A callback of "
                    "the log-density raised, or the memory was used up."
                ) from failure
            except MemoryError as failure:
                reason = str(failure).strip().rstrip(".") or "the system has no more"
                raise error(f"`{name}(...)` needs more memory than there is: {reason}.") from failure
            except NotImplementedError as failure:
                if "vmap" not in str(failure):
                    raise
                raise error(
                    f"`{name}(...)` maps functions over chains, and one of them cannot be mapped: "
                    f"{str(failure).rstrip('.')}. Give a callback `vmap_method='sequential'`."
                ) from failure

        call.__signature__ = signature  # pyright: ignore[reportAttributeAccessIssue]
        return call

    return decorate


def _name_cause(failure: str) -> str:
    """The last line of what a program says that failed, and where the code stands that raised it."""
    reason = (failure.strip().splitlines() or ["no reason is known"])[-1].rstrip(".")
    places = re.findall(r'File "([^"]+)", line ([0-9]+)', failure)
    return f"{reason} ({Path(places[-1][0]).name}, line {places[-1][1]})" if places else reason


def _list_shared(function: Callable[..., Value]) -> inspect.Signature:
    """The signature with the keywords of an unpacked `TypedDict` one by one, `None` by default."""
    signature, own = inspect.signature(function), []
    for parameter in signature.parameters.values():
        if get_origin(parameter.annotation) is not Unpack:
            own.append(parameter)
            continue
        shared = get_type_hints(get_args(parameter.annotation)[0])
        own += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in shared.items()
        ]
    return signature.replace(parameters=own)


def _check_range(given: str, value: Value, allowed: str | int, error: Refusal) -> None:
    if isinstance(allowed, str):
        within(given, value, allowed, error=error, remedy="")
    elif is_concrete(value):
        real_array(given, value, error=error)  # finite
        if np.ndim(value) >= allowed and 0 not in np.shape(value):
            return
        rule = "an array with entries" + (f", of {allowed} axes or more" if allowed else "")
        raise error(f"`{given}` must be {rule}; got one of shape {np.shape(value)}.")


def _find_rules(parameter: inspect.Parameter) -> list[Rule]:
    members = _flatten(parameter.annotation)
    if Array in members and parameter.name == "key":
        return [Rule(is_random_key, "one random key such as `jax.random.key(0)`")]
    if Array in members and parameter.name == "seed":
        return [*_rules_of(members), Rule(is_random_key, "a random key")]
    allows_inf = isinstance(parameter.default, float) and math.isinf(parameter.default)
    return _rules_of(members, allows_inf)


def _flatten(annotation: Value) -> list[Value]:
    if get_origin(annotation) in UNIONS:
        return [member for one in get_args(annotation) for member in _flatten(one)]
    if isinstance(annotation, str):  # a class that is imported for type checkers only
        names = [name.strip() for name in annotation.split("|")]
        return [None if name == "None" else name for name in names]
    return [annotation]


def _rules_of(members: list[Value], allows_inf: bool = False) -> list[Rule]:
    rules = []
    if complex in members:
        rules.append(Rule(_is_array, "an array of real numbers"))
        members = [m for m in members if m not in ARRAY_MEMBERS and "numpy._typing" not in repr(m)]
    takes_paths = any(member in PATHS or get_origin(member) in PATHS for member in members)
    for member in members:
        if member is float:
            rules.append(Rule(lambda value: _is_number(value, allows_inf), "a finite number"))
        elif member is str and takes_paths:
            rules.append(Rule(_is_path, "the path of a file or directory"))
        elif member in PATHS or get_origin(member) in PATHS:
            rules.append(
                Rule(lambda value: isinstance(value, os.PathLike), "the path of a file or directory")
            )
        else:
            rules.append(_rule_of(member))
    return rules


def _rule_of(kind: Value) -> Rule:
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if kind in SIMPLE:
        return SIMPLE[kind]
    if isinstance(kind, str):
        return Rule(lambda value: _is_named(type(value), kind), SOME[kind]) if kind in SOME else ANYTHING
    if origin is Literal:
        return Rule(lambda value: isinstance(value, str) and value in inner, " or ".join(map(repr, inner)))
    if origin is collections.abc.Callable:
        return Rule(callable, "a function")
    if origin in (collections.abc.Sequence, tuple):
        size = len(inner) if origin is tuple and ... not in inner else None
        rules = _rules_of(_flatten(inner[0])) if inner else [ANYTHING]
        each = " or ".join(dict.fromkeys(rule.words for rule in rules))
        return Rule(lambda value: _is_sequence(value, rules, size), f"a sequence, each {each}")
    if origin is collections.abc.Mapping:
        return Rule(lambda value: _is_mapping(value, _rules_of(_flatten(inner[1]))), "a dictionary by name")
    if not inspect.isclass(origin) or origin is object or "jaxtyping" in origin.__module__:
        return ANYTHING
    return Rule(lambda value: isinstance(value, origin), SOME.get(origin.__name__, f"a `{origin.__name__}`"))


def _is_named(kind: type, name: str) -> bool:
    """Whether a class of this library, or one that it derives from, has a name."""
    return any(base.__name__ == name and base.__module__.startswith("steppe.") for base in kind.__mro__)


def _is_integer(value: Value) -> bool:
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_whole and abs(int(value)) <= MAX_INTEGER


def _is_number(value: Value, allows_inf: bool = False) -> bool:
    if isinstance(value, Relative) or not is_concrete(value):
        return True
    if isinstance(value, bool | np.bool) or not _is_array(value) or np.shape(value) != ():
        return False
    return bool(np.isfinite(value)) or (allows_inf and not np.isnan(value))


def _is_array(value: Value) -> bool:
    if not is_concrete(value):
        return True
    if isinstance(value, str | bytes | dict | set):
        return False
    try:
        return np.asarray(value).dtype.kind in "buif"
    except (TypeError, ValueError, OverflowError):  # a random key, rows of unequal length
        return False


def _is_path(value: Value) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\0" not in value


def _is_sequence(value: Value, rules: list[Rule], size: int | None) -> bool:
    if isinstance(value, str | bytes) or not isinstance(value, Sequence | np.ndarray | Array):
        return False
    try:
        return size in (None, len(value)) and all(any(rule.accepts(one) for rule in rules) for one in value)
    except TypeError:  # an array without axes, a key
        return False


def _is_mapping(value: Value, rules: list[Rule]) -> bool:
    is_named = isinstance(value, collections.abc.Mapping) and all(isinstance(name, str) for name in value)
    return is_named and all(any(rule.accepts(one) for rule in rules) for one in value.values())


SIMPLE: dict[Value, Rule] = {
    None: Rule(lambda value: value is None, "None"),
    type(None): Rule(lambda value: value is None, "None"),
    Any: ANYTHING,
    bool: Rule(lambda value: isinstance(value, bool | np.bool), "True or False"),
    int: Rule(_is_integer, "an integer"),
    float: Rule(_is_number, "a finite number"),
    str: Rule(_is_path, "a text"),
    Array: Rule(_is_array, "an array of real numbers"),
    np.ndarray: Rule(_is_array, "an array of real numbers"),
}
