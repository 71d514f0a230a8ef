"""Bridges to the tools people already have; the packages themselves are imported when a bridge is used."""

from steppe.interop.graphs import from_bqm, from_networkx, to_sampleset

__all__ = [
    "from_bqm",
    "from_networkx",
    "to_sampleset",
]
