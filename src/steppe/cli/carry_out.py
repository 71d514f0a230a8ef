"""From a checked request to a run directory, and what an interrupted one says."""

from pathlib import Path
from typing import NamedTuple

import jax

from steppe.cli.output import fail, show_run
from steppe.cli.resolve import is_own_code, make_adapt, make_observables, make_recipe, make_target
from steppe.cli.runfile import RunFile
from steppe.cli.where import Where
from steppe.errors import SteppeError, StorageError
from steppe.run.result import Run
from steppe.run.sample import sample
from steppe.run.storage.directory import RunDirectory
from steppe.run.storage.glance import glance
from steppe.run.until import until

FOUND_SOMETHING, INTERRUPTED, TERMINATED = 1, 130, 143


class Ends(NamedTuple):
    """When a run is committed and when it ends."""

    commit_seconds: float | None
    time_limit: float | None
    ess: float | None
    rhat: float | None


def show_ended(run: Run, as_json: bool) -> None:
    """Show a run; one that did not reach what it was meant to reach ends with a code of its own."""
    show_run(run, as_json)
    if run.shortfall:
        fail(run.shortfall, FOUND_SOMETHING)


def sample_request(
    request: RunFile,
    out: Path,
    where: Where,
    ends: Ends,
    *,
    resume: bool,
    allow_other_version: bool = False,
) -> Run:
    """Sample what a run file asks for into a directory, or continue it there."""
    if not resume and RunDirectory(out).exists:
        raise StorageError(
            f"{out} already holds a run. Continue it with `steppe resume {out}`, or name another directory."
        )
    try:
        return sample(
            make_target(request.target, request.target_parameters),
            None if request.recipe is None else make_recipe(request.recipe, request.recipe_parameters),
            key=jax.random.key(request.seed),
            num_chains=request.num_chains,
            num_warmup=request.num_warmup,
            num_draws=request.num_draws,
            thinning=request.thinning,
            keep=request.keep,
            chain_block=request.chain_block,
            adapt=make_adapt(request.adapt),
            observables=make_observables(request.observables),
            devices=where.devices,
            shard=where.shard,
            out=out,
            resume=resume,
            commit_seconds=ends.commit_seconds,
            time_limit=ends.time_limit,
            until=None if ends.ess is ends.rhat is None else until(ess=ends.ess, rhat=ends.rhat),
            allow_other_version=allow_other_version,
            metadata=request.model_dump(exclude_none=True),
        )
    except KeyboardInterrupt:
        fail(_say_what_is_kept(request, out), INTERRUPTED)
    except SystemExit as stop:
        if stop.code == TERMINATED:
            fail(_say_what_is_kept(request, out), TERMINATED)
        raise


def _say_what_is_kept(request: RunFile, out: Path) -> str:
    """Say how far an interrupted run came, and with which line it goes on."""
    try:
        seen = glance(out)
    except SteppeError:
        return f"interrupted before anything was kept in {out}."
    own = f" --target {request.target}" if is_own_code(request.target) else ""
    if any(map(is_own_code, request.observables)):
        own += "".join(f" --observable {one}" for one in request.observables)
    return (
        f"interrupted; {seen.num_rows} of {seen.num_rows_planned} rows of every chain, warm-up "
        f"included, are kept. Continue with `steppe resume {out}{own}`."
    )
