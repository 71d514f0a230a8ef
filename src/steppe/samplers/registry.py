"""Registry of samplers: one entry beside each function, from which tables, pages and figures derive.

The table of the README, the pages of the documentation, the table to choose by, colours and markers of
figures, the names the command line knows and the tables of the shared tests all read it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar, cast, get_args

from steppe.arguments import checked
from steppe.errors import RecipeError

if TYPE_CHECKING:
    from steppe.kernel.compose import Recipe

Family = Literal[
    "Langevin, unadjusted",
    "Langevin, adjusted",
    "favours flat modes",
    "few sites by gradient",
    "exact conditionals",
    "interaction graphs",
    "several temperatures",
    "permutations",
]
Make = TypeVar("Make", bound="Callable[..., Recipe]")


@dataclass(frozen=True)
class Entry:
    """What tables and figures say about a sampler; its docstring says the rest.

    Attributes
    ----------
    make
        The function that composes it.
    family
        What it is akin to; tables list family after family.
    summary
        What a step does, in a line that may refer to other samplers.
    cost
        Evaluations per step.
    stationary
        What the position is distributed as.
    color, marker
        How figures show it: a colour as `#RRGGBB` and a marker of matplotlib, both its own.
    reference
        Where it comes from.
    """

    make: "Callable[..., Recipe]"
    family: Family
    summary: str
    cost: str
    stationary: str
    color: str
    marker: str
    reference: str


REGISTRY: dict[str, Entry] = {}


def register(
    *, family: Family, summary: str, cost: str, stationary: str, color: str, marker: str, reference: str
) -> Callable[[Make], Make]:
    """Decorate a function that makes a recipe: its arguments are checked, and it gets an entry."""

    def add(function: Make) -> Make:
        make = cast("Make", checked(RecipeError)(function))
        REGISTRY[make.__name__] = Entry(make, family, summary, cost, stationary, color, marker, reference)
        return make

    return add


def list_entries() -> dict[str, Entry]:
    """Every entry by name, family after family, within a family as they were written."""
    families = get_args(Family)
    return dict(sorted(REGISTRY.items(), key=lambda item: families.index(item[1].family)))
