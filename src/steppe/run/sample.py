"""`sample`: from a target and a recipe to draws, in memory or on disk."""

from collections.abc import Mapping
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
from steppe.run.driver import chains_from, collect, stream
from steppe.run.engine import Engine
from steppe.run.fingerprint import sampler_digest, target_digest
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
    adapt: bool = True,
    chain_block: int | None = None,
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
        interruptions and resumptions.
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
        Adapt the step size in warm-up. Unadjusted samplers always keep theirs.
    chain_block
        Number of chains that run side by side; part of what defines the draws in the last bit.
    metadata
        Anything to keep with the run, as JSON.

    Returns
    -------
    Run
        The draws, their statistics, and the means to continue.
    """
    if not isinstance(recipe, Recipe):
        raise RunError(f"`sample(target, recipe)` needs a recipe such as `steppe.dmala()`; got {recipe!r}.")
    sampler = recipe.build(target)
    plan = make_plan(num_chains, num_warmup, num_draws, thinning, keep, chain_block)
    engine = Engine(sampler, random_key("sample", key), plan, adapts=adapt and recipe.is_exact)
    if initial is not None:
        check_start(target, initial, batched=True)
        if len(initial) != plan.num_chains:
            raise RunError(
                f"`sample(initial=...)` has {len(initial)} positions for {plan.num_chains} chains; give one "
                "each."
            )
    if out is None:
        if resume:
            raise RunError("`sample(resume=True)` needs `out`, the directory of the run to continue.")
        return _in_memory(engine, recipe, initial, progress, metadata)
    return _on_disk(engine, recipe, initial, progress, RunDirectory(out), resume, metadata)


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
) -> Run:
    engine.start(initial)
    config = description(engine, recipe, metadata)
    try:
        if resume and directory.exists:
            _continue(engine, directory, config)
        else:
            directory.create(config)
        with progress_bar(engine.plan, engine.next_row, progress) as report:
            stream(engine, engine.plan.num_rows, report, directory)
    finally:
        directory.release()
    return Run.on_disk(directory, engine=engine, recipe=recipe)


def _continue(engine: Engine, directory: RunDirectory, config: Mapping[str, Any]) -> None:
    directory.lock()
    _check_same(directory.config(), config)
    manifest = directory.manifest()
    directory.quarantine_newer()
    if manifest is not None:
        assert engine.blocks is not None
        engine.resume(chains_from(directory.chains(), engine.blocks), manifest["next_row"])


def _check_same(saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Refuse to continue a run as something else; more draws of the same are welcome."""
    for name in wanted:
        if name in ("num_draws", "software", "metadata"):
            continue
        if saved.get(name) != wanted[name]:
            raise RunMismatchError(
                f"The run on disk has {name} {saved.get(name)!r}, this one has {wanted[name]!r}. Continue "
                "it with what it was started with, or start another in a new directory."
            )
    made_with, here = saved["software"]["jax"], wanted["software"]["jax"]
    if made_with != here:
        raise RunMismatchError(
            f"The run on disk was made with jax {made_with}, this is {here}; draws might differ in the last "
            "bit. Install that version to continue."
        )


def description(engine: Engine, recipe: Recipe, metadata: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return everything that defines the draws, ready for JSON."""
    plan, sampler = engine.plan, engine.sampler
    return {
        "recipe": recipe.name,
        "numbers": {name: float(value) for name, value in sampler.numbers.items()},
        "sampler": sampler_digest(sampler),
        "target": target_digest(sampler.target),
        "domain": repr(sampler.target.domain),
        "num_levels": list(sampler.target.domain.num_levels),
        "key": np.asarray(jax.random.key_data(engine.root)).tolist(),
        "key_type": str(jax.random.key_impl(engine.root)),
        "dtype": str(jnp.result_type(float)),
        "adapts": engine.schedule.adapts,
        **_plan_fields(plan),
        "software": software(),
        "metadata": dict(metadata or {}),
    }


def _plan_fields(plan: Plan) -> dict[str, Any]:
    names = ("num_chains", "num_warmup", "num_draws", "thinning", "keep", "chain_block")
    return {name: getattr(plan, name) for name in names}
