"""Schema of a run directory, format 2: `run.json`, the lines of the journal, and `acknowledged.json`.

Needs pydantic, so `import steppe` does not load it. Names of classes and functions of this package are no
part of the format: components and domains are written with ids of their own.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, JsonValue, ValidationError, model_validator

from steppe.domain.base import Domain
from steppe.domain.from_json import make_domain
from steppe.errors import DamagedRunError, DomainError, RunMismatchError
from steppe.run.plan import MAX_STEPS, Plan, Shard
from steppe.run.storage.durable import Column, Count, Digest, Strict
from steppe.target.picture import Picture
from steppe.trace import STATISTICS

FORMAT = 2
ROW_NAMES = {"levels", "center", "reals", *STATISTICS}

Record = TypeVar("Record", bound=Strict)
Positive = Annotated[int, Field(ge=1, lt=2**32)]
Number = float | Literal["nan", "inf", "-inf"]


class ShardRecord(Strict):
    """Which of the chains run here."""

    index: Count = 0
    count: Positive = 1

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
    real_acceptance: float | None = None


class ObservableRecord(Strict):
    """An observable that is followed.

    Attributes
    ----------
    name, every, bins, of_pairs
        As in `steppe.Observable`.
    values
        Its values at a few fixed pseudo-random states, by which it is known again.
    """

    name: str
    every: Positive
    bins: Count
    of_pairs: bool
    values: list[Number]


class RungsRecord(Strict):
    """A ladder of temperatures that was adapted before the run, so that a resume need not adapt it again.

    Attributes
    ----------
    asked, num_asked, hottest_asked
        What was to be adapted, and with how many rungs and which hot end the adaptation began.
    inverse_temperatures, step_scales
        The ladder.
    """

    asked: Literal["adapted", "sized", "placed"]
    num_asked: Positive
    hottest_asked: float = 0.0
    inverse_temperatures: list[float]
    step_scales: list[float]


class CycleRecord(Strict):
    """A cycle of step sizes that was adapted before the run, so that a resume need not adapt it again.

    Attributes
    ----------
    step_size
        The largest, before warm-up.
    factors, exponents
        The others relative to it, and balancing exponents.
    """

    step_size: float
    factors: list[float]
    exponents: list[float]


class PictureRecord(Strict):
    """What states are drawn on in reports; as `steppe.target.picture.Picture`."""

    kind: Literal["tour", "graph", "image"]
    places: list[
        Annotated[list[Annotated[float, Field(allow_inf_nan=False)]], Field(min_length=2, max_length=2)]
    ]
    pairs: list[Annotated[list[Count], Field(min_length=2, max_length=2)]]
    shape: list[Positive] = Field(default_factory=list)

    def fits(self, num_sites: int) -> bool:
        """Whether it is one of states with so many sites."""
        used = [site for pair in self.pairs for site in pair]
        num_places = num_sites if self.kind == "tour" else 0
        is_whole = self.kind != "image" or (len(self.shape) == 2 and math.prod(self.shape) == num_sites)
        return is_whole and len(self.places) == num_places and max(used, default=0) < num_sites


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
        The ladder of a tempered run, where it was adapted.
    cycle
        The cycle of step sizes, where it was adapted.
    observables
        What is followed while chains run.
    shard
        Which of the chains are in this directory.
    software
        Versions, device, processor and flags.
    metadata
        Whatever the caller wants to keep.
    picture
        What states are drawn on in reports; none where sites say nothing of it.
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
    num_chains: Positive
    num_warmup: Count
    num_draws: Positive
    thinning: Positive
    keep: Literal["draws", "stats", "none"]
    chain_block: Positive
    rungs: RungsRecord | None = None
    cycle: CycleRecord | None = None
    observables: list[ObservableRecord] = Field(default_factory=list)
    shard: ShardRecord = ShardRecord()
    software: dict[str, str]
    metadata: dict[str, JsonValue]
    picture: PictureRecord | None = None

    @model_validator(mode="after")
    def _check_domain(self) -> Self:
        num_sites = self.make_domain().num_sites
        if self.picture is not None and not self.picture.fits(num_sites):
            raise ValueError(f"the picture does not fit {num_sites} sites")
        return self

    @property
    def draw_on(self) -> Picture | None:
        """What states are drawn on."""
        return None if self.picture is None else Picture(**self.picture.model_dump())

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
    def plan(self) -> Plan:
        """The counts of the run."""
        return Plan(
            num_chains=self.num_chains,
            num_warmup=self.num_warmup,
            num_draws=self.num_draws,
            thinning=self.thinning,
            keep=self.keep,
            chain_block=self.chain_block,
            shard=Shard(self.shard.index, self.shard.count),
        )

    @property
    def num_warmup_rows(self) -> int:
        """Rows of warm-up."""
        return self.plan.num_warmup_rows


class RunRecord(RunDescription):
    """The whole of `run.json`: what is run, and how its target is known again."""

    format: Literal[2] = FORMAT
    target: TargetIdentity


class Opening(Strict):
    """First line of a journal: what the bytes of rows and chains are.

    Attributes
    ----------
    sha256, previous
        Digest of the rest of the line; seal of `run.json`.
    columns
        What one row is, all chains of it.
    chains
        What chains are made of.
    """

    sha256: Digest
    previous: Digest
    format: Literal[2] = FORMAT
    columns: list[Column]
    chains: list[Column]

    def name_misfits(self, record: RunRecord) -> Iterator[str]:
        """Say what does not fit the run."""
        yield from self._name_row_misfits(record)
        plan = record.plan
        lead = [len(plan.own_blocks), plan.chain_block]
        names = {column.name for column in self.chains}
        if len(names) < len(self.chains) or not {"chain", "state.log_density"} <= names:
            yield "chains lack some of their arrays, or have some twice"
        for column in self.chains:
            if column.shape[:2] != lead:
                yield f"{column.name} of the chains has shape {column.shape} instead of {lead} and more"

    def _name_row_misfits(self, record: RunRecord) -> Iterator[str]:
        domain, num_chains = record.make_domain(), len(record.plan.own_chains)
        columns = {column.name: column for column in self.columns}
        wanted = {"log_density", *(["levels"] if record.keep == "draws" else [])}
        if len(columns) < len(self.columns) or not wanted <= set(columns) <= ROW_NAMES:
            yield f"rows have {', '.join(column.name for column in self.columns)}"
            return
        for name, column in columns.items():
            most = len(domain.shape) + 1 if name == "center" else 3 if name == "levels" else 2
            if column.shape[:1] != [num_chains] or len(column.shape) > most:
                yield f"{name} has shape {column.shape} for {num_chains} chains"
        if columns["log_density"].dtype[1:] != {"float32": "f4", "float64": "f8"}.get(record.dtype):
            yield f"log_density has type {columns['log_density'].dtype} in a run of {record.dtype}"
        if "levels" in columns:
            levels, num_sites = columns["levels"], domain.num_sites
            width = -(-num_sites // 8) if domain.is_two_level else num_sites
            kinds = ("|u1",) if domain.is_two_level else ("|u1", "<u2", "<u4", "<i4")
            if levels.shape[-1] != width or len(levels.shape) > 3 or levels.dtype not in kinds:
                yield f"levels have shape {levels.shape} and type {levels.dtype} for {num_sites} sites"
            reals = columns["reals"].shape if "reals" in columns else [num_chains, 0]
            if reals != [num_chains, domain.num_reals]:
                yield f"reals have shape {reals} for {domain.num_reals} real coordinates"


class Commit(Strict):
    """A line of a journal: rows, and the chains after them.

    Attributes
    ----------
    sha256, previous
        Digest of the rest of the line; that of the line before.
    index
        Its number, from 1.
    first_row, num_rows
        Which rows it adds.
    seconds
        Time they and all before them took.
    offset, bytes, rows
        Where their bytes are, how many, and their digest.
    constant
        Columns that are the same in every row and stored once.
    chains
        Digest of the chains; none in a merged run, before its last commit.
    software
        With what it was made, where that differs from the commit before.
    """

    sha256: Digest
    previous: Digest
    index: Positive
    first_row: Count
    num_rows: Count
    seconds: Annotated[float, Field(ge=0)]
    offset: Count
    bytes: Count
    constant: list[str]
    rows: Digest
    chains: Digest | None
    software: dict[str, str] | None

    @property
    def next_row(self) -> int:
        """Rows committed so far."""
        return self.first_row + self.num_rows

    @property
    def end(self) -> int:
        """Bytes of rows committed so far."""
        return self.offset + self.bytes


class Acknowledged(Strict):
    """`acknowledged.json`: the newest commit that has been acknowledged, or the one before it.

    Attributes
    ----------
    index, commit
        Its number, and the digest of its line in the journal.
    config
        Seal of `run.json`.
    """

    format: Literal[2] = FORMAT
    index: Positive
    commit: Digest
    config: Digest


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
    record = validate(RunRecord, "run.json", content)
    plan = record.plan
    if plan.num_rows * plan.thinning >= MAX_STEPS or plan.num_blocks < plan.shard.count:
        raise DamagedRunError("run.json describes a run that cannot be: too many steps, or no chains.")
    return record


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


def validate(kind: type[Record], name: str, content: object) -> Record:
    """Check a document, of that file name; bytes are read as JSON."""
    try:
        return (
            kind.model_validate_json(content) if isinstance(content, bytes) else kind.model_validate(content)
        )
    except ValidationError as error:
        raise DamagedRunError(explain(name, error)) from error


def explain(name: str, error: ValidationError) -> str:
    """Say what the first thing is that is wrong with a document."""
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"])) or "the document"
    message = str(first["msg"]).removeprefix("Value error, ")
    shown = repr(first["input"])
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return f"{name} does not describe a run: {place}: {message}; got {shown}."
