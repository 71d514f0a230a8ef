"""`Run`: what came out of `sample`, in memory or on disk, and how to go on from it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steppe.domain import Binary, Categorical, Domain, Ordinal, Spin
from steppe.errors import RunError, RunMismatchError
from steppe.kernel.compose import Recipe
from steppe.permutation import Permutation
from steppe.run.driver import collect
from steppe.run.engine import Engine
from steppe.run.parts import joined, part_directories
from steppe.run.plan import longer
from steppe.run.progress import progress_bar
from steppe.run.store import RunDirectory
from steppe.trace import Trace, by_row, join

if TYPE_CHECKING:
    from xarray import DataTree

    from steppe.diagnostics.findings import Diagnosis
    from steppe.diagnostics.mixing import Observables
    from steppe.diagnostics.running import RunningFigures
    from steppe.report.summary import Summary


class Run:
    """Draws of a sampler with their statistics.

    Attributes
    ----------
    config
        What was run, as plain numbers and strings.
    path
        The run directory, or `None` while in memory.
    """

    def __init__(
        self,
        trace: Trace | Callable[[], Trace],
        config: Mapping[str, Any],
        *,
        path: Path | None = None,
        engine: Engine | None = None,
        recipe: Recipe | None = None,
        seconds: float = 0.0,
    ) -> None:
        self._trace = trace
        self.config = dict(config)
        self.path = path
        self.seconds = seconds
        self._engine = engine
        self._recipe = recipe
        self._num_rows_run = 0 if engine is None else engine.next_row

    @property
    def trace(self) -> Trace:
        """The arrays, by chain and row; read from disk when first asked for."""
        if not isinstance(self._trace, Trace):
            self._trace = self._trace()
        return self._trace

    @classmethod
    def in_memory(
        cls, engine: Engine, recipe: Recipe, arrays: Mapping[str, np.ndarray], config: Mapping[str, Any]
    ) -> "Run":
        """Wrap what was collected."""
        domain = engine.sampler.target.domain
        trace = Trace(arrays, engine.plan.num_warmup_rows, domain)
        return cls(trace, config, engine=engine, recipe=recipe, seconds=engine.seconds)

    @classmethod
    def on_disk(
        cls, directory: RunDirectory, *, engine: Engine | None = None, recipe: Recipe | None = None
    ) -> "Run":
        """Read a run directory up to its newest sound commit."""
        config, manifest = directory.config(), directory.newest()
        warmup_rows = -(-config["num_warmup"] // config["thinning"])
        domain = domain_from(config)
        return cls(
            # Read when asked for: a long run on disk may be larger than memory.
            lambda: Trace(join(directory.segments()), warmup_rows, domain),
            config,
            path=directory.path,
            engine=engine,
            recipe=recipe,
            seconds=manifest["seconds"],
        )

    @classmethod
    def in_parts(cls, path: Path, parts: Sequence[RunDirectory]) -> "Run":
        """Read the parts of a run as one, as far as all of them have got."""
        config, arrays, seconds = joined(parts)
        warmup_rows = -(-config["num_warmup"] // config["thinning"])
        return cls(Trace(arrays, warmup_rows, domain_from(config)), config, path=path, seconds=seconds)

    @property
    def data(self) -> "DataTree":
        """The run as an xarray `DataTree` in ArviZ schema."""
        return self.trace.to_datatree({"steppe": _as_attributes(self.config)["steppe"]})

    @property
    def observers(self) -> "RunningFigures":
        """Running figures of a run whose draws were not kept: mean, variance, best state, visits."""
        from steppe.diagnostics.running import RunningFigures

        chains = None if self._engine is None else self._engine.blocks
        if self._engine is None or chains is None:
            raise RunError(
                "Running figures are at hand where the run was sampled. Get those of a run on disk by "
                "`sample(target, recipe, out=path, resume=True).observers`, with all it was started with."
            )
        if chains.observers is None:
            raise RunError(
                f"`sample(keep={self.config['keep']!r})` makes no running figures: the draws themselves are "
                "kept. Sample with `keep='stats'` or `keep='none'` for them."
            )
        self._check_is_newest()
        return RunningFigures.of(chains.observers, self._engine.plan.num_chains)

    def summary(self, observables: "Observables | None" = None, *, limit: float = 1.05) -> "Summary":
        """Say what mixed and what is stuck; print it, or take `to_dict()`.

        Parameters
        ----------
        observables
            Functions of a batch of positions that return one number for each, by name, for example
            `{"magnetisation": lambda positions: positions.mean(axis=-1)}`.
        limit
            Largest R-hat of chains that agree.
        """
        from steppe.diagnostics.findings import diagnose
        from steppe.diagnostics.mixing import assess, cost
        from steppe.report.summary import Summary

        mixing = assess(self.trace, thinning=self.config["thinning"], observables=observables, limit=limit)
        return Summary(self.config, mixing, cost(self.trace, self.config, self.seconds), diagnose(mixing))

    def diagnose(self, observables: "Observables | None" = None, *, limit: float = 1.05) -> "Diagnosis":
        """Say whether the run can be relied on, and what is wrong; arguments as in `summary`."""
        return self.summary(observables, limit=limit).diagnosis

    def extend(self, num_draws: int, *, progress: bool | None = None) -> "Run":
        """Return this run with `num_draws` more draws per chain: the ones a longer run would have made."""
        if self._engine is None or self.path is not None:
            raise RunError(
                "`extend` continues a run in memory. A run on disk is continued by "
                "`sample(..., num_draws=more, out=path, resume=True)`."
            )
        self._check_is_newest()
        engine = self._engine
        engine.plan = longer(engine.plan, num_draws)
        with progress_bar(engine.plan, engine.next_row, progress) as report:
            arrays = collect(engine, engine.plan.num_rows, report)
        joined = join([by_row(self.trace.arrays), by_row(arrays)])
        config = {**self.config, "num_draws": engine.plan.num_draws}
        assert self._recipe is not None
        return Run.in_memory(engine, self._recipe, joined, config)

    def save(self, path: str | Path) -> Path:
        """Write a run in memory as a run directory that `steppe.open` reads and `sample` can continue."""
        if self._engine is None:
            raise RunError(
                "Only a run made by `sample` in this process can be saved; this one is on disk already."
            )
        self._check_is_newest()
        directory = RunDirectory(path)
        directory.create(self.config)
        try:
            rows, chains = by_row(self.trace.arrays), self._engine.saved()
            directory.commit(rows, chains, self._num_rows_run, self.seconds)
        finally:
            directory.release()
        return directory.path

    def _check_is_newest(self) -> None:
        """Refuse to speak for chains that have moved on."""
        if self._engine is not None and self._engine.next_row != self._num_rows_run:
            raise RunError("The run was extended since. Use the run that `extend` returned.")

    def __repr__(self) -> str:
        config = self.config
        kept = max(0, self.trace.num_rows - self.trace.num_warmup_rows)
        return f"Run({config['recipe']} on {config['domain']}: {config['num_chains']} chains × {kept} draws)"


def open_run(path: str | Path) -> Run:
    """Read a run directory.

    Parameters
    ----------
    path
        Directory written by `sample(out=...)` or `Run.save`, or one that holds the parts of a run.
    """
    directory = RunDirectory(path)
    if directory.exists:
        return Run.on_disk(directory)
    parts = part_directories(Path(path))
    if not parts:
        raise RunError(f"{path} is not a run directory: it has no run.json.")
    return Run.in_parts(Path(path), parts)


def domain_from(config: Mapping[str, Any]) -> Domain:
    """Rebuild the domain of a run from its description; nothing is evaluated."""
    shown, num_levels = config["domain"], config["num_levels"]
    kinds = {"Binary": Binary, "Spin": Spin, "Permutation": Permutation}
    kind = shown.split("(")[0]
    if kind in kinds:
        return kinds[kind](len(num_levels))
    if kind == "Categorical":
        return Categorical(len(num_levels), num_levels)
    if kind == "Ordinal":
        levels = shown.split("levels=[")[1].split("]")[0]
        return Ordinal(len(num_levels), [float(level) for level in levels.split(",")])
    raise RunMismatchError(f"The run is on a domain this version does not know: {shown}.")


def _as_attributes(config: Mapping[str, Any]) -> dict[str, str]:
    import json

    return {"steppe": json.dumps(dict(config), sort_keys=True)}
