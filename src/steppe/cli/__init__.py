"""The command line: thin verbs over the library. Data on standard output, progress on standard error."""

from steppe.cli.main import main

__all__ = ["main"]
