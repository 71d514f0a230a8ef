"""Data with checksums: a local directory first, then the cache, then a download."""

from steppe.datasets.card import Card, Dataset, Split
from steppe.datasets.dca import DcaParameters, read_dca
from steppe.datasets.dimacs import FormulaInstance, read_cnf, read_dimacs
from steppe.datasets.gset import GraphInstance, read_gset
from steppe.datasets.loading import load, names
from steppe.datasets.tsplib import TspInstance, read_tsplib
from steppe.errors import DataError, DownloadError, MissingDataError, MissingPackageError

__all__ = [
    "Card",
    "DataError",
    "Dataset",
    "DcaParameters",
    "DownloadError",
    "FormulaInstance",
    "GraphInstance",
    "MissingDataError",
    "MissingPackageError",
    "Split",
    "TspInstance",
    "load",
    "names",
    "read_cnf",
    "read_dca",
    "read_dimacs",
    "read_gset",
    "read_tsplib",
]
