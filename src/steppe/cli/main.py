"""`steppe`: run, resume, watch, merge, verify, diagnose, report, modes, tune, compare, lists, and extensions.

Exit codes: 0 done; 1 a diagnosis or verification found something; 2 the request is wrong, or a package it
needs is missing or cannot be imported; 3 storage failed, or another process of a distributed run stopped;
4 an error that was not foreseen, which is ours: `STEPPE_DEBUG=1` shows where; 130 and 143 interrupted, with
everything committed.
"""

import logging
import os
import sys
import warnings
from functools import partial
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console
from rich.markup import escape

from steppe.cli.carry_out import FOUND_SOMETHING, INTERRUPTED, Ends, sample_request, show_ended
from steppe.cli.extensions import add_commands, find_extensions, load_command
from steppe.cli.output import AsJson, Whole, fail, print_json, print_list, show_run, show_warning
from steppe.cli.resolve import (
    describe_samplers,
    describe_targets,
    is_own_code,
)
from steppe.cli.runfile import check_run_file, read_run_file
from steppe.cli.where import find_place, guard_process
from steppe.errors import (
    DamagedRunWarning,
    MissingPackageError,
    PeerError,
    RunError,
    SteppeError,
    StorageError,
)
from steppe.report.terminal import printable
from steppe.run.result import open_run
from steppe.run.storage.shards import find_run, merge_shards
from steppe.trace import REASON

app = App(name="steppe", help="Sample discrete distributions and find their flat modes.", version_flags=[])

BAD_REQUEST, STORAGE_FAILED, UNFORESEEN = 2, 3, 4
Flag = Annotated[bool, Parameter(negative="")]
Names = Annotated[list[str] | None, Parameter(negative="")]
Shell = Literal["bash", "zsh", "fish"]

# Verbs of other modules, each imported when it is called.
for verb in ("compare", "modes", "report", "tune", "watch"):
    app.command(f"steppe.cli.{verb}:{verb}", name=verb)


@app.command
def run(
    file: Path | None = None,
    *,
    out: Path,
    target: str | None = None,
    recipe: str | None = None,
    seed: Whole = None,
    num_chains: Whole = None,
    num_warmup: Whole = None,
    num_draws: Whole = None,
    thinning: Whole = None,
    observable: Names = None,
    devices: Whole = None,
    shard: str | None = None,
    distributed: Flag = False,
    process: str | None = None,
    commit_seconds: float | None = None,
    time_limit: float | None = None,
    until_ess: float | None = None,
    until_rhat: float | None = None,
    as_json: AsJson = False,
) -> None:
    """Sample a target into a new run directory.

    Example: `steppe run --target paper_bernoulli --recipe edmala --num-draws 5000 --out runs/a`

    Parameters
    ----------
    file
        TOML run file; flags override its fields.
    out
        Directory to write to; must be empty or new.
    target
        Built-in target, or `module:function` or `path/to/file.py:function` that returns a `steppe.Target`;
        modules of the current directory are found.
    recipe
        Sampler; by default the one that is recommended for the target, with the reason in the summary.
    seed
        Random seed.
    num_chains
        Independent chains; 4 by default.
    num_warmup
        Steps of each chain before its first draw, in which its step size is adapted; 1000 by default.
    num_draws
        Draws kept of each chain; 1000 by default.
    thinning
        Steps per draw; 1 by default.
    observable
        Number of a state to follow while chains run: `module:function` or `path/to/file.py:function` of one
        position, or `overlap` of two chains; `name=` before it names it. May be given several times.
    devices
        Number of local devices to spread the chains over.
    shard
        `i/n`: run only part `i` of `n` of the chains, `i` from 0; `steppe merge` joins the parts.
    distributed
        Run together with the other processes of a Slurm or MPI job, each on a part of the chains.
    process
        `i/n@host:port`: with `--distributed`, where no Slurm or MPI tells the processes about each other, the
        number of this one and the address at which process 0 can be reached.
    commit_seconds
        Seconds between commits to disk, 10 by default: what a kill may cost.
    time_limit
        Seconds after which the run ends with the draws it has; `steppe resume` goes on.
    until_ess
        End before `--num-draws` once the effective sample size of the log-density is so large. If it never
        is, the exit code is 1.
    until_rhat
        End once its R-hat is so small; of two that are given, both must hold.
    as_json
        Print the summary as JSON.
    """
    given = {
        "target": target,
        "recipe": recipe,
        "seed": seed,
        "num_chains": num_chains,
        "num_warmup": num_warmup,
        "num_draws": num_draws,
        "thinning": thinning,
        "observables": observable,
    }
    fields = {} if file is None else read_run_file(file)
    request = check_run_file(
        {**fields, **{name: value for name, value in given.items() if value is not None}}
    )
    where = find_place(devices, shard, distributed, process)
    ends = Ends(commit_seconds, time_limit, until_ess, until_rhat)
    show_ended(sample_request(request, out, where, ends, resume=False), as_json)


