"""Mutation testing of the kernel, the runner and the diagnostics.

    PYTHONPATH=tests python -m mutants              # 200 of each package; goes on where it was stopped
    PYTHONPATH=tests python -m mutants --package kernel --again  # survivors once more, after new tests
    PYTHONPATH=tests python -m mutants --again --thorough  # survivors, with all tests of those files
    PYTHONPATH=tests python -m mutants --only b5faaed0c94c --with tests/exact/test_gibbs.py  # by name
    PYTHONPATH=tests python -m mutants --planted    # the bugs of planted.toml
    PYTHONPATH=tests python -m mutants --show       # what is known so far

Works on a copy of the project in `out/mutants`, in forks of one process. `outcomes.jsonl` keeps what became
of each, `survivors.toml` says of every survivor why it may live.
"""

import argparse
import sys
import tomllib
from collections import Counter
from pathlib import Path

from .outcomes import KILLED, read_outcomes
from .planted import try_planted
from .touched import FOLDERS, make_map
from .tree import HOME, PACKAGES, copy_project
from .trial import try_mutants, try_with, wilson
from .warm import Server, import_packages

SURVIVORS = Path(__file__).with_name("survivors.toml")


def main() -> None:
    """Try mutants, then say how many were noticed."""
    parser = argparse.ArgumentParser(description="Try mutants of the kernel, the runner and the diagnostics.")
    parser.add_argument("--package", choices=PACKAGES, action="append")
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true", help="try survivors again, after new tests")
    parser.add_argument("--thorough", action="store_true", help="with all tests of the files that touch them")
    parser.add_argument("--planted", action="store_true", help="try the bugs of planted.toml alone")
    parser.add_argument("--show", action="store_true", help="try nothing")
    parser.add_argument("--only", nargs="+", metavar="MUTANT", help="try these alone, with tests by name")
    parser.add_argument("--with", nargs="+", metavar="TEST", dest="names", help="tests for those of `--only`")
    parser.add_argument(
        "--tests",
        nargs="*",
        default=FOLDERS,
        metavar="PATH",
        help="look for new tests in these folders and files of tests/",
    )
    options = parser.parse_args()
    HOME.mkdir(parents=True, exist_ok=True)
    if not options.show:
        copy_project()
        import_packages()
        if options.planted:
            sys.exit(try_planted(say))
        server = Server()
        if options.only:
            try_with(options.only, options.names, server, say)
            server.close()
            return
        make_map(server, options.tests, say)
        packages = options.package or PACKAGES
        try_mutants(
            packages,
            options.number,
            options.seed,
            server,
            say,
            again=options.again,
            is_thorough=options.thorough,
        )
        server.close()
    show()


def show() -> None:
    """Say how many mutants were noticed, and list the survivors that nobody has explained."""
    explained = tomllib.loads(SURVIVORS.read_text(encoding="utf-8")) if SURVIVORS.exists() else {}
    outcomes = read_outcomes().values()
    for package in PACKAGES:
        own = [outcome for outcome in outcomes if outcome.package == package]
        if not own:
            continue
        equivalent = sum(explained.get(outcome.name, {}).get("verdict") == "equivalent" for outcome in own)
        for when, ends in (
            ("when first tried", [outcome.first for outcome in own]),
            ("now", [outcome.outcome for outcome in own]),
        ):
            killed, counted = ends.count(KILLED), len(ends) - equivalent
            low, high = wilson(killed, counted)
            say(
                f"{package}, {when}: {killed} of {counted} noticed, {killed / counted:.1%} "
                f"[{low:.1%}, {high:.1%}]; {equivalent} more change nothing; {dict(Counter(ends))}"
            )
    for outcome in outcomes:
        if outcome.outcome != KILLED and outcome.name not in explained:
            say(f"unexplained: {outcome.name} {outcome.what}")


def say(sentence: str) -> None:
    """Print a line at once."""
    sys.stdout.write(sentence + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
