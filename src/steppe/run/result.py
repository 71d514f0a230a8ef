"""`Run`: what came out of `sample`, in memory or on disk, and how to go on from it."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from steppe.arguments import checked
from steppe.errors import DamagedRunWarning, RunError
from steppe.run.describe import describe_run, record_run
from steppe.run.driver import collect
from steppe.run.plan import longer
from steppe.run.progress import progress_bar
from steppe.run.stopping import Stopping, average_rows
from steppe.run.until import until
from steppe.trace import Trace, by_row, join
from steppe.validation import count

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import DataTree

    from steppe.diagnostics.findings import Diagnosis
    from steppe.diagnostics.mixing import Observables
    from steppe.diagnostics.running import RunningStatistics
    from steppe.diagnostics.streamed import Streamed, StreamedRun
    from steppe.kernel.compose import Recipe
    from steppe.report.summary import Summary
    from steppe.run.engine import Engine
    from steppe.run.storage.record import RunDescription
    from steppe.run.storage.run_files import Depth
    from steppe.run.storage.shards import Parts


class Run:
    """Draws of a sampler with their statistics.

    Attributes
    ----------
    path
        The run directory, or `None` while in memory.
    stopped
        Why it ended before all draws were made, by `time_limit` or `until`; empty if it did not.
    shortfall
        What `until` asked for and was not reached although all draws are made, in a sentence; or empty.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((4, 4), coupling=0.2)
    >>> run = steppe.sample(target, key=jax.random.key(0), num_draws=200)
    >>> run.levels.shape  # chain, draw, site
    (4, 200, 16)
    >>> run.diagnose().ok
    True
    >>> run.extend(100).levels.shape
    (4, 300, 16)
    """

    def __init__(
        self,
        trace: Trace | Callable[[], Trace],
        description: "RunDescription | Callable[[], RunDescription]",
        *,
        path: Path | None = None,
        engine: "Engine | None" = None,
        recipe: "Recipe | None" = None,
        seconds: float = 0.0,
        stopping: Stopping | None = None,
    ) -> None:
        self.stopped = "" if stopping is None else stopping.reason
        self.shortfall = "" if stopping is None else stopping.describe_shortfall()
        self._trace = trace
        self._description = description
        self.path = path
        self.seconds = seconds
        self._engine = engine
        self._recipe = recipe
        self._parts: Parts | None = None
        self._num_rows_run = 0 if engine is None else engine.next_row

    @property
    def trace(self) -> Trace:
        """The arrays, by chain and row; read from disk when first asked for."""
        if not isinstance(self._trace, Trace):
            self._trace = self._trace()
        return self._trace

    @property
    def description(self) -> "RunDescription":
        """What was run: the sampler, its hyper-parameters, the domain, the counts."""
        if callable(self._description):
            self._description = self._description()
        return self._description

    @classmethod
    def in_memory(
        cls,
        engine: "Engine",
        recipe: "Recipe",
        arrays: Mapping[str, np.ndarray],
        metadata: Mapping[str, Any] | None,
        stopping: Stopping | None = None,
    ) -> "Run":
        """Wrap what was collected."""
        plan = engine.plan
        return cls(
            Trace(arrays, plan.num_warmup_rows, engine.sampler.target.domain),
            # Made when asked for: what checks it takes longer to import than a small run to sample.
            partial(describe_run, engine, plan, recipe, metadata),
            engine=engine,
            recipe=recipe,
            seconds=engine.seconds,
            stopping=stopping,
        )

    @classmethod
    def so_far(
        cls,
        engine: "Engine",
        recipe: "Recipe",
        parts: Sequence[Mapping[str, np.ndarray]],
        metadata: Mapping[str, Any] | None,
    ) -> "Run":
        """Wrap what a run in memory has collected while it goes on; it cannot be extended."""
        plan = engine.plan
        return cls(
            Trace(join(list(parts)), plan.num_warmup_rows, engine.sampler.target.domain),
            partial(describe_run, engine, plan, recipe, metadata),
            seconds=engine.seconds,
        )

    @classmethod
    def on_disk(
        cls,
        path: Path,
        *,
        engine: "Engine | None" = None,
        recipe: "Recipe | None" = None,
        stopping: Stopping | None = None,
    ) -> "Run":
        """Read a run directory, or the shards of a run as one, as far as all of them have got."""
        from steppe.run.storage.shards import find_run, open_parts

        parts = open_parts(find_run(path))
        run = cls(
            # Read when asked for: a long run on disk may be larger than memory.
            lambda: run._read(parts),
            parts.record,
            path=path,
            engine=engine,
            recipe=recipe,
            seconds=parts.seconds,
            stopping=stopping,
        )
        run._parts = parts
        if parts.is_short:
            _warn_of_missing_rows(parts, "quick")
        return run

    def _read(self, parts: "Parts") -> Trace:
        arrays = parts.read()
        record = parts.record
        if record.keep != "none" and arrays["log_density"].shape[1] < min(parts.ends):
            _warn_of_missing_rows(parts, "all")
        return Trace(arrays, record.num_warmup_rows, record.make_domain())

    @property
    def problems(self) -> list[str]:
        """What is damaged in the run directory, a sentence each; empty while in memory, or if all is whole.

        Reads every byte that was not read yet.
        """
        return [] if self._parts is None else self._parts.problems()

    @property
    def quarantined(self) -> list[str]:
        """Files that were set aside when the run was resumed: what was damaged or not yet committed."""
        if self._parts is None:
            return []
        return [str(d.path / name) for d in self._parts.directories for name in d.quarantined]

    @property
    def recipe(self) -> "Recipe":
        """The recipe with what warm-up adapted: to build a sampler with, or to start another run from.

        Chains adapt alone, so a step size is the geometric mean over chains. A center step size keeps its
        ratio to an adapted coupling variance.
        """
        if self._recipe is None or self._engine is None:
            raise RunError(
                "`run.recipe` is at hand where the run was sampled; a run on disk has the hyper-parameters "
                "it was started with in `run.description.parameters`."
            )
        given = self._engine.sampler.parameters
        names = [
            name for name in ("step_size", "coupling_variance", "real_step_size") if self.trace.has(name)
        ]
        found = {
            name: float(np.exp(np.log(self.trace.statistic(name)[:, -1]).mean()))
            for name in names
            if name in given
        }
        if "coupling_variance" in found and "center_step_size" in given:
            ratio = found["coupling_variance"] / float(given["coupling_variance"])
            found["center_step_size"] = float(given["center_step_size"]) * ratio
        return self._recipe.replace(**found)

    @property
    def data(self) -> "DataTree":
        """The run as an xarray `DataTree` in ArviZ schema."""
        followed = self._read_followed()
        groups = {} if followed is None else {one.name: one.to_dataset() for one in followed.all}
        return self.trace.to_datatree({"steppe": self.description.model_dump_json()}, groups)

    @property
    def levels(self) -> np.ndarray:
        """Kept draws as level indices, (chain, draw, [replica,] site), in the smallest type of integers."""
        return self._read_levels()

    @property
    def positions(self) -> Any:
        """Kept draws as the log-density takes them, (chain, draw, [replica,] …).

        An array of the shape of one position behind the leading axes, or a dictionary of arrays on a
        `steppe.Product`.
        """
        domain = self.trace.domain
        positions = jax.tree.map(np.asarray, domain.unflatten(domain.from_levels(self._read_levels())))
        reals = {variable.name: values for variable, values in self.trace.real_values()}
        return {**positions, **reals} if reals else positions

    def _read_levels(self) -> np.ndarray:
        if not self.trace.has("levels"):
            raise RunError(
                f"`sample(keep={self.description.keep!r})` keeps no draws. Sample with `keep='draws'`."
            )
        return self.trace.levels()

    @property
    def observers(self) -> "RunningStatistics":
        """Running statistics of a run whose draws were not kept: mean, variance, best state, visits."""
        from steppe.diagnostics.running import RunningStatistics

        chains = None if self._engine is None else self._engine.blocks
        if self._engine is None or chains is None:
            raise RunError(
                "Running statistics are at hand where the run was sampled. Get those of a run on disk by "
                "`sample(target, recipe, out=path, resume=True).observers`, with all it was started with."
            )
        if chains.observers is None:
            raise RunError(
                f"`sample(keep={self.description.keep!r})` makes no running statistics: the draws themselves "
                "are kept. Sample with `keep='stats'` or `keep='none'` for them."
            )
        self._check_is_newest()
        return RunningStatistics.of(chains.observers, self._engine.plan.num_chains)

    @property
    def observables(self) -> "dict[str, Streamed]":
        """What `sample(observables=...)` followed, by name: statistics at fixed memory, chain by chain."""
        followed = self._read_followed()
        if followed is None:
            raise RunError(
                "No observables were followed in this run. Sample with `observables={...}`, or give "
                "functions of kept draws to `run.summary({...})`."
            )
        return followed.observables

    def _read_followed(self) -> "StreamedRun | None":
        from steppe.diagnostics.streamed import read_streamed

        records = self.description.observables
        if not records:
            return None
        if self._parts is not None:
            pairs = zip(self._parts.directories, self._parts.looks, strict=True)
            saved = [directory.read_newest_chains(look) for directory, look in pairs]
        elif self._engine is None:  # of a run that goes on: its chains are elsewhere by now
            return None
        else:
            self._check_is_newest()
            saved = [self._engine.save_chains()]
        return read_streamed(saved, records, self.description.num_chains)

    def summary(self, observables: "Observables | None" = None, *, limit: float = 1.05) -> "Summary":
        """Say what mixed and what has not converged; print it, or take `to_dict()`.

        Parameters
        ----------
        observables
            Functions of a batch of positions that return one number for each, by name, for example
            `{"magnetisation": lambda positions: positions.mean(axis=-1)}`.
        limit
            Largest R-hat of chains that agree.
        """
        from steppe.diagnostics.findings import diagnose
        from steppe.diagnostics.mixing import assess, assess_streamed, count_cost
        from steppe.report.summary import Summary

        run = self.description
        followed = self._read_followed()
        if run.keep == "none" and followed is not None:
            mixing = assess_streamed(followed, self.trace.domain, thinning=run.thinning, limit=limit)
        else:
            streams = () if followed is None else tuple(followed.observables.values())
            mixing = assess(
                self.trace, thinning=run.thinning, observables=observables, streams=streams, limit=limit
            )
        num_rows = self.trace.num_rows or run.num_warmup_rows + mixing.num_draws
        spent = count_cost(
            len(mixing.chain_means), num_rows, run.thinning, run.evaluations_per_step, self.seconds
        )
        end = f"Ended by {self.stopped}." if self.stopped else self.shortfall
        return Summary(run, mixing, spent, diagnose(mixing), end)

    def diagnose(self, observables: "Observables | None" = None, *, limit: float = 1.05) -> "Diagnosis":
        """Say whether the run can be relied on, and what is wrong; arguments as in `summary`."""
        return self.summary(observables, limit=limit).diagnosis

    def plot(self) -> "Figure":
        """Draw trace, ranks, autocorrelation and growth of the effective sample size of the log-density.

        Returns
        -------
        matplotlib.figure.Figure
            To show in a notebook or to save by `figure.savefig(path)`.

        Examples
        --------
        >>> import jax, jax.numpy as jnp, steppe
        >>> target = steppe.Target(lambda bits: jnp.sum(bits) / 2, steppe.Binary(8))
        >>> run = steppe.sample(target, key=jax.random.key(0), num_draws=100)
        >>> len(run.plot().axes)
        4
        """
        from steppe.report.run_figures import draw_overview

        self._check_has_statistics("plot")
        return draw_overview(self.trace)

    def plot_sites(self) -> "Figure":
        """Draw states as what they are, or how often each site changes.

        Returns
        -------
        matplotlib.figure.Figure
            Best draw, last draw and all draws together: images where sites stand in two dimensions, tours on
            a map, small sparse graphs with coloured nodes. On any other target changes by site.
        """
        from steppe.diagnostics.sites import judge_sites
        from steppe.report.run_figures import draw_sites
        from steppe.report.state_figures import draw_states, name_kind

        levels, picture = self._read_levels(), self.description.draw_on
        if name_kind(self.trace, picture) is not None:
            return draw_states(self.trace, picture)
        return draw_sites(self.trace, judge_sites(levels))

    def _check_has_statistics(self, name: str) -> None:
        if "log_density" not in self.trace.arrays or self.trace.num_rows <= self.trace.num_warmup_rows:
            raise RunError(
                f"`run.{name}()` needs kept statistics and at least one draw; this run was sampled with "
                f"`keep={self.description.keep!r}` and has none. Sample with `keep='draws'`."
            )

    def extend(self, num_draws: int, *, progress: bool | None = None) -> "Run":
        """Return this run with `num_draws` more draws per chain: the ones a longer run would have made."""
        return self._go_on(num_draws, progress, Stopping)

    def extend_until(
        self,
        *,
        ess: float | None = None,
        rhat: float | None = None,
        max_draws: int = 100_000,
        time_limit: float | None = None,
        progress: bool | None = None,
    ) -> "Run":
        """Return this run with as many more draws as it takes; the ones a longer run would have made.

        Parameters
        ----------
        ess, rhat
            Go on until the effective sample size of the log-density is at least `ess` and its R-hat at most
            `rhat`.
        max_draws
            More draws per chain at most.
        time_limit
            Seconds after which to end all the same.
        progress
            Show a progress bar; by default when standard error is a terminal.

        Returns
        -------
        Run
            `stopped` says why it ended, `shortfall` what was not reached.
        """
        rule = until(ess=ess, rhat=rhat)
        values = average_rows(self.trace.statistic("log_density")).T if self.trace.num_rows else None
        make = partial(Stopping, time_limit=time_limit, until=rule, earlier=values)
        return self._go_on(count("extend_until(max_draws=...)", max_draws, error=RunError), progress, make)

    def _go_on(self, num_draws: int, progress: bool | None, make: Callable[..., Stopping]) -> "Run":
        if self._engine is None or self.path is not None:
            raise RunError(
                "`extend` continues a run in memory. A run on disk is continued by "
                "`sample(..., num_draws=more, out=path, resume=True)`."
            )
        self._check_is_newest()
        engine = self._engine
        engine.plan = longer(engine.plan, num_draws)
        stopping = make(engine.plan)
        with progress_bar(engine.plan, progress, engine.read_means) as report:
            arrays = collect(engine, engine.plan.num_rows, report, stopping, [])
        joined = join([by_row(self.trace.arrays), by_row(arrays)])
        assert self._recipe is not None
        return Run.in_memory(engine, self._recipe, joined, self.description.metadata, stopping)

    def save(self, path: str | Path) -> Path:
        """Write a run in memory as a run directory that `steppe.open_run` reads and `sample` can continue."""
        from steppe.run.storage.directory import RunDirectory

        if self._engine is None or self._recipe is None:
            raise RunError(
                "Only a run made by `sample` in this process can be saved; this one is on disk already."
            )
        self._check_is_newest()
        directory = RunDirectory(path)
        metadata = self.description.metadata
        directory.create(record_run(self._engine, self._engine.plan, self._recipe, metadata))
        try:
            rows, chains = by_row(self.trace.arrays), self._engine.save_chains()
            directory.commit(rows, chains, self._num_rows_run, self.seconds)
        finally:
            directory.release()
        return directory.path

    def _check_is_newest(self) -> None:
        """Refuse to speak for chains that have moved on."""
        if self._engine is not None and self._engine.next_row != self._num_rows_run:
            raise RunError("The run was extended since. Use the run that `extend` returned.")

    def __repr__(self) -> str:
        run, kept = self.description, max(0, self.trace.num_rows - self.trace.num_warmup_rows)
        return f"Run({run.title}: {run.num_chains} chains × {kept} draws)"


@checked(RunError)
def open_run(path: str | Path) -> Run:
    """Read a run directory.

    Parameters
    ----------
    path
        Directory written by `sample(out=...)` or `Run.save`, or one that holds the shards of a run.

    Examples
    --------
    >>> import jax, steppe, tempfile
    >>> target = steppe.targets.ising_lattice((4, 4), coupling=0.2)
    >>> path = tempfile.mkdtemp() + "/a"
    >>> run = steppe.sample(target, key=jax.random.key(0), num_draws=100, out=path)
    >>> steppe.open_run(path).levels.shape
    (4, 100, 16)
    """
    return Run.on_disk(Path(path))


def _warn_of_missing_rows(parts: "Parts", depth: "Depth") -> None:
    found = " ".join(parts.problems(depth))
    warnings.warn(
        f"{parts.directories[0].path} gives fewer rows than were committed: {found}",
        DamagedRunWarning,
        stacklevel=3,
    )
