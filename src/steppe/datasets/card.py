"""What a data set is: the arrays and where they come from."""

import dataclasses
from typing import NotRequired, TypedDict

import numpy as np


@dataclasses.dataclass(frozen=True)
class Card:
    """Where data come from and what was done to them.

    Attributes
    ----------
    name
        As given to `load`.
    source
        Who published them.
    licence
        Under which terms, as far as known.
    sha256
        Digest of every file that was read, by name.
    rows, columns
        Size of all splits together.
    preprocessing
        What was done between the file and the arrays.
    is_verified
        Whether every file had a digest known beforehand.

    Examples
    --------
    >>> from steppe.datasets import load
    >>> card = load("digits").card
    >>> card.name, card.rows, card.columns
    ('digits', 1797, 64)
    """

    name: str
    source: str
    licence: str
    sha256: dict[str, str]
    rows: int
    columns: int
    preprocessing: str
    is_verified: bool = True

    def __str__(self) -> str:
        digests = ", ".join(f"{name} {digest[:12]}…" for name, digest in self.sha256.items())
        note = "" if self.is_verified else " (not a published digest)"
        return (
            f"{self.name}: {self.rows} rows × {self.columns} columns\n"
            f"source: {self.source}\nlicence: {self.licence}\n"
            f"sha256: {digests or 'none, it ships with a package'}{note}\npreprocessing: {self.preprocessing}"
        )


@dataclasses.dataclass(frozen=True)
class Split:
    """Rows of a data set.

    Attributes
    ----------
    x
        Features, rows × columns, float32.
    y
        One target or label per row.

    Examples
    --------
    >>> from steppe.datasets import load
    >>> test = load("digits").test
    >>> len(test) == len(test.x) == len(test.y)
    True
    """

    x: np.ndarray
    y: np.ndarray

    def __len__(self) -> int:
        return len(self.x)


@dataclasses.dataclass(frozen=True)
class Dataset:
    """Rows to learn from, to choose with and to be judged on.

    Attributes
    ----------
    train, validation, test
        Splits with `.x` and `.y`; a split nobody published is empty.
    columns
        Names of the columns of `x`; empty for images.
    image_shape
        Height and width of what a row shows, if it is an image.
    card
        Where it comes from.

    Examples
    --------
    >>> from steppe.datasets import load
    >>> digits = load("digits")
    >>> digits.train.x.shape, digits.image_shape
    ((1257, 64), (8, 8))
    """

    train: Split
    validation: Split
    test: Split
    card: Card
    columns: tuple[str, ...] = ()
    image_shape: tuple[int, int] | None = None

    def __repr__(self) -> str:
        sizes = "/".join(str(len(split)) for split in (self.train, self.validation, self.test))
        return f"Dataset({self.card.name}, {sizes} × {self.train.x.shape[1]})"


class CardFields(TypedDict):
    """What a card says but the size."""

    name: str
    source: str
    licence: str
    sha256: dict[str, str]
    preprocessing: str
    is_verified: NotRequired[bool]


def describe_size(splits: tuple[Split, ...], card: CardFields) -> Card:
    """Complete a card with the size of the splits."""
    rows = sum(len(split) for split in splits)
    return Card(**card, rows=rows, columns=splits[0].x.shape[1])
