"""Results: what an experiment, a comparison, tuning, modes or a run hand to the report.

A `Results` is one `results.json`. It holds numbers and sentences, never layout: `steppe.report.terminal` and
`steppe.report.page` lay out any of them. Its schema is versioned, and a file of a newer schema is refused
with a sentence. Needs pydantic, so `import steppe` does not load it.
"""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from steppe.atomic import write_atomically
from steppe.errors import RunError, StorageError

SCHEMA_VERSION = 1
FILE_NAME = "results.json"

# What is said of software beside versions, and what stands there if it is not known.
_NO_VERSION = {"device": "unknown", "cpu": "", "commit": ""}

# The first three are said of runs and of older files, the others of claims (see `Verdict`).
Outcome = Literal[
    "holds",
    "does not hold",
    "not distinguishable",
    "shown",
    "there, maybe negligible",
    "negligible",
    "opposite",
    "undecided",
]
Key = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]


class _Part(BaseModel):
    # A file may come from anywhere: unknown fields and infinite numbers are damage, not data.
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)


class Estimate(_Part):
    """A number with its interval; `low` and `high` are `None` if it is exact or its error is unknown."""

    value: float
    low: float | None = None
    high: float | None = None


Cell = Estimate | bool | int | float | str | None


class Verdict(_Part):
    """A claim judged: what was claimed, what came out, and the interval that says so.

    A claim is *shown* if the whole interval lies beyond `margin`, the smallest difference that counts;
    *there, maybe negligible* if it lies beyond zero but not beyond the margin; *negligible* if it lies within
    the margin; *opposite* if it lies on the other side; *undecided* otherwise. `power` is then the chance
    that so many seeds tell a difference of the margin from none, and `seeds_needed` how many do so in 80 %.
    `place` says where the paper claims it; without one it is a question of our own.
    """

    claim: str
    outcome: Outcome
    sentence: str
    estimate: Estimate | None = None
    margin: float | None = None
    place: str = ""
    power: float | None = None
    seeds_needed: int | None = None


class Column(_Part):
    """A column of a table: the key of its cells, its heading, and how to read it."""

    key: Key
    label: str
    unit: str = ""
    better: Literal["higher", "lower"] | None = None
    digits: Annotated[int, Field(ge=0, le=12)] = 3


class Table(_Part):
    """Rows of cells under columns.

    The rows numbered in `reference_rows` are what others are read against, those in `marked_rows` what a
    reader should look at first. A table of details (`is_detail`) may be left out of a short account.
    """

    key: Key
    title: str
    columns: list[Column]
    rows: list[dict[str, Cell]]
    reference_rows: list[int] = []
    marked_rows: list[int] = []
    is_detail: bool = False
    notes: list[str] = []


class Figure(_Part):
    """A figure the report draws: which, what it shows, and what a reader who cannot see it is told."""

    key: Key
    title: str
    caption: str
    alternative: str


class Array(_Part):
    """Numbers for a figure: exact bytes of a small array, so that states and curves survive the file."""

    shape: list[int]
    dtype: Literal["uint8", "float32", "float64", "int64"]
    data: str

    @classmethod
    def of(cls, values: np.ndarray) -> Self:
        """Pack an array of one of the four types."""
        little = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"))
        return cls.model_validate(
            {
                "shape": list(values.shape),
                "dtype": values.dtype.name,
                "data": base64.b64encode(little.tobytes()).decode("ascii"),
            }
        )

    def numpy(self) -> np.ndarray:
        """Unpack; raises `RunError` when the bytes do not fit the shape."""
        raw = base64.b64decode(self.data, validate=True)
        kind = np.dtype(self.dtype).newbyteorder("<")
        if min(self.shape, default=1) < 0 or len(raw) != kind.itemsize * int(np.prod(self.shape)):
            raise RunError(
                f"An array of shape {self.shape} and type {self.dtype} cannot have {len(raw)} bytes."
            )
        return np.frombuffer(raw, kind).reshape(self.shape).astype(self.dtype)


class Provenance(_Part):
    """Where the numbers come from.

    `commit` is that of the library's code, with a `+` behind it if files differed from it, and empty where it
    is not known; `cpu` names the features of the processor that programs were compiled for; `draws` are
    digests of a short run of every sampler.
    """

    command: str
    versions: dict[str, str]
    device: str
    cpu: str = ""
    commit: str = ""
    seeds: list[int]
    data: dict[str, str] = {}
    started: str = ""
    seconds: float = 0.0
    model_evaluations: float | None = None
    draws: dict[str, str] = {}

    @classmethod
    def of_software(cls, software: Mapping[str, str], **others: object) -> Self:
        """Return the provenance of what was made with this software, as a run describes it."""
        versions = dict(software)
        found = {name: versions.pop(name, missing) for name, missing in _NO_VERSION.items()}
        return cls.model_validate({"versions": versions, **found, **others})


class Results(_Part):
    """Everything there is to show about one experiment, comparison, run or search.

    `facts` are what a reader wants to know first, a line each by what it is about.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((4, 4), coupling=0.2)
    >>> results = steppe.sample(target, key=jax.random.key(0), num_draws=200).summary().present()
    >>> [table.key for table in results.tables][:1]
    ['quantities']
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    name: Key
    title: str
    question: str
    protocol: Literal["published", "sound"] | None = None
    scale: Literal["quick", "full"] | None = None
    facts: dict[str, str] = {}
    verdicts: list[Verdict] = []
    tables: list[Table] = []
    figures: list[Figure] = []
    arrays: dict[str, Array] = {}
    settings: dict[str, Cell] = {}
    notes: list[str] = []
    provenance: Provenance

    def table(self, key: str) -> Table:
        """The table of that key."""
        for table in self.tables:
            if table.key == key:
                return table
        raise RunError(f"The results of {self.name} have no table {key!r}.")

    def save(self, directory: Path) -> Path:
        """Write `results.json` so that a reader never sees half of it."""
        path = directory / FILE_NAME
        try:
            directory.mkdir(parents=True, exist_ok=True)
            write_atomically(path, self.model_dump_json(indent=1).encode() + b"\n")
        except OSError as error:
            raise StorageError(f"Could not write {path}: {error.strerror or error}.") from error
        return path


def read_results(path: Path) -> Results:
    """Read a `results.json`, or the one in a directory."""
    path = path / FILE_NAME if path.is_dir() else path
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"Cannot read {path}: {error}.") from error
    try:
        return Results.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        if where == "schema_version":
            raise RunError(
                f"{path} has schema {first['input']!r}; this steppe reads schema {SCHEMA_VERSION}. "
                "Use the version of steppe that wrote it, or a newer one."
            ) from error
        raise RunError(f"{path} is not a results file of steppe: {where}: {first['msg']}.") from error
