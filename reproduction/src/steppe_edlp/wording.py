"""Sentences made of templates and facts, and numbers and recipes as they stand in them.

A field of a template is a path, `{first.flat:.3f}`, through rows, facts and attributes. An array has one
number per seed and is said by its mean; with `i` before its format, and for every estimate, with its
interval.
"""

import string
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steppe.intervals import LEVEL, estimate_mean
from steppe.kernel.compose import Recipe
from steppe.results import Estimate

SYMBOLS = {
    "step_size": "α",
    "center_step_size": "α_a",
    "coupling_variance": "η",
    "strength": "λ",
    "persistence": "ρ",
    "center_weight": "γ",
}


def describe_recipe(recipe: Recipe) -> str:
    """The hyper-parameters of a recipe by the symbols of the paper."""
    words = [f"{SYMBOLS[name]} = {value:g}" for name, value in recipe.parameters.items() if name in SYMBOLS]
    copies = recipe.coupling.replicas
    return ", ".join(words if copies is None else [f"y = {copies}", *words])


def find_fact(path: str, facts: Mapping[str, Any]) -> Any:
    """Follow a path of names through mappings and attributes."""
    found: Any = facts
    for name in path.split("."):
        found = found[name] if isinstance(found, Mapping) else getattr(found, name)
    return found


def is_said(when: str, conditions: set[str]) -> bool:
    """Whether all words of a condition hold; `!word` asks for the opposite."""
    return all((word.lstrip("!") in conditions) != word.startswith("!") for word in when.split())


def say(text: Any, facts: Mapping[str, Any], conditions: set[str]) -> str:
    """Fill in a text: a template, or parts of one of which some are said only when their condition holds."""
    parts = [text] if isinstance(text, str) or hasattr(text, "text") else text
    said = [part if isinstance(part, str) else part.text * is_said(part.when, conditions) for part in parts]
    return _Formatter().vformat(" ".join(part for part in said if part), (), facts)


class _Formatter(string.Formatter):
    level: float = LEVEL

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        self.level = kwargs.get("level", LEVEL)
        return find_fact(field_name, kwargs), field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec.startswith("i"):
            value, format_spec = estimate_mean(value, self.level), format_spec[1:]
        if isinstance(value, Estimate) and value.low is not None and value.high is not None:
            ends = [self.format_field(end, format_spec) for end in (value.low, value.high)]
            return f"{self.format_field(value.value, format_spec)} [{', '.join(ends)}]"
        number = value.value if isinstance(value, Estimate) else value
        number = float(number.mean()) if isinstance(number, np.ndarray) else number
        said = format(number, format_spec)
        return said if isinstance(number, str) else said.replace("-", "−")
