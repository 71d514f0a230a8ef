"""How flat the landscape is around states: pure functions of states and target.

Every result carries `U` of the states beside the statistic, an error where it is an estimate, and the
exact value under `π` where the domain is small enough to enumerate.
"""

from steppe.diagnostics.flatness.annealed import local_entropy
from steppe.diagnostics.flatness.basins import (
    BasinMass,
    Climb,
    Occupancy,
    basin_mass,
    climb,
    occupancy,
)
from steppe.diagnostics.flatness.exact_entropy import (
    LocalEntropy,
    local_entropy_ball,
    local_entropy_enumerated,
)
from steppe.diagnostics.flatness.gaps import NoiseDrop, OneSiteGaps, noise_drop, one_site_gaps
from steppe.diagnostics.spectrum import InteractionSpectrum, interaction_spectrum

__all__ = [
    "BasinMass",
    "Climb",
    "InteractionSpectrum",
    "LocalEntropy",
    "NoiseDrop",
    "Occupancy",
    "OneSiteGaps",
    "basin_mass",
    "climb",
    "interaction_spectrum",
    "local_entropy",
    "local_entropy_ball",
    "local_entropy_enumerated",
    "noise_drop",
    "occupancy",
    "one_site_gaps",
]