@app.command
def resume(
    directory: Path,
    *,
    target: str | None = None,
    num_draws: Whole = None,
    observable: Names = None,
    devices: Whole = None,
    shard: str | None = None,
    distributed: Flag = False,
    process: str | None = None,
    commit_seconds: float | None = None,
    time_limit: float | None = None,
    until_ess: float | None = None,
    until_rhat: float | None = None,
    allow_other_version: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Continue a run: the same draws as if it had never stopped.

    Example: `steppe resume runs/a --num-draws 20000`

    Parameters
    ----------
    directory
        Run directory.
    target
        Needed for your own targets: `module:function`, as typed for `run`. It is never read from a directory.
    num_draws
        Draws per chain to reach; those of the original request by default.
    observable
        Needed for your own observables, as typed for `run`. They are never read from a directory.
    devices
        Number of local devices to spread the chains over; need not be that of before.
    shard
        `i/n`, as the part was started.
    distributed
        Run together with the other processes of a job; there may be more or fewer than before.
    process
        `i/n@host:port`, as for `run`.
    commit_seconds
        Seconds between commits to disk, 10 by default.
    time_limit
        Seconds after which the run ends with the draws it has.
    until_ess
        Effective sample size to end at, as for `run`.
    until_rhat
        R-hat to end at, as for `run`.
    allow_other_version
        Continue although the run was made with another version of JAX or on another processor; draws may
        then differ from those of an uninterrupted run.
    as_json
        Print the summary as JSON.
    """
    saved = dict(find_run(directory)[0].record().metadata)
    saved.pop(REASON, None)  # `sample` says why it chose the recipe
    if not saved:
        raise RunError(f"{directory} was not started by `steppe run`; continue it with `steppe.sample`.")
    own = str(saved.get("target"))
    if is_own_code(own) and target is None:
        raise RunError(f"The run samples your own target; name it again: --target {own}.")
    followed = [str(one) for one in saved.get("observables") or []]  # type: ignore[union-attr]
    if observable is None and any(map(is_own_code, followed)):
        again = " ".join(f"--observable {one}" for one in followed)
        raise RunError(f"The run follows your own observables; name them again: {again}.")
    changes = {"target": target, "num_draws": num_draws, "observables": observable}
    request = check_run_file(
        {**saved, **{name: value for name, value in changes.items() if value is not None}}
    )
    where = find_place(devices, shard, distributed, process)
    ends = Ends(commit_seconds, time_limit, until_ess, until_rhat)
    continued = sample_request(
        request, directory, where, ends, resume=True, allow_other_version=allow_other_version
    )
    show_ended(continued, as_json)


@app.command
def merge(*parts: Path, out: Path, as_json: AsJson = False) -> None:
    """Make one run of the parts that `--shard` or `--distributed` left.

    Example: `steppe merge runs/a --out runs/whole`

    Parameters
    ----------
    parts
        Directory that was given as `--out` to every part, or the directories of the parts.
    out
        Directory to write to; must be empty or new.
    as_json
        Print the summary as JSON.
    """
    show_run(open_run(merge_shards(parts, out)), as_json)


@app.command
def verify(directory: Path, *, quick: Flag = False, as_json: AsJson = False) -> None:
    """Read every byte of a run directory and name everything that is damaged.

    Example: `steppe verify runs/a`

    Parameters
    ----------
    directory
        Run directory.
    quick
        Check documents, their order and the sizes of files, and leave the bytes of draws alone.
    as_json
        Print the findings as JSON.
    """
    named: dict[str, list[str]] = {"problems": [], "unfinished": [], "quarantined": []}
    for part in find_run(directory):
        found = (*part.examine("quick" if quick else "all"), part.quarantined)
        place = "" if part.path == directory else f"{part.path.name}: "
        for kind, sentences in zip(named, found, strict=True):
            named[kind] += [f"{place}{sentence}" for sentence in sentences]
    problems = named["problems"]
    if as_json:
        print_json({"ok": not problems, **named})
    else:
        whole = "Every document fits." if quick else "Every file is whole."
        notes = [f"{name} was set aside when the run was resumed." for name in named["quarantined"]]
        for line in (*(problems or [whole]), *named["unfinished"], *notes):
            Console().print(escape(printable(line)), soft_wrap=True)
    if problems:
        raise SystemExit(FOUND_SOMETHING)


@app.command
def diagnose(directory: Path, *, as_json: AsJson = False) -> None:
    """Say what mixed and what has not converged; exit code 1 when something is.

    Example: `steppe diagnose runs/a --json`

    Parameters
    ----------
    directory
        Run directory.
    as_json
        Print the summary as JSON.
    """
    if not show_run(open_run(directory), as_json).diagnosis.ok:
        raise SystemExit(FOUND_SOMETHING)


@app.command
def samplers() -> None:
    """List the samplers with what each does.

    Example: `steppe samplers`
    """
    print_list(describe_samplers())


@app.command
def targets() -> None:
    """List the targets that have a name, with their parameters.

    Example: `steppe targets`
    """
    print_list(describe_targets())


@app.command
def completion(shell: Shell) -> None:
    """Print the completion script of a shell.

    Example: `steppe completion bash > ~/.local/share/bash-completion/completions/steppe`

    Parameters
    ----------
    shell
        Which shell.
    """
    for verb in extensions:
        try:
            load_command(app, extensions, verb)
        except MissingPackageError:
            del app[verb]
    sys.stdout.write(app.generate_completion(shell=shell) + "\n")


@app.command
def version() -> None:
    """Print the version.

    Example: `steppe version`
    """
    Console().print(installed_version("steppe"))


extensions = add_commands(app, find_extensions())


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; every failure is one sentence and a documented exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    if arguments is None and "--distributed" in words and hasattr(os, "fork"):
        guard_process(STORAGE_FAILED)
    if not os.environ.get("STEPPE_DEBUG"):  # JAX logs what a callback raises, which is said in a sentence
        logging.getLogger("jax._src.callback").setLevel(logging.CRITICAL)
    try:
        load_command(app, extensions, words[0] if words else "")
        with warnings.catch_warnings():
            warnings.simplefilter("always", DamagedRunWarning)
            warnings.showwarning = partial(show_warning, warnings.showwarning)
            app(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        fail(str(error), BAD_REQUEST)
    except (StorageError, PeerError) as error:
        try:
            fail(str(error), STORAGE_FAILED)
        finally:
            if isinstance(error, PeerError) and error.__cause__ is not None:
                # At the end of a process JAX's runtime waits for one that has died, and aborts.
                os._exit(STORAGE_FAILED)
    except SteppeError as error:
        fail(str(error), BAD_REQUEST)
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:
        if os.environ.get("STEPPE_DEBUG"):
            raise
        fail(
            f"something that was not foreseen: {type(error).__name__}: {str(error).rstrip('.')}. Please "
            "report it; with STEPPE_DEBUG=1 the same call shows where it happened.",
            UNFORESEEN,
        )
