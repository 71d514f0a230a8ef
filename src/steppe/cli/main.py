"""`steppe`: run, resume, verify, diagnose, samplers, targets, version.

Exit codes: 0 done; 1 a diagnosis or verification found something; 2 the request is wrong; 3 storage failed;
130 and 143 interrupted, with everything committed.
"""

import json
import sys
from collections.abc import Mapping
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated, Any

import jax
from cyclopts import App, CycloptsError, Parameter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from steppe.cli.resolve import built_in_targets, is_own_code, make_recipe, make_target
from steppe.cli.runfile import RunFile, checked, read_run_file
from steppe.errors import RunError, SteppeError, StorageError
from steppe.run.result import Run, open_run
from steppe.run.sample import sample
from steppe.run.store import RunDirectory
from steppe.samplers import ALL_RECIPES

app = App(name="steppe", help="Sample discrete distributions and find their flat modes.", version_flags=[])

FOUND_SOMETHING, BAD_REQUEST, STORAGE_FAILED = 1, 2, 3
AsJson = Annotated[bool, Parameter(name="--json", negative="")]


@app.command
def run(
    file: Path | None = None,
    *,
    out: Path,
    target: str | None = None,
    recipe: str | None = None,
    seed: int | None = None,
    num_chains: int | None = None,
    num_warmup: int | None = None,
    num_draws: int | None = None,
    thinning: int | None = None,
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
    num_chains, num_warmup, num_draws, thinning
        Counts.
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
    request = checked({**fields, **{name: value for name, value in given.items() if value is not None}})
    _show(_sample(request, out, resume=False), as_json)


@app.command
def resume(
    directory: Path, *, target: str | None = None, num_draws: int | None = None, as_json: AsJson = False
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
    as_json
        Print the summary as JSON.
    """
    saved = dict(_existing(directory).config()["metadata"])
    if not saved:
        raise RunError(f"{directory} was not started by `steppe run`; continue it with `steppe.sample`.")
    if is_own_code(saved["target"]) and target is None:
        raise RunError(f"The run samples your own target; name it again: --target {saved['target']}.")
    changes = {"target": target, "num_draws": num_draws}
    request = checked({**saved, **{name: value for name, value in changes.items() if value is not None}})
    _show(_sample(request, directory, resume=True), as_json)


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
    problems = _existing(directory).problems()
    if as_json:
        _print_json({"ok": not problems, "problems": problems})
    else:
        for line in problems or ["Every file is whole."]:
            Console().print(escape(line))
    if problems:
        raise SystemExit(FOUND_SOMETHING)


@app.command
def diagnose(directory: Path, *, as_json: AsJson = False) -> None:
    """Say what mixed and what is stuck; exit code 1 when something is.

    Example: `steppe diagnose runs/a --json`

    Parameters
    ----------
    directory
        Run directory.
    as_json
        Print the summary as JSON.
    """
    _existing(directory)
    run = open_run(directory)
    _show(run, as_json)
    if not run.diagnose().ok:
        raise SystemExit(FOUND_SOMETHING)


@app.command
def samplers() -> None:
    """List the samplers with what each does.

    Example: `steppe samplers`
    """
    _list({name: make.__doc__ for name, make in ALL_RECIPES.items()})


@app.command
def targets() -> None:
    """List the built-in targets.

    Example: `steppe targets`
    """
    _list({name: make.__doc__ for name, make in built_in_targets().items()})


@app.command
def version() -> None:
    """Print the version.

    Example: `steppe version`
    """
    Console().print(installed_version("steppe"))


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; every failure is one sentence and a documented exit code."""
    try:
        app(arguments, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        _fail(str(error), BAD_REQUEST)
    except StorageError as error:
        _fail(str(error), STORAGE_FAILED)
    except SteppeError as error:
        _fail(str(error), BAD_REQUEST)
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _sample(request: RunFile, out: Path, *, resume: bool) -> Run:
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
        out=out,
        resume=resume,
        metadata=request.model_dump(exclude_none=True),
    )


def _existing(directory: Path) -> RunDirectory:
    found = RunDirectory(directory)
    if not found.exists:
        raise RunError(f"{directory} is not a run directory: it has no run.json.")
    return found


def _show(run: Run, as_json: bool) -> None:
    summary = run.summary()
    if as_json:
        _print_json({"path": str(run.path), **summary.to_dict()})
    else:
        Console().print(summary)


def _list(entries: Mapping[str, str | None]) -> None:
    table = Table("name", "what it is", box=None)
    for name, text in entries.items():
        table.add_row(escape(name), escape((text or "").strip().splitlines()[0]))
    Console().print(table)


def _print_json(content: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(content, indent=1, default=float) + "\n")


def _fail(message: str, code: int) -> None:
    # Messages may quote what the user typed: shown as text, never as markup or terminal commands.
    text = "".join(c if c.isprintable() or c == "\n" else "�" for c in message)
    Console(stderr=True).print(f"[bold red]error[/]: {escape(text)}", highlight=False, soft_wrap=True)
    raise SystemExit(code)
