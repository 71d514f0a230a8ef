"""`sample`: from a target and a recipe to draws, in memory or on disk."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain.structured import split_reals
from steppe.errors import DamagedRunError, RunError, RunMismatchError, StorageError
from steppe.kernel.compose import Recipe
from steppe.kernel.start import check_starts, flatten_start
from steppe.recommend import recommend
from steppe.run.adaptation import Adapt, resolve_adaptation
from steppe.run.chain_blocks import choose_chain_block
from steppe.run.cycle_schedule import adapt_cycle, describe_cycle
from steppe.run.describe import check_same_run, record_run
from steppe.run.devices import Device, make_devices
from steppe.run.driver import collect, stream
from steppe.run.engine import Engine
from steppe.run.observables import Followed, Function, Observable, Overlap, check_observables
from steppe.run.plan import Keep, Plan, check_enough_chains, make_plan
from steppe.run.progress import progress_bar
from steppe.run.result import Run
from steppe.run.stopping import Progress, Stopping, average_rows
from steppe.run.temperature_ladder import adapt_ladder, describe_ladder
from steppe.run.until import Until
from steppe.target import Target
from steppe.trace import REASON
from steppe.validation import not_negative, positive, random_key

if TYPE_CHECKING:
    from steppe.run.storage.directory import RunDirectory
    from steppe.run.storage.record import RunRecord


@checked(RunError)
def sample(
    target: Target,
    recipe: Recipe | None = None,
    *,
    key: Array,
    num_chains: int = 4,
    num_warmup: int = 1000,
    num_draws: int = 1000,
    thinning: int = 1,
    initial: Any = None,
    keep: Keep = "draws",
    observables: Mapping[str, Function | Observable | Overlap] | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool | None = None,
    adapt: bool | Adapt = True,
    devices: int | Sequence[Device] | None = None,
    shard: tuple[int, int] | None = None,
    chain_block: int | None = None,
    commit_seconds: float | None = None,
    time_limit: float | None = None,
    until: Until | None = None,
    on_chunk: Callable[[Progress], object] | None = None,
    allow_other_version: bool = False,
    metadata: Mapping[str, Any] | None = None,
) -> Run:
    """Sample a target.

    Parameters
    ----------
    target
        What to sample.
    recipe
        How, for example `steppe.dmala()`; by default what `steppe.recommend(target)` chooses. The first line
        of `run.summary()` says which, and why.
    key
        Random key. The same key gives the same draws, chain by chain, whatever the number of devices,
        processes, interruptions and resumptions; and of chains, where `chain_block` is given.
    num_chains
        Number of independent chains.
    num_warmup
        Steps before the first draw. The step size of adjusted samplers is adapted in them, one chain at a
        time, to an acceptance rate of 0.574, and then frozen.
    num_draws
        Number of draws kept per chain.
    thinning
        Steps per draw.
    initial
        Starting positions, one per chain, as the log-density takes them. By default uniform random ones; one
        in an excluded state is drawn again, and then searched for.
    keep
        `"draws"`: positions and statistics; `"stats"`: statistics and running statistics; `"none"`: running
        figures only.
    observables
        Numbers to follow while chains run, by name, at fixed memory: functions of one position that return
        one number, `steppe.Observable(...)`, or `"overlap"` of two chains. Mean, variance, autocorrelation
        time and histogram of each are in `run.observables`, `run.data` and `run.summary()`, whatever is kept.
    out
        Directory to stream to. Without it everything stays in memory.
    resume
        Continue the run in `out`, if there is one.
    progress
        Show a progress bar; by default when standard error is a terminal.
    adapt
        What to adapt in warm-up, and to what: see `steppe.Adapt`. `True` adapts the step size of adjusted
        samplers, `False` nothing. The ladder of `parallel_tempering()` and the cycle of `dmala_cyclical()`
        are adapted before warm-up.
    devices
        Devices of this process to spread the chains over: how many, or which. The default device, unless
        `jax.distributed.initialize` was called: then all devices of all processes run the chains together,
        and each process writes its own part of them below `out`.
    shard
        `(index, count)`: run only this part of the chains, and write it below `out`. `steppe.merge_shards`
        makes one
        run of all parts, for schedulers whose jobs cannot talk to each other.
    chain_block
        Number of chains that run side by side; part of what defines the draws in the last bit. By default
        chosen from the target, the recipe and the number of chains, or what a resumed run has;
        `run.description` has it.
    commit_seconds
        Seconds between commits to `out`, 10 by default: what a kill may cost. 0 commits after every chunk.
    time_limit
        Seconds after which the run ends with the draws it has, looked at after every chunk of about a second.
    until
        When to end before `num_draws`, as `steppe.until(ess=400, rhat=1.01)` makes it. `run.stopped` says
        why a run has ended early.
    on_chunk
        Called with a `Progress` after every chunk, for example to log it elsewhere. Returning `True` ends the
        run, and so does what it raises, once everything is kept.
    allow_other_version
        Continue a run that was made with another version of JAX or on another processor, although draws may
        then differ from those of an uninterrupted run; their distribution does not.
    metadata
        Anything to keep with the run, as JSON.

    Returns
    -------
    Run
        The draws, their statistics, and the means to continue.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, steppe
    >>> target = steppe.Target(lambda bits: jnp.sum(bits * jnp.arange(8.0)) / 4, steppe.Binary(8))
    >>> run = steppe.sample(target, key=jax.random.key(0), num_draws=500)
    >>> run.recipe.name  # chosen for this target
    'dmala'
    >>> bool(abs(run.positions[..., 0].mean() - 0.5) < 0.1)
    True
    """
    _check_metadata(metadata)
    if recipe is None:
        recipe, reason = recommend(target)
        metadata = {**(metadata or {}), REASON: reason}
    key = random_key("sample", key)
    saved = _find_record(Path(out)) if resume and out is not None else None
    asked = recipe
    if adapt is not False:
        recipe = adapt_ladder(recipe, target, key, None if saved is None else saved.rungs)
        recipe = adapt_cycle(recipe, target, key, None if saved is None else saved.cycle)
    sampler = recipe.build(target)
    used = make_devices(devices)
    if time_limit is not None:
        positive(
            "sample(time_limit=...)", time_limit, error=RunError, remedy="Leave it out to make all draws."
        )
    if commit_seconds is not None:
        not_negative("sample(commit_seconds=...)", commit_seconds, error=RunError)
    if chain_block is None and saved is not None:
        chain_block = saved.chain_block
    own, choose = _own_part(shard, used.num_processes), partial(choose_chain_block, sampler)
    followed = check_observables(target.domain, observables, num_chains)
    if followed is not None and followed.has_pairs:
        choose = partial(_choose_even, choose)
    plan = make_plan(num_chains, num_warmup, num_draws, thinning, keep, chain_block, own, choose)
    _check_pairs(plan, followed)
    if devices is not None:
        check_enough_chains(plan, used.num_own)
    adaptation = resolve_adaptation(adapt, sampler)
    if adaptation is not None and adaptation.wanted.pooled and plan.shard.count > used.num_processes:
        raise RunError("`Adapt(pooled=True)` needs chains that can talk to each other; `shard` parts them.")
    engine = Engine(sampler, key, plan, adapt=adaptation, devices=used, followed=followed)
    _check_mixed(target, plan, followed)
    initial, reals = split_reals(target.domain, initial)
    if initial is not None:
        initial = flatten_start(target.domain, initial)
        check_starts(target, initial, reals)
        if len(initial) != plan.num_chains:
            raise RunError(
                f"`sample(initial=...)` has {len(initial)} positions for {plan.num_chains} chains; give one "
                "each."
            )
    if out is None:
        if resume or plan.shard.count > 1:
            what = "`sample(resume=True)`" if resume else "A run in parts"
            raise RunError(f"{what} needs `out`, the directory of the run.")
        engine.start(initial, reals)
        parts: list[dict[str, np.ndarray]] = []
        read_run = partial(Run.so_far, engine, recipe, parts, metadata)
        stopping = Stopping(plan, time_limit=time_limit, until=until, on_chunk=on_chunk, read_run=read_run)
        with progress_bar(plan, progress, engine.read_means) as report:
            arrays = collect(engine, plan.num_rows, report, stopping, parts)
        return Run.in_memory(engine, recipe, arrays, metadata, stopping)
    from steppe.run.storage.directory import RunDirectory
    from steppe.run.storage.shards import shard_path, take_over

    may_move = resume and shard is None
    if may_move:
        take_over(Path(out), plan.shard, used.agree)
    directory = RunDirectory(shard_path(Path(out), plan.shard, may_move=may_move))
    stopping = partial(Stopping, plan, time_limit=time_limit, until=until, on_chunk=on_chunk)
    adapted = {"rungs": describe_ladder(asked, recipe), "cycle": describe_cycle(asked, recipe)}
    ends = _Ends(progress, commit_seconds, stopping, adapted)
    return _on_disk(engine, recipe, (initial, reals), directory, resume, metadata, allow_other_version, ends)


def _check_metadata(metadata: Mapping[str, Any] | None) -> None:
    try:
        if json.loads(json.dumps(metadata)) != metadata:
            raise TypeError("some of it would come back different")
    except (TypeError, ValueError, RecursionError) as error:
        raise RunError(f"`sample(metadata=...)` must be a dictionary that fits JSON: {error}.") from error


def _check_mixed(target: Target, plan: Plan, followed: Followed | None) -> None:
    """Say what runs of mixed models do not do yet."""
    if not target.domain.num_reals:
        return
    if plan.keep != "draws":
        raise RunError(f"A mixed model needs `keep='draws'`, which keeps its real parts; got {plan.keep!r}.")
    if followed is not None:
        raise RunError(
            "`sample(observables=...)` follows functions of discrete parts. Give functions of kept draws to "
            "`run.summary({...})`; real parts are summarised in any case."
        )


def _choose_even(choose: Callable[[int], int], num_chains: int) -> int:
    """Blocks that part no pair."""
    return 2 * -(-choose(num_chains) // 2)


def _check_pairs(plan: Plan, followed: Followed | None) -> None:
    if followed is not None and followed.has_pairs and plan.chain_block % 2:
        raise RunError(
            f"Blocks of {plan.chain_block} chains would part the two replicas of an observable. Give an even "
            "`chain_block`."
        )


def _find_record(out: Path) -> "RunRecord | None":
    """What a run that is there was started with."""
    from steppe.run.storage.shards import find_run

    try:
        return find_run(out)[0].record()
    except (RunError, StorageError):  # there is none, or it is refused when it is continued
        return None


def _own_part(shard: tuple[int, int] | None, num_processes: int) -> tuple[int, int] | None:
    """Processes that run together have a part each."""
    if num_processes == 1:
        return shard
    if shard is not None:
        raise RunError("`sample(shard=...)` is for jobs that run alone; these processes run together.")
    return jax.process_index(), num_processes


class _Ends(NamedTuple):
    """How a run on disk is shown, committed and ended, and what was adapted before it."""

    progress: bool | None
    commit_seconds: float | None
    make_stopping: Callable[..., Stopping]
    adapted: Mapping[str, Mapping[str, object] | None]


def _on_disk(
    engine: Engine,
    recipe: Recipe,
    initial: tuple[ArrayLike | None, Array | None],
    directory: "RunDirectory",
    resume: bool,
    metadata: Mapping[str, Any] | None,
    allow_other_version: bool,
    ends: _Ends,
) -> Run:
    engine.start(*initial)
    record = record_run(engine, engine.plan, recipe, metadata, ends.adapted)
    try:
        if resume and directory.exists:
            directory.lock()
            check_same_run(directory.record(), record, allow_other_version=allow_other_version)
        else:
            directory.create(record)
        _continue(engine, directory, record)
        read_run = partial(Run.on_disk, directory.path)
        stopping = ends.make_stopping(earlier=_read_earlier(engine, directory), read_run=read_run)
        with progress_bar(engine.plan, ends.progress, engine.read_means) as report:
            stream(engine, engine.plan.num_rows, report, directory, stopping, ends.commit_seconds)
    finally:
        directory.release()
    return Run.on_disk(directory.path, engine=engine, recipe=recipe, stopping=stopping)


def _read_earlier(engine: Engine, directory: "RunDirectory") -> np.ndarray | None:
    """Log-densities of the draws that a run begins with when it is continued, (row, chain)."""
    if engine.next_row <= engine.plan.num_warmup_rows or engine.plan.keep == "none":
        return None
    return average_rows(Run.on_disk(directory.path).trace.statistic("log_density")).T


def _continue(engine: Engine, directory: "RunDirectory", record: "RunRecord") -> None:
    """Go to the newest commit that all processes have; a new run has none."""
    starts = directory.find_starts()
    rows, runs = engine.devices.gather([starts[0], _short_digest(record)]).T
    if (runs != runs[0]).any():
        raise RunMismatchError("The processes were not started with the same target, sampler and counts.")
    row = int(rows.min())
    if row not in starts:
        raise DamagedRunError(
            f"{directory.path} has no sound commit of row {row}, where another process of the run is."
        )
    directory.rewind(row)
    if row:
        engine.resume(directory.chains(), row)


def _short_digest(record: "RunRecord") -> int:
    shared = record.model_dump_json(exclude={"shard", "software", "metadata"})
    return int.from_bytes(hashlib.sha256(shared.encode()).digest()[:3], "big")
