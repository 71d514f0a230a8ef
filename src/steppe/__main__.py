"""`python -m steppe` is the command line."""

from steppe.cli import main

main()
