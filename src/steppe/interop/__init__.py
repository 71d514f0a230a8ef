"""Bridges to the tools people already have; the packages themselves are imported when a bridge is used."""

from steppe.interop.blackjax import BlackjaxMcmc, to_blackjax
from steppe.interop.dimod_models import to_dimod
from steppe.interop.dimod_networkx import from_bqm, from_networkx, to_bqm, to_networkx, to_sampleset
from steppe.interop.numpyro import from_numpyro
from steppe.interop.numpyro_kernel import NumpyroKernel
from steppe.interop.pymc import from_pymc
from steppe.interop.torch import from_torch

__all__ = [
    "BlackjaxMcmc",
    "NumpyroKernel",
    "from_bqm",
    "from_networkx",
    "from_numpyro",
    "from_pymc",
    "from_torch",
    "to_blackjax",
    "to_bqm",
    "to_dimod",
    "to_networkx",
    "to_sampleset",
]
