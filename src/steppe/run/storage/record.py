"""Schema of a run directory, format 2: `run.json` is a `RunRecord`, every `manifest-*.json` a `Manifest`.

Needs pydantic, so `import steppe` does not load it. Names of classes and functions of this package are no
part of the format: components and domains are written with ids of their own.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from steppe.domain import Domain
from steppe.domain.from_json import make_domain
from steppe.errors import DamagedRunError, DomainError, RunMismatchError

FORMAT = 2

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
# `[0-9]`: other scripts have digits too, and Python reads some of them as numbers.
FileName = Annotated[str, Field(pattern=r"^[0-9]{6,18}\.npz$")]
Count = Annotated[int, Field(ge=0, lt=2**63)]
Record = TypeVar("Record", bound="Strict")
Number = float | Literal["nan", "inf", "-inf"]


class Strict(BaseModel):
    """Nothing unknown, nothing converted, nothing infinite."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True, strict=True)


class ShardRecord(Strict):
    """Which of the chains run here."""

    index: Count = 0
    count: Annotated[int, Field(ge=1)] = 1

    @model_validator(mode="after")
    def _check_index(self) -> Self:
        if self.index >= self.count:
            raise ValueError(f"there is no shard {self.index} of {self.count}")
        return self


class AdaptRecord(Strict):
    """What warm-up adapts."""

    acceptance: float | None
    flip_rate: float | None
    center_distance: float | None
    pooled: bool


class TargetIdentity(Strict):
    """What a target is known by.

    Attributes
    ----------
    arrays
        Digest of every array the target holds, in any order.
    program
        Digest of the operations that evaluate it, and of the constants in them.
    log_density
        U at a few fixed pseudo-random states; sees through callbacks, and survives another version of JAX.
    slope
        Derivative of U in a fixed direction at the same states, for samplers that use gradients.
    """

    arrays: Digest
    program: Digest
    log_density: list[Number]
    slope: list[Number] | None


class RunDescription(Strict):
    """What is run.

    Attributes
    ----------
    recipe
        Name of the sampler.
    parameters
        Its hyper-parameters at the start.
    sampler
        Its components by their ids, with everything that shapes the draws.
    evaluations_per_step
        What a step of one chain costs, in evaluations of the model.
    domain
        Id and parameters of the domain.
    key, key_type, dtype
        Random key and precision.
    adapt
        What warm-up adapts.
    num_chains, num_warmup, num_draws, thinning, keep, chain_block
        Counts, as in `steppe.sample`.
    rungs
        Inverse temperatures of chains that exchange states; none yet.
    shard
        Which of the chains are in this directory.
    software
        Versions, device, processor and flags.
    metadata
        Whatever the caller wants to keep.
    """

    recipe: str
    parameters: dict[str, float]
    sampler: JsonValue
    evaluations_per_step: float | None
    domain: dict[str, JsonValue]
    key: list[Count]
    key_type: str
    dtype: str
    adapt: AdaptRecord | None
    num_chains: Annotated[int, Field(ge=1)]
    num_warmup: Count
    num_draws: Annotated[int, Field(ge=1)]
    thinning: Annotated[int, Field(ge=1)]
    keep: Literal["draws", "stats", "none"]
    chain_block: Annotated[int, Field(ge=1)]
    rungs: None = None
    shard: ShardRecord = ShardRecord()
    software: dict[str, str]
    metadata: dict[str, JsonValue]

    @model_validator(mode="after")
    def _check_domain(self) -> Self:
        self.make_domain()
        return self

    def make_domain(self) -> Domain:
        """Return the domain."""
        try:
            return make_domain(self.domain)
        except DomainError as error:
            raise ValueError(str(error)) from error

    @property
    def title(self) -> str:
        """Sampler and domain, for people."""
        return f"{self.recipe} on {self.make_domain()!r}"

    @property
    def num_warmup_rows(self) -> int:
        """Rows of warm-up."""
        return -(-self.num_warmup // self.thinning)


class RunRecord(RunDescription):
    """The whole of `run.json`: what is run, and how its target is known again."""

    format: Literal[2] = FORMAT
    target: TargetIdentity


class FileRecord(Strict):
    """A file that counts."""

    file: FileName
    bytes: Count
    sha256: Digest


class SegmentRecord(FileRecord):
    """Rows of one commit."""

    first_row: Count
    num_rows: Count


class Manifest(Strict):
    """One commit.

    Attributes
    ----------
    index
        Its number, from 1.
    base
        Number of the manifest that this one continues; none: it lists every segment itself.
    next_row, seconds
        Rows committed so far, and the time they took.
    segments, chains
        The files that count.
    config, previous
        Seals of `run.json` and of the manifest before.
    software
        With what the commit was made.
    """

    format: Literal[2] = FORMAT
    index: Annotated[int, Field(ge=1)]
    base: None = None
    next_row: Count
    seconds: Annotated[float, Field(ge=0)]
    segments: list[SegmentRecord]
    chains: FileRecord
    config: Digest
    previous: Digest | None
    software: dict[str, str]


def read_record(name: str, content: Mapping[str, JsonValue]) -> RunRecord:
    """Check the content of `run.json`.

    Parameters
    ----------
    name
        What errors call the directory.
    content
        What was read.
    """
    found = content.get("format")
    if found != FORMAT:
        raise RunMismatchError(
            f"{name} is a run directory of format {found!r}; this version of steppe reads format {FORMAT}. "
            "Read or continue it with the version that wrote it, or sample again in a new directory."
        )
    return _validate(RunRecord, "run.json", content)


def read_manifest(name: str, content: Mapping[str, JsonValue]) -> Manifest:
    """Check the content of a manifest, of that file name."""
    return _validate(Manifest, name, content)


def dump(record: Strict) -> dict[str, JsonValue]:
    """Return a record, ready for JSON."""
    return record.model_dump(mode="json")


def first_difference(
    saved: JsonValue, wanted: JsonValue, name: str
) -> tuple[str, JsonValue, JsonValue] | None:
    """Return where two documents first differ, by the name of the place, and what is there in each."""
    if isinstance(saved, dict) and isinstance(wanted, dict) and saved.keys() == wanted.keys():
        pairs = [(f"{name}.{key}", saved[key], wanted[key]) for key in wanted]
    elif isinstance(saved, list) and isinstance(wanted, list) and len(saved) == len(wanted):
        pairs = [(f"{name}[{i}]", a, b) for i, (a, b) in enumerate(zip(saved, wanted, strict=True))]
    else:
        return None if saved == wanted else (name, saved, wanted)
    found = (first_difference(a, b, place) for place, a, b in pairs)
    return next((difference for difference in found if difference is not None), None)


def _validate(kind: type[Record], name: str, content: Mapping[str, JsonValue]) -> Record:
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"])) or "the document"
        message = str(first["msg"]).removeprefix("Value error, ")
        raise DamagedRunError(
            f"{name} does not describe a run: {place}: {message}; got {_short(first['input'])}."
        ) from error


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
