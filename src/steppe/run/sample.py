"""`sample`: from a target and a recipe to draws, in memory or on disk."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.arguments import random_key
from steppe.errors import RunError, RunMismatchError
from steppe.kernel.compose import Recipe
from steppe.kernel.start import check_start
from steppe.run.adapt import Adapt, what_to_adapt
from steppe.run.devices import Device, make_devices
from steppe.run.driver import collect, stream
from steppe.run.engine import Engine
from steppe.run.fingerprint import sampler_digest, target_digest
from steppe.run.parts import part_path
from steppe.run.plan import Keep, Plan, make_plan
from steppe.run.progress import progress_bar
from steppe.run.result import Run
from steppe.run.store import RunDirectory, software
from steppe.target import Target


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
        Starting positions, one per chain; uniform random ones by default.
    keep
        `"draws"`: positions and statistics; `"stats"`: statistics and running figures; `"none"`: running
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
        `(index, count)`: run only this part of the chains, and write it below `out`. `steppe.merge` makes one
        run of all parts, for schedulers whose jobs cannot talk to each other.
    chain_block
        Number of chains that run side by side, 4 by default; part of what defines the draws in the last bit.
        With many chains of a target made of matrix products, such as an RBM, 20 can be twice as fast.
    allow_other_version
        Continue a run that was made with another version of JAX, although draws may then differ from those
        of an uninterrupted run; their law does not.
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
    wanted = what_to_adapt(adapt, recipe, sampler)
    if wanted is not None and wanted.pooled and plan.shard.count > used.num_processes:
        raise RunError("`Adapt(pooled=True)` needs chains that can talk to each other; `shard` parts them.")
    engine = Engine(sampler, random_key("sample", key), plan, adapt=wanted, devices=used)
    if initial is not None:
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
    directory = RunDirectory(part_path(Path(out), plan.shard))
    return _on_disk(engine, recipe, initial, progress, directory, resume, metadata, allow_other_version)


def _check_options(out: Any, resume: Any, progress: Any, metadata: Any) -> None:
    if out is not None and (not isinstance(out, str | Path) or not str(out).strip("\0")):
        raise RunError(f"`sample(out=...)` must be the path of a directory; got {out!r}.")
    if not isinstance(resume, bool) or not isinstance(progress, bool | None):
        raise RunError(
            f"`sample(resume=..., progress=...)` must be True or False; got {resume!r}, {progress!r}."
        )
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
    return Run.in_memory(engine, recipe, arrays, description(engine, recipe, metadata))


def _on_disk(
    engine: Engine,
    recipe: Recipe,
    initial: Any,
    progress: bool | None,
    directory: RunDirectory,
    resume: bool,
    metadata: Mapping[str, Any] | None,
    allow_other_version: bool,
) -> Run:
    engine.start(initial)
    config = description(engine, recipe, metadata)
    try:
        if resume and directory.exists:
            directory.lock()
            _check_same(directory.config(), config, allow_other_version)
        else:
            directory.create(config)
        _continue(engine, directory, config)
        with progress_bar(engine.plan, engine.next_row, progress) as report:
            stream(engine, engine.plan.num_rows, report, directory)
    finally:
        directory.release()
    return Run.on_disk(directory, engine=engine, recipe=recipe)


def _continue(engine: Engine, directory: RunDirectory, config: Mapping[str, Any]) -> None:
    """Go to the newest commit that all processes have; a new run has none."""
    manifest = directory.manifest()
    own_row = manifest["next_row"] if manifest else 0
    rows, runs = engine.devices.gather([own_row, _short_digest(config)]).T
    if (runs != runs[0]).any():
        raise RunMismatchError("The processes were not started with the same target, sampler and counts.")
    if rows.min() < own_row:
        directory.rewind(int(rows.min()))
        manifest = directory.manifest()
    directory.quarantine_newer()
    if manifest is not None:
        engine.resume(directory.chains(), manifest["next_row"])


def _short_digest(config: Mapping[str, Any]) -> int:
    shared = {name: value for name, value in config.items() if name not in ("shard", "software", "metadata")}
    content = json.dumps(shared, sort_keys=True).encode()
    return int.from_bytes(hashlib.sha256(content).digest()[:3], "big")


def _check_same(saved: Mapping[str, Any], wanted: Mapping[str, Any], allow_other_version: bool) -> None:
    """Refuse to continue a run as something else; more draws of the same are welcome."""
    for name in wanted:
        if name in ("num_draws", "evaluations_per_step", "software", "metadata"):
            continue
        if saved.get(name) != wanted[name]:
            raise RunMismatchError(
                f"The run on disk has {name} {saved.get(name)!r}, this one has {wanted[name]!r}. Continue "
                "it with what it was started with, or start another in a new directory."
            )
    made_with, here = saved["software"]["jax"], wanted["software"]["jax"]
    if made_with != here and not allow_other_version:
        raise RunMismatchError(
            f"The run on disk was made with jax {made_with}, this is {here}; draws might differ in the last "
            "bit. Install that version to continue, or allow the other one (`allow_other_version`)."
        )


def description(engine: Engine, recipe: Recipe, metadata: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return everything that defines the draws, ready for JSON."""
    plan, sampler = engine.plan, engine.sampler
    return {
        "recipe": recipe.name,
        "evaluations_per_step": sampler.evaluations_per_step,
        "numbers": {name: float(value) for name, value in sampler.numbers.items()},
        "sampler": sampler_digest(sampler),
        "target": target_digest(sampler.target),
        "domain": repr(sampler.target.domain),
        "num_levels": list(sampler.target.domain.num_levels),
        "key": np.asarray(jax.random.key_data(engine.root)).tolist(),
        "key_type": str(jax.random.key_impl(engine.root)),
        "dtype": str(jnp.result_type(float)),
        "adapt": None if engine.schedule.adapt is None else dataclasses.asdict(engine.schedule.adapt),
        "shard": [plan.shard.index, plan.shard.count],
        **_plan_fields(plan),
        "software": software(),
        "metadata": dict(metadata or {}),
    }


def _plan_fields(plan: Plan) -> dict[str, Any]:
    names = ("num_chains", "num_warmup", "num_draws", "thinning", "keep", "chain_block")
    return {name: getattr(plan, name) for name in names}
