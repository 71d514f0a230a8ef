"""Domains: where a discrete variable lives."""

from steppe.domain.base import MAX_ENUMERATED, MAX_INDEXED, Domain, Variable, show_count
from steppe.domain.categorical import Categorical
from steppe.domain.coordinates import Real
from steppe.domain.permutation import Permutation
from steppe.domain.product import Product
from steppe.domain.real import Binary, Counts, Ordinal, Spin

__all__ = [
    "MAX_ENUMERATED",
    "MAX_INDEXED",
    "Binary",
    "Categorical",
    "Counts",
    "Domain",
    "Ordinal",
    "Permutation",
    "Product",
    "Real",
    "Spin",
    "Variable",
    "show_count",
]
