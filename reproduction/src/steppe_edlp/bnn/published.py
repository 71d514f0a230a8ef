"""What the paper ran and reports for networks of binary weights."""

from steppe import samplers
from steppe.kernel.compose import Recipe

STEP_SIZE = 0.1
SAMPLERS = ("gibbs", "gwg", "dula", "dmala", "edula", "edmala")
CENTERS = {  # (center_step_size, coupling_variance) of edula and edmala
    "compas": ((0.01, 4.0), (0.001, 4.0)),
    "news": ((0.01, 2.0), (0.0001, 0.8)),
    "adult": ((0.0001, 2.0), (0.0001, 4.0)),
    "blog": ((0.01, 1.0), (0.0001, 1.0)),
}
PAPER = {  # training log-likelihood, test RMSE
    "compas": {
        "gibbs": (-0.3473, 0.4752),
        "gwg": (-0.3304, 0.4756),
        "dula": (-0.3385, 0.4789),
        "dmala": (-0.3149, 0.4773),
        "edula": (-0.3385, 0.4778),
        "edmala": (-0.3145, 0.4768),
    },
    "news": {
        "gibbs": (-0.2156, 0.1008),
        "gwg": (-0.2138, 0.0996),
        "dula": (-0.2101, 0.0923),
        "dmala": (-0.2097, 0.0916),
        "edula": (-0.2097, 0.0918),
        "edmala": (-0.2098, 0.0915),
    },
    "adult": {
        "gibbs": (-0.4310, 0.4784),
        "gwg": (-0.3869, 0.4432),
        "dula": (-0.3044, 0.3895),
        "dmala": (-0.2988, 0.3872),
        "edula": (-0.3032, 0.3889),
        "edmala": (-0.2987, 0.3861),
    },
    "blog": {
        "gibbs": (-0.4009, 0.4442),
        "gwg": (-0.3414, 0.3728),
        "dula": (-0.2732, 0.3236),
        "dmala": (-0.2705, 0.3213),
        "edula": (-0.2699, 0.3218),
        "edmala": (-0.2699, 0.3211),
    },
}


def recipes(table: str, sites_per_step: int = 1) -> dict[str, Recipe]:
    """The paper's samplers for a table; tables the paper does not have get the numbers of COMPAS.

    Parameters
    ----------
    table
        Its name.
    sites_per_step
        Sites that Gibbs resamples in a step; one in the paper.
    """
    edula, edmala = CENTERS.get(table, CENTERS["compas"])
    return {
        "gibbs": samplers.gibbs(sites_per_step),
        "gwg": samplers.gwg(),
        "dula": samplers.dula(STEP_SIZE),
        "dmala": samplers.dmala(STEP_SIZE),
        "edula": samplers.edula(STEP_SIZE, *edula),
        "edmala": samplers.edmala(STEP_SIZE, *edmala),
    }
