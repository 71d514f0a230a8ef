"""Cells of a table as numbers for a figure."""

from steppe.errors import RunError
from steppe.results import Cell, Estimate


def estimate(cell: Cell) -> Estimate:
    """A cell with its interval, if it has one."""
    if isinstance(cell, Estimate):
        return cell
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        raise RunError(f"A figure needs a number where the table has {cell!r}.")
    return Estimate(value=float(cell))


def number(cell: Cell) -> float:
    """The number in a cell."""
    return estimate(cell).value
