"""Sentences about the eight cities."""

from steppe.results import Figure
from steppe_edlp.request import Request
from steppe_edlp.tsp.landscape import Minima


def figures(request: Request, found: Minima) -> list[Figure]:
    """What is drawn, with captions that state the finding."""
    runs = "all seeds" if request.is_sound else "one run each"
    bars = (
        "Bars: means with 95 % intervals over seeds. Dots: single runs."
        if request.is_sound
        else "Bars: one run each. Dots: runs with other seeds. Diamonds: what the paper shows."
    )
    flat, sharp = found.within_budget[found.flattest], found.within_budget[found.sharpest]
    return [
        Figure(
            key="landscape",
            title="A flat and a sharp tour under a budget",
            caption="Cost of all tours at 0 to 4 swaps from two tours of nearly the same cost that no swap "
            f"improves; bands hold 80 %. After one swap the flat one stays within budget in {flat:.0%} of "
            f"cases, the sharp one in {sharp:.0%}.",
            alternative="Two curves of cost against the number of swaps with a line at the budget.",
        ),
        Figure(
            key="spreads",
            title="Spread of cost, and mismatch",
            caption=f"{bars} Single runs of one sampler differ more than the samplers do.",
            alternative="Three bar charts: spread of cost, upper band of mismatch to best, mismatch overall.",
        ),
        Figure(
            key="violins",
            title="Costs and mismatches of distinct paths",
            caption=f"Over {runs}; bars inside are medians. Uncorrected samplers visit dearer paths than "
            "the mean under π (dashed). Whatever the sampler, most of its paths agree with the best one in "
            "hardly any pair of places.",
            alternative="Violins of cost and of mismatch to the best path, one per sampler.",
        ),
        Figure(
            key="scatter",
            title="Cost against mismatch to the best path",
            caption=f"Distinct paths of {runs}, with the marginal distributions. Cheap paths are as far "
            "from the best one as dear ones: to be near it is not to be cheap. Mismatch takes few values "
            "because it counts pairs of agreeing places.",
            alternative="Scatter of cost and mismatch with marginal densities, one colour per sampler.",
        ),
    ]


def notes(request: Request) -> list[str]:
    """What a reader must know beside the tables."""
    lines = [
        (
            "A tour is 24 bits, three for the city at each place, and a proposal that names a city twice is "
            "refused. Every single flip of a tour is refused, so a chain moves only when several bits flip "
            "together and again make a tour."
        ),
        (
            "By enumeration of 40 320 tours the shortest costs 13.194113, and under π ∝ exp(−cost) the "
            "mean cost is 16.4693 with standard deviation 1.5877."
        ),
    ]
    if request.is_sound:
        return [
            *lines,
            (
                "All samplers of bits make one evaluation per step and the same number of steps. "
                "informed_permutation gets a tenth of the steps, because a step looks at all moves of a tour."
            ),
            (
                "Costs of the distinct paths depend on how many there are: a chain that moves more often "
                "sees dearer tours too. They say how far a chain got, not which law it has."
            ),
        ]
    return [
        *lines,
        (
            "The authors' code makes one decision per city from the cost of the whole tour, mixes accepted "
            "and kept cities, and drops the mixture if it is no tour. That is repeated here; it is not "
            "Metropolis, and the second table shows the law it has instead."
        ),
        (
            "The spreads in the paper's bars (1.649, 1.977, 0.480) are not those of the costs its other "
            "bars and its files show (1.947, 1.857, 1.354): means and spreads come from different runs. "
            "EDMALA's 0.480 can therefore not come out beside a mean cost of 16.452."
        ),
        (
            "Random numbers come from another generator, so a single run cannot show the paper's digits. "
            "None of the paper's runs contains the shortest tour."
        ),
    ]
