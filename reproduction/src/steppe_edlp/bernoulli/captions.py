"""What is drawn of the four bits, and what has to be known to read it."""

from collections.abc import Mapping, Sequence

from steppe.results import Figure
from steppe_edlp.bernoulli.measured import Measured
from steppe_edlp.occupancy import Landscape
from steppe_edlp.request import Request


def figures(landscape: Landscape, measured: Mapping[str, Measured]) -> list[Figure]:
    """What is drawn, with captions that state the finding."""
    flat = float(landscape.flat_mass(landscape.law))
    sharp = float(landscape.sharp_mass(landscape.law))
    biased = [name for name, one in measured.items() if landscape.distance(one.law) > 0.1]
    return [
        Figure(
            key="masses",
            title="Time in flat and in sharp modes",
            caption="Bars: sampled, with 95 % intervals. Ticks: exact law of each sampler. Dashed: π, "
            f"{flat:.3f} flat and {sharp:.3f} sharp. Corrected samplers sit on π whatever their coupling; "
            "uncorrected ones lose sharp mass without gaining flat mass; only the tilt moves time to the "
            "flat modes.",
            alternative="Two bar charts with one bar per sampler: time in flat modes and in sharp modes.",
        ),
        Figure(
            key="occupancy",
            title="Where each sampler spends its steps",
            caption="Bars: π on the 16 states. Markers: share of steps in each state. Samplers of law π sit "
            f"on the bars; {', '.join(biased) or 'none'} leave them by more than 0.1 in total variation.",
            alternative="Bar chart of the probabilities of 16 states with markers for every sampler.",
        ),
        Figure(
            key="heatmaps",
            title="Target and sampled law, state by state",
            caption="Each cell is a state: rows are the first two bits, columns the last two. Upper "
            "triangle: π; lower: sampled. Boxes mark the flat (green) and sharp (red) modes. A sampler of "
            f"law π shows the same number twice; {_listed(biased)} by far the most different ones.",
            alternative="One 4 × 4 grid per sampler with target and sampled probabilities in each cell.",
        ),
        Figure(
            key="flat-modes",
            title="What makes a mode flat",
            caption="Each mode beside the states one flip away. A flip out of a flat mode hardly matters; a "
            "flip out of a sharp one costs much.",
            alternative="Four bar charts: two flat and two sharp modes, each with its four neighbours.",
        ),
        Figure(
            key="spectrum",
            title="Eigenvalues of pairwise interactions",
            caption="Histogram of the eigenvalues at the states visited; outline: under π. Std and IQR "
            "beside the exact values of each sampler's own law. A corrected sampler fills the outline, "
            "whatever its coupling.",
            alternative="One histogram of eigenvalues per sampler with the exact histogram as outline.",
        ),
        Figure(
            key="seeds",
            title="The paper's spread among runs of the same length",
            caption=f"Spread of the eigenvalues over {len(next(iter(measured.values())).windows)} seeds of a "
            "run as long as the paper's. Diamonds: what the paper prints. Ticks: exact. One run cannot tell "
            "the samplers apart.",
            alternative="Distribution over seeds of the standard deviation, one row per sampler.",
        ),
    ]


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "none shows"
    return f"{names[0]} shows" if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]} show"


def notes(request: Request) -> list[str]:
    """What the numbers rest on."""
    common = [
        "U is the multilinear interpolation of the log-probabilities, so a gradient gives exact differences.",
        (
            "Every sampler spends one value-and-gradient per chain and step; the copies of an ensemble share "
            "the chains."
        ),
    ]
    if request.is_sound:
        return common
    return [
        *common,
        (
            "The paper states step sizes of 0.1 (EDULA) and 0.4 (EDMALA) and no η. Its numbers come out of "
            "its code at the settings shown here, with seed 123456789 of another random number generator, "
            "which is not the one used here: a single run here cannot show the same digits."
        ),
        (
            "Three cells of the paper's DULA heat-map (0100, 0010, 0111) do not come out of its code at any "
            "of these settings; they are not used as a reference."
        ),
    ]
