"""Bridges to the tools people already have; the packages themselves are imported when a bridge is used."""

from steppe.interop.graphs import from_bqm, from_networkx, to_sampleset
from steppe.interop.pymc import from_pymc
from steppe.interop.torch import from_torch

__all__ = [
    "from_bqm",
    "from_networkx",
    "from_pymc",
    "from_torch",
    "to_sampleset",
]
