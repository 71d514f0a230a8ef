"""The experiments by name: what each asks, and where it is."""

import importlib
from collections.abc import Callable
from typing import NamedTuple

from steppe_edlp.request import Findings, Request
from steppe_edlp.work import Work

PAPER_SAMPLERS = ("dula", "dmala", "edula", "edmala")


class Experiment(NamedTuple):
    """One experiment.

    Attributes
    ----------
    name
        What it is called on the command line; its package below `steppe_edlp` as well.
    title
        Its heading.
    question
        What it answers, for a reader who has not read the paper.
    samplers
        Samplers it can compare; empty where there is no choice.
    """

    name: str
    title: str
    question: str
    samplers: tuple[str, ...] = ()

    @property
    def run(self) -> Callable[[Request, Work], Findings]:
        """The function that carries it out, imported when asked for."""
        return importlib.import_module(f"steppe_edlp.{self.name}.run").run


_ALL = (
    Experiment(
        "bernoulli",
        "Four bits",
        "Do the entropic samplers spend more time in flat modes than the plain ones? The space has 16 "
        "states, so that every law is known exactly.",
        (*PAPER_SAMPLERS, "edula_glu", "edmala_glu", "robust_ensemble", "roughness_tilted"),
    ),
    Experiment(
        "eta",
        "What η does",
        "How does the coupling variance η change the center, the acceptance rate and a network's "
        "predictions?",
        PAPER_SAMPLERS,
    ),
    Experiment(
        "flatness",
        "Laws that favour flat modes",
        "What does none of the paper's samplers do? Time in flat and in sharp modes at equal E[U], and "
        "solutions of binary perceptrons that stay good when weights are wrong.",
        ("dmala", "edmala", "robust_ensemble", "roughness_tilted"),
    ),
    Experiment(
        "theory",
        "Bounds and exact numbers",
        "Are the paper's propositions and theorems true of targets small enough to know the answer, and what "
        "can be said instead?",
    ),
    Experiment(
        "tsp",
        "Eight cities",
        "Do the entropic samplers give tours of steadier cost, closer to the best one they find? There are "
        "40 320 tours, so that the law of the cost is known exactly.",
        (*PAPER_SAMPLERS, "informed_permutation"),
    ),
    Experiment(
        "rbm",
        "Images from a machine",
        "Are images drawn by the entropic samplers better to learn from? Auto-encoders are trained on the "
        "images of every sampler and then reconstruct real ones.",
        ("hamming_ball", "block_gibbs", *PAPER_SAMPLERS, "robust_ensemble", "roughness_tilted"),
    ),
    Experiment(
        "bnn",
        "Networks of binary weights",
        "Do networks drawn by the entropic samplers predict better? Their test error stands beside that of a "
        "constant and of least squares.",
        ("gibbs", "gwg", *PAPER_SAMPLERS),
    ),
    Experiment(
        "runtime",
        "Time per update",
        "What does the coupling cost, and does the Gibbs-like update save half of it? Counted per full "
        "update and per evaluation of the model.",
        ("gibbs", "gwg", *PAPER_SAMPLERS, "edula_glu", "edmala_glu"),
    ),
)

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}
