"""The tables of data: which, how many rows, and what predicts them without a network."""

from typing import NamedTuple

import numpy as np

from steppe import datasets
from steppe.datasets import Split
from steppe.errors import RunError
from steppe.validation import find_name
from steppe_edlp.request import Request, find_digests

PAPER_TABLES = ("compas", "news", "adult", "blog")
EMBEDDED = "breast-cancer"
QUICK_ROWS = 500
LEAST_VALIDATION = 0.05  # fraction of the training rows; the published splits set aside 1 %
PRINTED = "printed"


class Asked(NamedTuple):
    """A table that is asked for.

    Attributes
    ----------
    name
        Of the table.
    num_rows
        At most so many training rows; `None` for all.
    is_printed
        Whether for the network that the paper prints, not the one that its numbers are from.
    """

    name: str
    num_rows: int | None = None
    is_printed: bool = False


class Rows(NamedTuple):
    """A table as the experiment uses it.

    Attributes
    ----------
    name
        Of the table.
    train, test
        As published, at most as many training rows as asked for.
    fitted, validation
        The training rows parted: to sample on, and to choose settings with.
    num_published
        Training and test rows of the whole table.
    digests
        Of the files.
    is_printed
        Whether the paper's network is the one it prints: 500 hidden units and `U = −Σ (f − y)²`.
    """

    name: str
    train: Split
    test: Split
    fitted: Split
    validation: Split
    num_published: tuple[int, int]
    digests: dict[str, str]
    is_printed: bool = False

    @property
    def key(self) -> str:
        """What its cells are called."""
        return f"{self.name}-{PRINTED}" if self.is_printed else self.name

    @property
    def label(self) -> str:
        """What it is called in words."""
        return f"{self.name}, network as {PRINTED}" if self.is_printed else self.name

    @property
    def is_whole(self) -> bool:
        """Whether no rows were left out."""
        return (len(self.train), len(self.test)) == self.num_published


def find_requested(request: Request) -> list[Asked]:
    """Tables asked for: `--instance compas`, `adult:5000,news` with fewer rows, or `compas@printed`."""
    limit = QUICK_ROWS if request.is_quick else None
    if request.instance is None:
        return [Asked(EMBEDDED)] if request.data is None else [Asked(name, limit) for name in PAPER_TABLES]
    found = []
    for word in request.instance.split(","):
        rest, at, variant = word.strip().partition("@")
        name, _, rows = rest.partition(":")
        if rows and not (rows.isdigit() and int(rows) >= 2):
            raise RunError(f"`--instance {word}` must end in a number of rows, at least 2; got {rows!r}.")
        if at and variant != PRINTED:
            raise RunError(
                f"`--instance {word}`: only `@{PRINTED}` may follow a table; got {'@' + variant!r}."
            )
        name = find_name(name, (*PAPER_TABLES, EMBEDDED), "table")
        found.append(Asked(name, int(rows) if rows else limit, bool(at)))
    return found


def load_rows(asked: Asked, request: Request) -> Rows:
    """Load a table and part its rows."""
    name, num_rows, is_printed = asked
    is_papers = name in PAPER_TABLES
    data = datasets.load(name, data=request.data, as_published=is_papers)
    train = _take(data.train, num_rows)
    test = _take(data.test, None if num_rows is None else max(num_rows, QUICK_ROWS))
    fitted, validation = train, data.validation
    if len(validation) < LEAST_VALIDATION * len(train):
        cut = len(train) - max(1, len(train) // 10)
        fitted, validation = _take(train, cut), Split(train.x[cut:], train.y[cut:])
    whole = len(data.train), len(data.test)
    return Rows(name, train, test, fitted, validation, whole, find_digests(data), is_printed)


def _take(split: Split, number: int | None) -> Split:
    return Split(split.x[:number], split.y[:number])


def find_rmse(predicted: np.ndarray, y: np.ndarray) -> float:
    """Root of the mean squared error."""
    return float(np.sqrt(np.mean((np.asarray(predicted, float) - y) ** 2)))


def fit_baselines(train: Split, test: Split) -> dict[str, tuple[float, float]]:
    """Training log-likelihood (−MSE) and test RMSE of the mean of y, and of least squares cut to [0, 1]."""
    inputs = [np.c_[part.x, np.ones(len(part))].astype(float) for part in (train, test)]
    weights = np.linalg.lstsq(inputs[0], train.y, rcond=None)[0]
    fits = [np.clip(part @ weights, 0, 1) for part in inputs]
    mean = float(train.y.mean())
    return {
        "constant": (
            -(find_rmse(np.full(len(train), mean), train.y) ** 2),
            find_rmse(np.full(len(test), mean), test.y),
        ),
        "linear": (-(find_rmse(fits[0], train.y) ** 2), find_rmse(fits[1], test.y)),
    }
