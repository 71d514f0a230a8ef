"""Cells of a table as text (aligned decimals, real minus signs, no invented precision) and as numbers."""

import math

from steppe.errors import RunError
from steppe.results import Cell, Estimate

UNDEFINED = "–"
MINUS = "−"
THIN_SPACE = "\u202f"
LARGEST_PLAIN = 1e7
MOST_DECIMALS = 12


def format_decimals(value: float, digits: int) -> str:
    """A number with so many decimals, or as a power of ten where those would hide or flood it."""
    digits = min(max(digits, 0), MOST_DECIMALS)
    if value != 0 and not 0.5 * 10.0**-digits <= abs(value) < LARGEST_PLAIN:
        return format_scientific(value)
    text = f"{value:,.{digits}f}" if abs(value) >= 1e4 else f"{value:.{digits}f}"
    return text.replace(",", THIN_SPACE).replace("-", MINUS)


def format_significant(value: float, digits: int = 3) -> str:
    """A number with so many significant digits."""
    if value != 0 and not 1e-4 <= abs(value) < LARGEST_PLAIN:
        return format_scientific(value)
    if abs(value) >= 10**digits:
        return format_decimals(value, 0)
    return f"{value:.{digits}g}".replace("-", MINUS)


def format_scientific(value: float) -> str:
    """`1.2×10⁻⁵`."""
    mantissa, exponent = f"{value:.2g}".split("e") if "e" in f"{value:.2g}" else f"{value:.1e}".split("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}×10{raised}".replace("-", MINUS)


def format_interval(estimate: Estimate, digits: int | None = None) -> str:
    """`[low, high]`, or nothing for an exact number."""
    if estimate.low is None or estimate.high is None:
        return ""
    digits = count_decimals(estimate) if digits is None else digits
    ends = [
        format_significant(e) if digits is None else format_decimals(e, digits)
        for e in (estimate.low, estimate.high)
    ]
    return f"[{', '.join(ends)}]"


def count_decimals(estimate: Estimate) -> int | None:
    """Decimals that show half the width of the interval with two digits; `None` without an interval."""
    if estimate.low is None or estimate.high is None or estimate.high <= estimate.low:
        return None
    return max(0, 1 - math.floor(math.log10((estimate.high - estimate.low) / 2)))


def format_cell(cell: Cell, digits: int | None = None) -> str:
    """A cell without its interval; `digits` decimals, or as many as are known by default."""
    if cell is None:
        return UNDEFINED
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return format_decimals(cell, 0) if abs(cell) < LARGEST_PLAIN else f"{cell:,}".replace(",", THIN_SPACE)
    if isinstance(cell, Estimate):
        return format_cell(cell.value, count_decimals(cell) if digits is None else digits)
    return format_significant(cell) if digits is None else format_decimals(cell, digits)


def format_with_interval(cell: Cell) -> str:
    """A cell with its interval, on one line."""
    shown = format_cell(cell)
    return f"{shown} {format_interval(cell)}".rstrip() if isinstance(cell, Estimate) else shown


def to_finite(value: float) -> float | None:
    """A number, or `None` where it is infinite or undefined."""
    return float(value) if math.isfinite(value) else None


def divide(value: float, by: float | None) -> float | None:
    """A ratio, or `None` where it is undefined."""
    return to_finite(value / by) if by else None


def is_number(cell: Cell) -> bool:
    """Whether a cell holds a number, with or without an interval."""
    return isinstance(cell, Estimate | int | float) and not isinstance(cell, bool)


def is_numeric(cells: list[Cell]) -> bool:
    """Whether a column of these cells is one of numbers."""
    return any(map(is_number, cells)) and not any(isinstance(cell, str) for cell in cells)


def to_estimate(cell: Cell) -> Estimate:
    """A cell with its interval, if it has one."""
    if isinstance(cell, Estimate):
        return cell
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        raise RunError(f"A figure needs a number where the table has {cell!r}.")
    return Estimate(value=float(cell))


def to_number(cell: Cell) -> float:
    """The number in a cell."""
    return to_estimate(cell).value
