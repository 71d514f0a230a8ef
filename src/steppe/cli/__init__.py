"""The command line: thin verbs over the library. Data on standard output, progress on standard error."""

import sys

from steppe.cli.questions import answer
from steppe.optional import PackageOfFunctions

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; every failure is one sentence and a documented exit code."""
    if answer(sys.argv[1:] if arguments is None else arguments):
        raise SystemExit(0)
    from steppe.cli.main import main as run

    run(arguments)


# The module `main` does not take the place of the function.
sys.modules[__name__].__class__ = PackageOfFunctions
