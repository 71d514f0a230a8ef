"""Questions that the command line answers at once, before JAX is imported: `steppe --help`, `--version`."""

import sys
from importlib.metadata import version

from cyclopts import App
from rich.console import Console

from steppe.cli.extensions import add_commands, find_extensions

# The first sentence of what each verb says of itself; a test compares.
SUMMARIES = {
    "compare": "Run samplers with equal budgets, each tuned by the same rule, and compare them.",
    "completion": "Print the completion script of a shell.",
    "diagnose": "Say what mixed and what has not converged; exit code 1 when something is.",
    "merge": "Make one run of the parts that `--shard` or `--distributed` left.",
    "modes": "Find modes that are good, and still good after a disturbance.",
    "report": "Write one self-contained HTML page: verdicts, tables, figures, settings.",
    "resume": "Continue a run: the same draws as if it had never stopped.",
    "run": "Sample a target into a new run directory.",
    "samplers": "List the samplers with what each does.",
    "targets": "List the targets that have a name, with their parameters.",
    "tune": "Choose a hyper-parameter of a sampler for a target, by a stated rule, from short runs.",
    "verify": "Read every byte of a run directory and name everything that is damaged.",
    "version": "Print the version.",
    "watch": "Show how a run goes on while another process makes it; ends with the run, or on Ctrl-C.",
}


def answer(words: list[str]) -> bool:
    """Answer, if it is one of these questions."""
    if words in (["version"], ["--version"]):
        Console().print(version("steppe"))
    elif words in ([], ["--help"], ["-h"]):
        make_overview()(["--help"], result_action="return_value")
    else:
        return False
    sys.stdout.flush()
    return True


def make_overview() -> App:
    """The verbs with what they say of themselves, and nothing behind them."""
    app = App(
        name="steppe", help="Sample discrete distributions and find their flat modes.", version_flags=[]
    )
    for verb, summary in SUMMARIES.items():
        app.command(App(name=verb, help=summary))
    add_commands(app, find_extensions())
    return app
