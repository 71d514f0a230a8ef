"""`steppe`: run, resume, watch, merge, verify, diagnose, report, modes, tune, compare, lists, and extensions.

Exit codes: 0 done; 1 a diagnosis or verification found something; 2 the request is wrong, or a package it
needs is missing or cannot be imported; 3 storage failed, or another process of a distributed run stopped;
130 and 143 interrupted, with everything committed.
"""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated, Literal

import jax
from cyclopts import App, CycloptsError, Parameter
from rich.console import Console
from rich.markup import escape

from steppe.cli.compare import compare
from steppe.cli.extensions import add_commands, find_extensions, load_command
from steppe.cli.modes import modes
from steppe.cli.output import AsJson, Whole, fail, print_json, print_list, show_run
from steppe.cli.report import report
from steppe.cli.resolve import is_own_code, list_targets, make_adapt, make_recipe, make_target
from steppe.cli.runfile import RunFile, check_run_file, read_run_file
from steppe.cli.tune import tune
from steppe.cli.watch import watch
from steppe.cli.where import Where, find_place
from steppe.errors import MissingPackageError, PeerError, RunError, SteppeError, StorageError
from steppe.report.terminal import printable
from steppe.run.result import Run, read_run
from steppe.run.sample import sample
from steppe.run.storage.shards import find_run, merge_shards
from steppe.samplers import ALL_RECIPES

app = App(name="steppe", help="Sample discrete distributions and find their flat modes.", version_flags=[])

FOUND_SOMETHING, BAD_REQUEST, STORAGE_FAILED, INTERRUPTED = 1, 2, 3, 130
Flag = Annotated[bool, Parameter(negative="")]
Shell = Literal["bash", "zsh", "fish"]

app.command(modes)
app.command(report)
app.command(watch)
app.command(tune)
app.command(compare)


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
    devices: Whole = None,
    shard: str | None = None,
    distributed: Flag = False,
    process: str | None = None,
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
        Built-in target, or `module:function` that returns a `steppe.Target`.
    recipe
        Sampler.
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
    devices
        Number of local devices to spread the chains over.
    shard
        `i/n`: run only part `i` of `n` of the chains, `i` from 0; `steppe merge` joins the parts.
    distributed
        Run together with the other processes of a Slurm or MPI job, each on a part of the chains.
    process
        `i/n@host:port`: with `--distributed`, where no Slurm or MPI tells the processes about each other, the
        number of this one and the address at which process 0 can be reached.
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
    }
    fields = {} if file is None else read_run_file(file)
    request = check_run_file(
        {**fields, **{name: value for name, value in given.items() if value is not None}}
    )
    where = find_place(devices, shard, distributed, process)
    show_run(_sample(request, out, where, resume=False), as_json)


@app.command
def resume(
    directory: Path,
    *,
    target: str | None = None,
    num_draws: Whole = None,
    devices: Whole = None,
    shard: str | None = None,
    distributed: Flag = False,
    process: str | None = None,
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
    devices
        Number of local devices to spread the chains over; need not be that of before.
    shard
        `i/n`, as the part was started.
    distributed
        Run together with the other processes of a job, as the run was started.
    process
        `i/n@host:port`, as for `run`.
    allow_other_version
        Continue although the run was made with another version of JAX; draws may then differ from those of
        an uninterrupted run.
    as_json
        Print the summary as JSON.
    """
    saved = dict(find_run(directory)[0].record().metadata)
    if not saved:
        raise RunError(f"{directory} was not started by `steppe run`; continue it with `steppe.sample`.")
    own = str(saved.get("target"))
    if is_own_code(own) and target is None:
        raise RunError(f"The run samples your own target; name it again: --target {own}.")
    changes = {"target": target, "num_draws": num_draws}
    request = check_run_file(
        {**saved, **{name: value for name, value in changes.items() if value is not None}}
    )
    where = find_place(devices, shard, distributed, process)
    show_run(
        _sample(request, directory, where, resume=True, allow_other_version=allow_other_version), as_json
    )


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
    show_run(_read(merge_shards(parts, out)), as_json)


@app.command
def verify(directory: Path, *, as_json: AsJson = False) -> None:
    """Read every byte of a run directory and name everything that is damaged.

    Example: `steppe verify runs/a`

    Parameters
    ----------
    directory
        Run directory.
    as_json
        Print the findings as JSON.
    """
    found = find_run(directory)
    problems = [
        problem if part.path == directory else f"{part.path.name}: {problem}"
        for part in found
        for problem in part.problems()
    ]
    if as_json:
        print_json({"ok": not problems, "problems": problems})
    else:
        for line in problems or ["Every file is whole."]:
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
    if not show_run(_read(directory), as_json).diagnosis.ok:
        raise SystemExit(FOUND_SOMETHING)


@app.command
def samplers() -> None:
    """List the samplers with what each does.

    Example: `steppe samplers`
    """
    print_list({name: make.__doc__ for name, make in ALL_RECIPES.items()})


@app.command
def targets() -> None:
    """List the built-in targets.

    Example: `steppe targets`
    """
    print_list({name: make.__doc__ for name, make in list_targets().items()})


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
    try:
        load_command(app, extensions, words[0] if words else "")
        app(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        fail(str(error), BAD_REQUEST)
    except (StorageError, PeerError) as error:
        fail(str(error), STORAGE_FAILED)
    except SteppeError as error:
        fail(str(error), BAD_REQUEST)
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


def _sample(
    request: RunFile, out: Path, where: Where, *, resume: bool, allow_other_version: bool = False
) -> Run:
    return sample(
        make_target(request.target, request.target_parameters),
        make_recipe(request.recipe, request.recipe_parameters),
        key=jax.random.key(request.seed),
        num_chains=request.num_chains,
        num_warmup=request.num_warmup,
        num_draws=request.num_draws,
        thinning=request.thinning,
        keep=request.keep,
        chain_block=request.chain_block,
        adapt=make_adapt(request.adapt),
        devices=where.devices,
        shard=where.shard,
        out=out,
        resume=resume,
        allow_other_version=allow_other_version,
        metadata=request.model_dump(exclude_none=True),
    )


def _read(directory: Path) -> Run:
    return read_run(directory, find_run(directory, keeps_rows=True))
