"""Experiments by name: what each asks, tabulates, claims and draws is in its `experiment.toml`.

Texts are templates over facts (see `wording`). Where a text, a column, a table, a claim or a figure has
`when`, it is used if all of those words hold: the protocol, the scale, `embedded` or `data`, and whatever the
experiment adds; `!word` asks for the opposite.
"""

import importlib
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

import steppe
from steppe.kernel.compose import Recipe
from steppe.results import Column
from steppe_edlp.request import Found, Request
from steppe_edlp.work import Work

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from steppe.results import Results

NAMES = ("bernoulli", "ising", "eta", "flatness", "theory", "tsp", "budget", "rbm", "bnn", "runtime")
FILE_NAME = "experiment.toml"

Selector = str | dict[str, str | float]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Phrase(_Part):
    """A part of a text that is said only at times."""

    text: str
    when: str = ""


Text = str | list[str | Phrase]


class ColumnSpec(Column):
    """A column of a table, shown when at least one row has its key."""

    when: str = ""


class TableSpec(_Part):
    """A table: its rows come from the experiment, one table for each value of the column `split`."""

    title: Text
    columns: list[ColumnSpec]
    notes: list[Text | Phrase] = []
    split: str = ""
    when: str = ""


class FigureSpec(_Part):
    """What is said about a figure."""

    title: Text
    caption: Text
    alternative: str
    when: str = ""


class ClaimSpec(_Part):
    """A claim, and how it is judged.

    Attributes
    ----------
    claim, sentence
        What was claimed, and what came out; margin and power are said after it.
    place
        Where the paper claims it; empty for a question of our own.
    table, about, each
        Rows of a table it is about, `first`, `second` and `third` in texts: by sampler, or by several cells.
        Asked for every entry of `about` whose rows exist, and for every value of the column
        `each`.
    difference
        Two cells or facts, of which the second is subtracted; a third number multiplies the second.
    estimate
        A fact that is the estimate, or a function that returns it at a level.
    by
        Estimate the mean of the difference over seeds, or the fraction of pairs of seeds in which the first
        is lower.
    limit, less
        The claim is that the estimate exceeds the limit, or is less.
    margin
        The smallest difference that would count; with `same`, the largest that counts as none.
    same
        The claim is that the estimate equals the limit.
    holds
        A fact that decides by itself, where nothing is random.
    needs
        A column that must not say "no" in the rows it is about; else nothing is decided.
    is_exact
        Nothing is random, or the interval is given: no part in the joint level.
    """

    claim: str
    sentence: Text
    place: str = ""
    table: str = ""
    about: list[list[Selector]] = [[]]
    each: str = ""
    difference: list[str | float] = []
    estimate: str = ""
    by: Literal["mean", "wins"] = "mean"
    limit: str | float = 0.0
    less: bool = False
    margin: float = 0.0
    same: bool = False
    holds: str = ""
    needs: str = ""
    is_exact: bool = False
    when: str = ""


class Experiment(_Part):
    """One experiment.

    Attributes
    ----------
    name
        What it is called on the command line; its package below `steppe_edlp` as well.
    title, question
        Its heading, and what it answers, for a reader who has not read the paper.
    samplers
        Samplers it can compare; by default those of `recipes`.
    constants, sizes
        Numbers and words of the experiment, and how much is run, by scale or by protocol and scale.
    recipes
        Hyper-parameters by sampler.
    published, published_by
        Numbers of the paper, and the cells that say to which row they belong; the others become cells with
        `_paper` after their key.
    settings
        What was set: facts by label.
    tables, figures, claims, notes
        As in `steppe.results.Results`.
    """

    name: str
    title: Text
    question: str
    samplers: tuple[str, ...] = ()
    constants: dict[str, Any] = {}
    sizes: dict[str, dict[str, Any]] = {}
    recipes: dict[str, dict[str, Any]] = {}
    published: list[dict[str, str | float]] = []
    published_by: list[str] = ["sampler"]
    settings: dict[str, str] = {}
    tables: dict[str, TableSpec] = {}
    figures: dict[str, FigureSpec] = {}
    claims: list[ClaimSpec] = []
    notes: list[Text | Phrase] = []

    @property
    def run(self) -> Callable[["Experiment", Request, Work], Found]:
        """The function that carries it out, imported when asked for."""
        return importlib.import_module(f"steppe_edlp.{self.name}.run").run

    @property
    def draw(self) -> "Callable[[Results], Mapping[str, Figure]]":
        """The function that draws it, imported when asked for."""
        return importlib.import_module(f"steppe_edlp.{self.name}.figures").draw

    def size(self, request: Request) -> SimpleNamespace:
        """Return the constants of the experiment, and how much is run."""
        of_protocol = self.sizes.get(request.protocol, self.sizes)
        return SimpleNamespace(**self.constants, **of_protocol[request.scale])

    def make_recipes(self, request: Request) -> dict[str, Recipe]:
        """Make the samplers that are asked for, with their hyper-parameters."""
        made = {}
        for name in request.chosen(self.recipes):
            numbers = dict(self.recipes[name])
            if numbers.pop("when", request.protocol) == request.protocol:
                made[name] = getattr(steppe, name)(**numbers)
        return made


def read_experiment(name: str) -> Experiment:
    """Read what a package says about its experiment."""
    path = Path(__file__).parent / name / FILE_NAME
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    content.setdefault("samplers", list(content.get("recipes", {})))
    content["claims"] = [one for claim in content.get("claims", []) for one in expand_cases(claim)]
    return Experiment(name=name, **content)


def expand_cases(claim: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One claim for each of its `cases`: fields of a claim replace its own, other words stand for `@word`."""
    for case in claim.get("cases", [{}]):
        own = {key: value for key, value in {**claim, **case}.items() if key in ClaimSpec.model_fields}
        text = json.dumps(own)
        for word in case.keys() - ClaimSpec.model_fields.keys():
            text = text.replace(f"@{word}", json.dumps(case[word])[1:-1])
        yield json.loads(text)


EXPERIMENTS = {name: read_experiment(name) for name in NAMES}
