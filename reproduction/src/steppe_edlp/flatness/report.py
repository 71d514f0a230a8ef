"""What came out about flatness: tables and figures."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steppe.intervals import mean_estimate
from steppe.results import Cell, Column, Figure, Table
from steppe.targets.bernoulli import paper_bernoulli
from steppe_edlp.flatness import verdicts
from steppe_edlp.flatness.perceptron import left_out_choice
from steppe_edlp.flatness.small_laws import MIXTURE_STRENGTHS, STRENGTHS
from steppe_edlp.judging import joint_note, judged_together
from steppe_edlp.occupancy import Landscape
from steppe_edlp.request import Findings
from steppe_edlp.work import Content


@dataclasses.dataclass(frozen=True)
class Solutions:
    """Final states of one method: schedules × instances, errors after flips × numbers of flips.

    Attributes
    ----------
    log_density, train_errors, test_error, vote_error, acceptance, errors_after_flips
        As measured by `perceptron.solved`.
    """

    log_density: np.ndarray
    train_errors: np.ndarray
    test_error: np.ndarray
    vote_error: np.ndarray
    acceptance: np.ndarray
    errors_after_flips: np.ndarray

    def best(self, values: np.ndarray) -> np.ndarray:
        """Values per instance at the schedule that was best on the other instances."""
        chosen = left_out_choice(self.test_error)
        return values[chosen, np.arange(values.shape[1])]


def findings(
    size: Any,
    seeds: Sequence[int],
    solutions: Mapping[str, Solutions],
    four_bits: Content | None,
    mixture: Content | None,
) -> Findings:
    """Everything there is to say."""
    questions, exact, tables, figures, arrays = [], [], [], [], {}
    if four_bits is not None and mixture is not None:
        landscape = Landscape(paper_bernoulli())
        questions += verdicts.about_four_bits(landscape, four_bits)
        exact.append(verdicts.of_mixture(mixture))
        tables += [_tilt_table(landscape, four_bits), _mixture_table(mixture)]
        figures += _small_figures()
        arrays |= {"mixture_tilted": mixture["tilted"], "mixture_tempered": mixture["tempered"]}
    if solutions:
        questions += verdicts.about_perceptrons(solutions, size.flips)
        tables.append(_perceptron_table(solutions, size))
        figures += _perceptron_figures(size)
        arrays["flips"] = np.asarray(size.flips, np.int64)
        arrays |= {f"after_flips_{name}": one.best(one.errors_after_flips) for name, one in solutions.items()}
    judged = judged_together(questions)
    return Findings(
        verdicts=[*judged, *exact],
        tables=tables,
        figures=figures,
        arrays=arrays,
        settings={
            "weights of a perceptron": size.num_inputs,
            "patterns per weight": 0.6,
            "gradients per instance": size.budget,
            "instances": len(seeds),
            "loss": "U = −β Σ softplus(−30 m)/30, which rewards no margin",
            "schedules of β": "0.3 to 30, 0.3 to 100, 1 to 200",
            "draws per chain on four bits": size.num_draws,
        },
        notes=[*_notes(size), *joint_note(judged)],
        seeds=list(seeds),
        model_evaluations=3 * len(seeds) * len(solutions) * size.budget if solutions else None,
    )


def _tilt_table(landscape: Landscape, found: Content) -> Table:
    rows: list[dict[str, Cell]] = []
    laws = (found["shares"], found["laws"], found["tempered"])
    for strength, shares, law, tempered in zip(STRENGTHS, *laws, strict=True):
        rows.append(
            {
                "strength": strength,
                "flat": mean_estimate(landscape.flat_mass(shares)),
                "flat_exact": float(landscape.flat_mass(law)),
                "flat_tempered": float(landscape.flat_mass(tempered)),
                "sharp": mean_estimate(landscape.sharp_mass(shares)),
                "sharp_exact": float(landscape.sharp_mass(law)),
                "sharp_tempered": float(landscape.sharp_mass(tempered)),
                "log_density": mean_estimate(shares @ landscape.heights),
                "log_density_exact": float(law @ landscape.heights),
            }
        )
    return Table(
        key="tilt",
        title="Four bits: time in flat and in sharp modes over the strength λ of the tilt",
        columns=[
            Column(key="strength", label="λ", digits=1),
            Column(key="flat", label="time in flat modes"),
            Column(key="flat_exact", label="exact"),
            Column(key="flat_tempered", label="tempering at the same E[U]"),
            Column(key="sharp", label="time in sharp modes"),
            Column(key="sharp_exact", label="exact"),
            Column(key="sharp_tempered", label="tempering at the same E[U]"),
            Column(key="log_density", label="E[U]"),
            Column(key="log_density_exact", label="exact"),
        ],
        rows=rows,
        reference_rows=[0],
        notes=["λ = 0 is dmala, of law π. Tempering gives up the same height, and gets little for it."],
    )


def _mixture_table(found: Content) -> Table:
    masses, heights = found["tempered"][np.argsort(found["tempered"][:, 0])].T
    rows: list[dict[str, Cell]] = []
    for strength, (mass, height) in zip(MIXTURE_STRENGTHS, found["tilted"], strict=True):
        reachable = masses.min() <= mass <= masses.max()
        rows.append(
            {
                "strength": strength,
                "mass": float(mass),
                "log_density": float(height),
                "tempered": float(np.interp(mass, masses, heights)) if reachable else None,
            }
        )
    return Table(
        key="mixture",
        title="Ten bits, six sharp components and a flat one: mass of the flat one against E[U], exact",
        columns=[
            Column(key="strength", label="λ", digits=2),
            Column(key="mass", label="mass of the flat component"),
            Column(key="log_density", label="E[U]"),
            Column(key="tempered", label="E[U] of tempering at that mass"),
        ],
        rows=rows,
        reference_rows=[0],
    )


def _perceptron_table(solutions: Mapping[str, Solutions], size: Any) -> Table:
    middle = size.flips[len(size.flips) // 2]
    place = size.flips.index(middle)
    rows: list[dict[str, Cell]] = [
        {
            "method": name,
            "test_error": mean_estimate(one.best(one.test_error)),
            "vote_error": mean_estimate(one.best(one.vote_error)),
            "train_errors": mean_estimate(one.best(one.train_errors)),
            "after_flips": mean_estimate(one.best(one.errors_after_flips)[:, place]),
            "log_density": mean_estimate(one.best(one.log_density)),
            "acceptance": float(one.best(one.acceptance).mean()),
        }
        for name, one in solutions.items()
    ]
    return Table(
        key="perceptron",
        title=f"Binary perceptrons of {size.num_inputs} weights, each method at its best schedule",
        columns=[
            Column(key="method", label="method"),
            Column(key="test_error", label="test error of one state", digits=4, better="lower"),
            Column(key="vote_error", label="test error of the vote", digits=4, better="lower"),
            Column(key="train_errors", label="training errors", digits=2, better="lower"),
            Column(
                key="after_flips",
                label=f"training errors after {middle} random flips",
                digits=2,
                better="lower",
            ),
            Column(key="log_density", label="U at β = 1", better="higher"),
            Column(key="acceptance", label="acceptance at the end", digits=2),
        ],
        rows=rows,
        notes=[
            (
                f"Every method spends {size.budget} gradients per instance and schedule. For each instance "
                "the schedule is the one that is best on all other instances, so that nothing is scored on "
                "what it was chosen by. Intervals are 95 %, over instances."
            ),
        ],
    )


def _small_figures() -> list[Figure]:
    return [
        Figure(
            key="tilt",
            title="Flat and sharp modes over λ",
            caption="Dots: sampled, with 95 % intervals. Lines: exact. Dashed: tempering that gives up the "
            "same E[U]. The tilt moves time from sharp to flat modes; tempering at equal E[U] does not.",
            alternative="Two panels, time in flat and in sharp modes against the strength of the tilt.",
        ),
        Figure(
            key="mixture",
            title="What flat mass costs in height",
            caption="Mass of the flat component of a mixture on ten bits against E[U], exact. At equal flat "
            "mass the tilt keeps more height than tempering.",
            alternative="Mass of the flat component against mean log-density for tilt and tempering.",
        ),
    ]


def _perceptron_figures(size: Any) -> list[Figure]:
    return [
        Figure(
            key="test-error",
            title="Test error of one solution",
            caption=f"Binary perceptrons of {size.num_inputs} weights at equal budget, each method at its "
            "best schedule, with 95 % intervals over instances; the mean of U is beside each bar. A copy of "
            "the ensemble generalises better than a chain of dmala or edmala.",
            alternative="Bars of test error for dmala, edmala and the ensemble.",
        ),
        Figure(
            key="flips",
            title="Training errors after random flips",
            caption="The flatter the solution, the slower the rise. 95 % intervals over instances.",
            alternative="Training errors against the number of random flips, one line per method.",
        ),
    ]


def _notes(size: Any) -> list[str]:
    notes = [
        "The paper has no such experiment: none of its samplers has a law that favours flat modes.",
        (
            "Any law can be made flatter by giving up height, tempering included; E[U] stands beside every "
            "number."
        ),
    ]
    if size.num_inputs < 1_001:
        notes.append(
            f"Quick scale: perceptrons of {size.num_inputs} weights and {size.budget} gradients instead of "
            "1001 and 30 000."
        )
    return notes
