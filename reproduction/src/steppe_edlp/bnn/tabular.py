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
    """

    name: str
    train: Split
    test: Split
    fitted: Split
    validation: Split
    num_published: tuple[int, int]
    digests: dict[str, str]

    @property
    def is_whole(self) -> bool:
        """Whether no rows were left out."""
        return (len(self.train), len(self.test)) == self.num_published


def find_requested(request: Request) -> dict[str, int | None]:
    """Tables asked for and how many rows of each: `--instance compas` or `--instance adult:5000,news`."""
    if request.instance is None:
        if request.data is None:
            return {EMBEDDED: None}
        return dict.fromkeys(PAPER_TABLES, QUICK_ROWS if request.is_quick else None)
    found = {}
    for word in request.instance.split(","):
        name, _, rows = word.strip().partition(":")
        if rows and not (rows.isdigit() and int(rows) >= 2):
            raise RunError(f"`--instance {word}` must end in a number of rows, at least 2; got {rows!r}.")
        limit = QUICK_ROWS if request.is_quick else None
        found[find_name(name, (*PAPER_TABLES, EMBEDDED), "table")] = int(rows) if rows else limit
    return found


def load_rows(name: str, num_rows: int | None, request: Request) -> Rows:
    """Load a table and part its rows."""
    is_papers = name in PAPER_TABLES
    data = datasets.load(name, data=request.data, as_published=is_papers)
    train = _take(data.train, num_rows)
    test = _take(data.test, None if num_rows is None else max(num_rows, QUICK_ROWS))
    fitted, validation = train, data.validation
    if len(validation) < LEAST_VALIDATION * len(train):
        cut = len(train) - max(1, len(train) // 10)
        fitted, validation = _take(train, cut), Split(train.x[cut:], train.y[cut:])
    whole = len(data.train), len(data.test)
    return Rows(name, train, test, fitted, validation, whole, find_digests(data))


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
