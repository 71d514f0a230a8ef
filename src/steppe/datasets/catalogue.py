"""Tables shipped with the package: names, sizes, digests and best known values of graph instances."""

import csv
from functools import cache
from importlib.resources import files

from steppe.errors import DataError
from steppe.validation import find_near_names


@cache
def rows(table: str) -> dict[str, dict[str, str]]:
    """Return the rows of a table by name."""
    text = files("steppe.datasets").joinpath(f"{table}.csv").read_text("utf-8")
    return {row["name"]: row for row in csv.DictReader(text.splitlines())}


def row(table: str, name: str) -> dict[str, str]:
    """Return one row, or say which names there are."""
    known = rows(table)
    if name not in known:
        begun_alike = [other for other in known if other.lower().startswith(name.lower()[:2])]
        alike = find_near_names(name, known, 8) or begun_alike or list(known)
        raise DataError(
            f"There is no `{table}:{name}`; there is {', '.join(alike[:8])} and others, {len(known)} in all. "
            f"Read a file of your own with `steppe.datasets.read_{table}(path)`."
        )
    return known[name]
