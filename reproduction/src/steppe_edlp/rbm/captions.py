"""Sentences about images from a machine."""

from typing import NamedTuple

from steppe.results import Figure
from steppe_edlp.request import Request

WHY_NOT_THE_PAPERS = (
    "The paper's numbers stand beside the table that is scored as the paper scores, and cannot come out "
    "there either: its machine has seen each image once where this one is trained to the end, its "
    "auto-encoders see grey pictures of the samples where these see the bits, and its samplers get equal "
    "steps where these get equal work. --protocol published keeps to its machine and its steps."
)


class Seen(NamedTuple):
    """What the pictures show in numbers: of layer-wise Gibbs first, then of every sampler.

    Attributes
    ----------
    heights
        Mean log-densities.
    digits
        Effective numbers of digits.
    """

    heights: list[float]
    digits: list[float]


def figures(request: Request, data: str, found: Seen) -> list[Figure]:
    """What is drawn."""
    scored = "the clean image" if request.is_sound else "the spoiled image itself"
    return [
        Figure(
            key="sheets",
            title="Images of every sampler",
            caption=f"Twenty-five images each from one machine trained on {data}; the first sheet is "
            "layer-wise Gibbs, which knows the hidden layer and shows what the machine's own law looks "
            f"like. Its images have mean log-density {_beside(found.heights)}.",
            alternative="One sheet of 5 × 5 small binary images per sampler.",
        ),
        Figure(
            key="reconstruction",
            title="Error of reconstruction",
            caption=f"Mean squared error against {scored}, by the sampler whose images the auto-encoder "
            "was trained on. Bars carry intervals, dots are single auto-encoders. Overlapping intervals "
            "do not rank.",
            alternative="Three bar charts of mean squared error: clean, noisy and occluded test images.",
        ),
        Figure(
            key="digits",
            title="Digits that a classifier sees",
            caption="Share of each digit among the images; the dashed line is one in ten. The effective "
            f"number of digits of layer-wise Gibbs, the machine's own, is {_beside(found.digits)}.",
            alternative="One bar chart of ten digits per sampler.",
        ),
    ]


def _beside(values: list[float]) -> str:
    """The first number, and the range of the others."""
    first, *others = values
    return f"{first:.1f}; those of the samplers reach from {min(others):.1f} to {max(others):.1f}"


def notes(request: Request, is_mnist: bool) -> list[str]:
    """What a reader must know beside the tables."""
    lines = [
        (
            "Samples go to the auto-encoders as the bits they are. The authors wrote them to pictures of "
            "about 21 × 21 points and read them back at 28 × 28, which changes half of the pixels; that is "
            "not repeated."
        ),
        (
            "The paper's “log-likelihood” is minus the mean signed error of the reconstructions: how much "
            "too dark they are, not a likelihood. It is shown under its own name only to compare."
        ),
    ]
    if not is_mnist:
        lines.append(
            "Without --data the machine is trained on 8 × 8 digits and the networks are scaled to them, so "
            "the numbers cannot be the paper's; use --data DIR --scale full for MNIST."
        )
    elif request.is_quick:
        lines.append(
            "At quick scale the machine has fewer hidden bits, the chains are shorter and the images fewer "
            "than in the paper, so its numbers cannot come out; use --scale full."
        )
    if request.is_sound:
        return [
            *lines,
            *([WHY_NOT_THE_PAPERS] if is_mnist else []),
            "The machine is trained by persistent contrastive divergence, long enough to be a good one.",
            (
                "Every sampler gets the work of the same number of evaluations of U and its gradient: "
                "sixteen steps of block Gibbs or two of the Hamming ball per evaluation, which is what "
                "they cost in processor time on MNIST; an ensemble of four copies runs a quarter as many "
                "chains."
            ),
            (
                "Every seed has its own images and its own auto-encoder, so intervals hold for new runs of a "
                "sampler on this machine, not for other machines."
            ),
        ]
    return [
        *lines,
        (
            "As in the paper, one machine after 600 updates, one set of images per sampler and five "
            "auto-encoders on it: the intervals are ± one standard error over auto-encoders, and no "
            "statement about samplers follows from them."
        ),
        (
            "The paper does not give α_a and η for MNIST; 0.01 and 1 stand in comments of the authors' "
            "code, whose defaults are 0.001 and 0.4. Its digits can therefore not be expected to come out."
        ),
    ]


def reconstruction_notes(request: Request, scored: str) -> list[str]:
    """What the numbers of a table of reconstructions mean."""
    interval = (
        "Intervals are 95 %, over seeds." if request.is_sound else "± one standard error, as in the paper."
    )
    if scored == "clean":
        return [
            interval,
            "A robust network removes the noise or fills the gap, so it is scored against the original.",
        ]
    return [interval, "Scored this way, a network that copies noise and gaps does best."]
