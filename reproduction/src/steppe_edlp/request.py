"""What is asked of an experiment, and what it answers."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from steppe.datasets import Dataset
from steppe.errors import RunError
from steppe.kernel.compose import Recipe
from steppe.results import Cell

Protocol = Literal["published", "sound"]
Scale = Literal["quick", "full"]
MAX_SEEDS, MAX_SEED = 100_000, 2**31

Row = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Request:
    """What to reproduce, and how; every number of a result follows from it.

    Attributes
    ----------
    protocol
        `"published"`: the authors' settings as run. `"sound"`: many seeds, equal budgets, intervals.
    scale
        `"quick"`: minutes. `"full"`: the scale of the paper.
    samplers
        Samplers to compare; `None` for those of the experiment.
    num_seeds
        Independent repetitions; `None` for as many as the experiment takes by itself.
    data
        Directory of data sets; `None` for data that ship with packages.
    instance
        Which problem, where an experiment has several.
    seed
        The first seed.
    """

    protocol: Protocol = "sound"
    scale: Scale = "quick"
    samplers: tuple[str, ...] | None = None
    num_seeds: int | None = None
    data: Path | None = None
    instance: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.num_seeds is not None and not 1 <= self.num_seeds <= MAX_SEEDS:
            raise RunError(f"The number of seeds must be from 1 to {MAX_SEEDS}; got {self.num_seeds}.")
        if not 0 <= self.seed <= MAX_SEED:
            raise RunError(f"The first seed must be from 0 to {MAX_SEED}; got {self.seed}.")

    @property
    def is_sound(self) -> bool:
        """Whether the sound protocol is asked for."""
        return self.protocol == "sound"

    @property
    def is_quick(self) -> bool:
        """Whether the quick scale is asked for."""
        return self.scale == "quick"

    @property
    def conditions(self) -> set[str]:
        """Words for what is asked, as texts look for them."""
        return {self.protocol, self.scale, "embedded" if self.data is None else "data"}

    def seeds(self, by_default: int) -> list[int]:
        """Return the seeds: as many as asked for, else `by_default`."""
        return list(range(self.seed, self.seed + (self.num_seeds or by_default)))

    def chosen(self, known: Iterable[str]) -> list[str]:
        """Those of `known` samplers that are asked for, in the order of `known`."""
        return [name for name in known if self.samplers is None or name in self.samplers]

    def command(self, experiment: str) -> str:
        """Return the command line that asks for this, without places on a disk."""
        words = [f"steppe reproduce {experiment} --protocol {self.protocol} --scale {self.scale}"]
        words += [] if self.samplers is None else [f"--samplers {','.join(self.samplers)}"]
        words += [] if self.num_seeds is None else [f"--seeds {self.num_seeds}"]
        words += [] if self.instance is None else [f"--instance {self.instance}"]
        words += ["--data DIR"] if self.data else []
        return " ".join(words)

    def fields(self) -> dict[str, Any]:
        """Everything asked for, as JSON can hold it."""
        data = None if self.data is None else str(self.data.resolve())
        samplers = None if self.samplers is None else list(self.samplers)
        return {**dataclasses.asdict(self), "data": data, "samplers": samplers}

    def digest(self, experiment: str, versions: Mapping[str, str]) -> str:
        """Digest of everything that shapes the numbers."""
        content = {"experiment": experiment, "request": self.fields(), "versions": dict(versions)}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class Found:
    """What an experiment found, before anything is said about it.

    Attributes
    ----------
    rows
        Tidy rows by table. A cell is a number, a word, an estimate, or an array of one number per seed; with
        `is_reference` a row is what the others are read against.
    facts
        Numbers that sentences mention.
    conditions
        What holds beside the protocol and the scale.
    arrays
        Numbers for figures, of one of the types `steppe.results.Array` packs.
    recipes
        Samplers that were run.
    settings
        What was set beside what the description lists.
    seeds
        Seeds that were run.
    data
        Digest or description of every data set.
    model_evaluations
        Evaluations of log-densities (with or without gradient) in all.
    """

    rows: Mapping[str, Sequence[Row]]
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    conditions: Iterable[str] = ()
    arrays: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    recipes: Mapping[str, Recipe] = dataclasses.field(default_factory=dict)
    settings: Mapping[str, Cell] = dataclasses.field(default_factory=dict)
    seeds: Sequence[int] = ()
    data: Mapping[str, str] = dataclasses.field(default_factory=dict)
    model_evaluations: int | None = None


def name_seeds(seeds: Sequence[int]) -> str:
    """Consecutive seeds as part of the name of a piece of work: `3`, or `0-19`."""
    return str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]}-{seeds[-1]}"


def find_digests(data: Dataset) -> dict[str, str]:
    """Digests of the files of a data set, or of its hyper-parameters if it ships with a package."""
    if data.card.sha256:
        return dict(data.card.sha256)
    return {data.card.name: hashlib.sha256(data.train.x.tobytes() + data.test.x.tobytes()).hexdigest()}
