"""The command line: thin verbs over the library. Data on standard output, progress on standard error."""

import sys

from steppe.errors import MissingPackageError
from steppe.optional import needed

try:
    for package in ("cyclopts", "pydantic"):
        needed(package, "cli", "The command line")
except MissingPackageError as error:
    sentence = f"error: {error}\n"

    def main(arguments: list[str] | None = None) -> None:
        """Say what the command line needs; the library works without."""
        sys.stderr.write(sentence)
        raise SystemExit(2)
else:
    from steppe.cli.main import main

__all__ = ["main"]
