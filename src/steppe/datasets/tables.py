"""From rows of text to splits of standardised features: the steps all tables share."""

import csv
import io
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steppe.datasets.card import CardFields, Dataset, Split, describe_size
from steppe.errors import DataError

VALIDATION_SHARE = 0.01  # the last of the shuffled training rows, as in the published experiments


class Raw(NamedTuple):
    """A table before scaling: features, targets, and where the test rows begin.

    Attributes
    ----------
    x, y
        All rows, training rows first, already in the order of the split.
    num_train
        Rows to learn from and to validate with.
    columns
        Names of the features.
    """

    x: np.ndarray
    y: np.ndarray
    num_train: int
    columns: tuple[str, ...]


def read_rows(what: str, content: bytes, *, num_columns: int | None = None) -> list[list[str]]:
    """Read comma-separated text; every row must have as many fields as the first.

    Parameters
    ----------
    what
        The file, as errors call it.
    content
        The text.
    num_columns
        How many fields there should be; by default as many as in the first row.
    """
    rows = []
    reader = csv.reader(io.StringIO(content.decode("utf-8", "replace"), newline=""), skipinitialspace=True)
    for fields in reader:
        if not fields:
            continue
        num_columns = num_columns or len(fields)
        if len(fields) != num_columns:
            raise DataError(
                f"{what}, line {reader.line_num}: {len(fields)} fields instead of {num_columns}. The file is "
                "ragged; fetch it again."
            )
        rows.append(fields)
    if not rows:
        raise DataError(f"{what} has no rows.")
    return rows


def read_numbers(
    what: str, content: bytes, *, skip_rows: int = 0, columns: Sequence[int] | None = None
) -> np.ndarray:
    """Read comma-separated numbers as float64.

    Parameters
    ----------
    what
        The file, as errors call it.
    content
        The text.
    skip_rows
        Header rows.
    columns
        Which columns to read; all by default.
    """
    stream = io.StringIO(content.decode("ascii", "replace"))
    try:
        table = np.loadtxt(stream, delimiter=",", skiprows=skip_rows, usecols=columns, ndmin=2)
    except (ValueError, IndexError) as error:
        raise DataError(f"{what} is not a table of numbers: {error}.") from error
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise DataError(f"{what}: row {row + 1 + skip_rows} holds {table[row, column]}, not a finite number.")
    return table


def number_column(what: str, rows: Sequence[Sequence[str]], index: int, column: str) -> np.ndarray:
    """Return one column as numbers, naming the first that is none."""
    values = np.empty(len(rows))
    for position, fields in enumerate(rows):
        try:
            values[position] = float(fields[index])
            if not np.isfinite(values[position]):
                raise ValueError
        except ValueError:
            raise DataError(
                f"{what}: column {column!r} holds {fields[index]!r} in row {position + 1}, not a number."
            ) from None
    return values


def one_hot(what: str, values: Sequence[str], categories: Sequence[str], column: str) -> np.ndarray:
    """Return one column of zeros and ones per category.

    Parameters
    ----------
    what
        The file, as errors call it.
    values
        One per row.
    categories
        All that may occur, in the order of the columns.
    column
        Its name.
    """
    unknown = sorted(set(values) - set(categories))
    if unknown:
        raise DataError(
            f"{what}: column {column!r} holds the unknown category {unknown[0]!r}; known are "
            f"{', '.join(categories)}."
        )
    return (np.asarray(values)[:, None] == np.asarray(categories)[None]).astype(float)


def dataset(raw: Raw, card: CardFields, *, as_published: bool) -> Dataset:
    """Scale the features and cut the table into splits.

    Parameters
    ----------
    raw
        The table.
    card
        What is known but the size.
    as_published
        Map every feature to [0, 1] over training and test rows together before standardising it, and
        divide by the unbiased standard deviation.
    """
    num_fit = int(raw.num_train * (1 - VALIDATION_SHARE))
    if num_fit < 1 or raw.num_train >= len(raw.x):
        raise DataError(f"{card['name']!r}: {len(raw.x)} rows are too few to split.")
    x = _joint_unit_range(raw.x) if as_published else raw.x
    x = _standardise(x, x[:num_fit], ddof=int(as_published)).astype(np.float32)
    y = raw.y.astype(np.float32)
    cuts = (slice(None, num_fit), slice(num_fit, raw.num_train), slice(raw.num_train, None))
    splits = tuple(Split(x[cut], y[cut]) for cut in cuts)
    return Dataset(*splits, card=describe_size(splits, card), columns=raw.columns)


def _joint_unit_range(x: np.ndarray) -> np.ndarray:
    minimum, maximum = x.min(0), x.max(0)
    return (x - minimum) / np.where(maximum > minimum, maximum - minimum, 1)


def _standardise(x: np.ndarray, fit: np.ndarray, ddof: int) -> np.ndarray:
    spread = fit.std(0, ddof=ddof)
    return (x - fit.mean(0)) / np.where(spread > 0, spread, 1)  # a constant column says nothing: zeros
