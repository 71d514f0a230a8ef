"""How flat a log-density is around states: pure functions of states and target.

Every result carries `U` of the states beside the statistic, an error where it is an estimate, and the
exact value under `π` where the domain is small enough to enumerate.
"""

from steppe.diagnostics.flatness.annealed import local_entropy
from steppe.diagnostics.flatness.basins import (
    BasinMass,
    LocalSearch,
    Occupancy,
    basin_mass,
    local_search,
    occupancy,
)
from steppe.diagnostics.flatness.exact_entropy import (
    LocalEntropy,
    local_entropy_ball,
    local_entropy_enumerated,
)
from steppe.diagnostics.flatness.single_site import (
    NoiseDrop,
    SingleSiteDifferences,
    noise_drop,
    single_site_differences,
)
from steppe.diagnostics.spectrum import InteractionSpectrum, interaction_spectrum

__all__ = [
    "BasinMass",
    "InteractionSpectrum",
    "LocalEntropy",
    "LocalSearch",
    "NoiseDrop",
    "Occupancy",
    "SingleSiteDifferences",
    "basin_mass",
    "interaction_spectrum",
    "local_entropy",
    "local_entropy_ball",
    "local_entropy_enumerated",
    "local_search",
    "noise_drop",
    "occupancy",
    "single_site_differences",
]
