"""`sample`: from a target and a recipe to draws, in memory or on disk."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
from jax import Array

from steppe.errors import RunError, RunMismatchError
from steppe.kernel.compose import Recipe
from steppe.kernel.start import check_start, flatten_start
from steppe.run.adaptation import Adapt, resolve_adaptation
from steppe.run.describe import check_same_run, record_run
from steppe.run.devices import Device, make_devices
from steppe.run.driver import collect, stream
from steppe.run.engine import Engine
from steppe.run.plan import Keep, make_plan
from steppe.run.progress import progress_bar
from steppe.run.result import Run
from steppe.target import Target
from steppe.validation import flag, path, random_key

if TYPE_CHECKING:
    from steppe.run.storage.directory import RunDirectory
    from steppe.run.storage.record import RunRecord


def sample(
    target: Target,
    recipe: Recipe,
    *,
    key: Array,
    num_chains: int = 4,
    num_warmup: int = 1000,
    num_draws: int = 1000,
    thinning: int = 1,
    initial: Any = None,
    keep: Keep = "draws",
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool | None = None,
    adapt: bool | Adapt = True,
    devices: int | Sequence[Device] | None = None,
    shard: tuple[int, int] | None = None,
    chain_block: int | None = None,
    allow_other_version: bool = False,
    metadata: Mapping[str, Any] | None = None,
) -> Run:
    """Sample a target.

    Parameters
    ----------
    target
        What to sample.
    recipe
        How, for example `steppe.dmala()`.
    key
        Random key. The same key gives the same draws, chain by chain, whatever the number of chains,
        devices, processes, interruptions and resumptions.
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
        Starting positions, one per chain, as the log-density takes them; uniform random ones by default.
    keep
        `"draws"`: positions and statistics; `"stats"`: statistics and running statistics; `"none"`: running
        figures only.
    out
        Directory to stream to. Without it everything stays in memory.
    resume
        Continue the run in `out`, if there is one.
    progress
        Show a progress bar; by default when standard error is a terminal.
    adapt
        What to adapt in warm-up, and to what: see `steppe.Adapt`. `True` adapts the step size of adjusted
        samplers, `False` nothing.
    devices
        Devices of this process to spread the chains over: how many, or which. The default device, unless
        `jax.distributed.initialize` was called: then all devices of all processes run the chains together,
        and each process writes its own part of them below `out`.
    shard
        `(index, count)`: run only this part of the chains, and write it below `out`. `steppe.merge_shards`
        makes one
        run of all parts, for schedulers whose jobs cannot talk to each other.
    chain_block
        Number of chains that run side by side, 4 by default; part of what defines the draws in the last bit.
        With many chains of a target made of matrix products, such as an RBM, 20 can be twice as fast.
    allow_other_version
        Continue a run that was made with another version of JAX, although draws may then differ from those
        of an uninterrupted run; their distribution does not.
    metadata
        Anything to keep with the run, as JSON.

    Returns
    -------
    Run
        The draws, their statistics, and the means to continue.
    """
    if not isinstance(recipe, Recipe):
        raise RunError(f"`sample(target, recipe)` needs a recipe such as `steppe.dmala()`; got {recipe!r}.")
    _check_options(out, resume, progress, metadata)
    sampler = recipe.build(target)
    used = make_devices(devices)
    plan = make_plan(
        num_chains, num_warmup, num_draws, thinning, keep, chain_block, _own_part(shard, used.num_processes)
    )
    adaptation = resolve_adaptation(adapt, sampler)
    if adaptation is not None and adaptation.wanted.pooled and plan.shard.count > used.num_processes:
        raise RunError("`Adapt(pooled=True)` needs chains that can talk to each other; `shard` parts them.")
    engine = Engine(sampler, random_key("sample", key), plan, adapt=adaptation, devices=used)
    if initial is not None:
        initial = flatten_start(target.domain, initial)
        check_start(target, initial, batched=True)
        if len(initial) != plan.num_chains:
            raise RunError(
                f"`sample(initial=...)` has {len(initial)} positions for {plan.num_chains} chains; give one "
                "each."
            )
    if out is None:
        if resume or plan.shard.count > 1:
            what = "`sample(resume=True)`" if resume else "A run in parts"
            raise RunError(f"{what} needs `out`, the directory of the run.")
        return _in_memory(engine, recipe, initial, progress, metadata)
    from steppe.run.storage.directory import RunDirectory
    from steppe.run.storage.shards import shard_path

    directory = RunDirectory(shard_path(Path(out), plan.shard))
    return _on_disk(engine, recipe, initial, progress, directory, resume, metadata, allow_other_version)


def _check_options(out: Any, resume: Any, progress: Any, metadata: Any) -> None:
    if out is not None:
        path("sample(out=...)", out)
    flag("sample(resume=...)", resume)
    if progress is not None:
        flag("sample(progress=...)", progress)
    try:
        if not isinstance(metadata, Mapping | None) or json.loads(json.dumps(metadata)) != metadata:
            raise TypeError("some of it would come back different")
    except (TypeError, ValueError, RecursionError) as error:
        raise RunError(f"`sample(metadata=...)` must be a dictionary that fits JSON: {error}.") from error


def _own_part(shard: Any, num_processes: int) -> Any:
    """Processes that run together have a part each."""
    if num_processes == 1:
        return shard
    if shard is not None:
        raise RunError("`sample(shard=...)` is for jobs that run alone; these processes run together.")
    return jax.process_index(), num_processes


def _in_memory(
    engine: Engine, recipe: Recipe, initial: Any, progress: bool | None, metadata: Mapping[str, Any] | None
) -> Run:
    engine.start(initial)
    with progress_bar(engine.plan, 0, progress) as report:
        arrays = collect(engine, engine.plan.num_rows, report)
    return Run.in_memory(engine, recipe, arrays, metadata)


def _on_disk(
    engine: Engine,
    recipe: Recipe,
    initial: Any,
    progress: bool | None,
    directory: "RunDirectory",
    resume: bool,
    metadata: Mapping[str, Any] | None,
    allow_other_version: bool,
) -> Run:
    engine.start(initial)
    record = record_run(engine, engine.plan, recipe, metadata)
    try:
        if resume and directory.exists:
            directory.lock()
            check_same_run(directory.record(), record, allow_other_version=allow_other_version)
        else:
            directory.create(record)
        _continue(engine, directory, record)
        with progress_bar(engine.plan, engine.next_row, progress) as report:
            stream(engine, engine.plan.num_rows, report, directory)
    finally:
        directory.release()
    return Run.on_disk(directory, engine=engine, recipe=recipe)


def _continue(engine: Engine, directory: "RunDirectory", record: "RunRecord") -> None:
    """Go to the newest commit that all processes have; a new run has none."""
    manifest = directory.manifest()
    own_row = manifest.next_row if manifest else 0
    rows, runs = engine.devices.gather([own_row, _short_digest(record)]).T
    if (runs != runs[0]).any():
        raise RunMismatchError("The processes were not started with the same target, sampler and counts.")
    if rows.min() < own_row:
        directory.rewind(int(rows.min()))
        manifest = directory.manifest()
    directory.quarantine_newer()
    if manifest is not None:
        engine.resume(directory.chains(), manifest.next_row)


def _short_digest(record: "RunRecord") -> int:
    shared = record.model_dump_json(exclude={"shard", "software", "metadata"})
    return int.from_bytes(hashlib.sha256(shared.encode()).digest()[:3], "big")
