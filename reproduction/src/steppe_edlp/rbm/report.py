"""Tables and verdicts on images from a machine."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from steppe.intervals import mean_estimate, smallest
from steppe.results import Cell, Column, Estimate, Table, Verdict
from steppe_edlp.judging import Question, joint_note, judged, judged_together
from steppe_edlp.rbm import captions
from steppe_edlp.rbm.images import CONDITIONS, METRICS
from steppe_edlp.rbm.published import PAPER_TABLE
from steppe_edlp.request import Findings, Request
from steppe_edlp.wording import settings_of, spoken
from steppe_edlp.work import Content

PAIRS = (("edula", "dula"), ("edmala", "dmala"))
MARGIN = 0.0005  # of MSE: what the paper's table shows between neighbours
METRIC_COLUMNS: tuple[tuple[str, str, int, Literal["higher", "lower"] | None], ...] = (
    ("mse", "MSE", 4, "lower"),
    ("psnr", "PSNR", 2, "higher"),
    ("ssim", "SSIM", 3, "higher"),
    ("brightness", "“log-likelihood” (minus the mean error)", 4, None),
)

Gathered = Mapping[str, dict[str, np.ndarray]]


class Context(NamedTuple):
    """What the tables need beside the numbers of the samplers."""

    size: Any
    data: Any
    recipes: Mapping[str, Any]
    seeds: list[int]
    likelihood: Content
    modes: Content
    reference: Content


def findings(request: Request, context: Context, found: Gathered, data: dict[str, str]) -> Findings:
    """Everything found about the images."""
    is_mnist = context.data.card.name == "mnist"
    length = context.size.length
    steps = length.num_steps * length.num_chains * len(context.seeds) * len(found)
    judged_by_seeds = judged_together(_questions(request, found))
    return Findings(
        verdicts=[*judged_by_seeds, _all_digits(context, found)],
        tables=[
            *([_reconstruction(request, found, "clean", False)] if request.is_sound else []),
            _reconstruction(request, found, "itself", is_mnist),  # as the paper scores, so beside its numbers
            _machine(context, found),
            _digits(context, found),
        ],
        figures=captions.figures(request, context.data.card.name, _seen(context, found)),
        arrays=_arrays(request, context, found),
        settings={
            "data": context.data.card.name,
            "hidden bits": context.size.num_hidden,
            "training": "PCD-1" if request.is_sound else "CD-10",
            "images per sampler": length.num_images * len(context.seeds),
            "iterations per chain": length.num_steps,
            "epochs of an auto-encoder": context.size.num_epochs,
            "LeNet test accuracy": float(context.modes["accuracy"]),
            **{name: settings_of(recipe) for name, recipe in context.recipes.items() if settings_of(recipe)},
        },
        notes=captions.notes(request, is_mnist) + (joint_note(judged_by_seeds) if request.is_sound else []),
        seeds=context.seeds,
        data=data,
        model_evaluations=steps,
    )


# ---- verdicts --------------------------------------------------------------------------------------


def _questions(request: Request, found: Gathered) -> list[Question]:
    scored = "clean" if request.is_sound else "itself"
    questions: list[Question] = [
        partial(_pair, request, found, entropic, plain, condition, scored)
        for entropic, plain in PAIRS
        if entropic in found and plain in found
        for condition in CONDITIONS
    ]
    rivals = [name for name in found if name != "edmala" and name in PAPER_TABLE]
    if request.is_sound and "edmala" in found and rivals:
        questions.append(partial(_best, found, rivals))
    return questions


def _mse(found: Gathered, name: str, condition: str, scored: str) -> np.ndarray:
    return found[name][scored][:, CONDITIONS.index(condition), 0]


def _pair(
    request: Request, found: Gathered, entropic: str, plain: str, condition: str, scored: str, level: float
) -> Verdict:
    one, other = (_mse(found, name, condition, scored) for name in (entropic, plain))
    difference = mean_estimate(other - one, level)
    of_what = "sets of images" if request.is_sound else "auto-encoders on one set of images"
    height = [float(found[name]["log_density"].mean()) for name in (entropic, plain)]
    return judged(
        f"Auto-encoders trained on images of {entropic} reconstruct {condition} images better than those of "
        f"{plain}.",
        difference,
        f"MSE {one.mean():.4f} against {other.mean():.4f} over {len(one)} {of_what}; {plain} minus "
        f"{entropic} is {spoken(difference, 4, signed=True)}, at E[U] {height[0]:.1f} against "
        f"{height[1]:.1f}. Less than {MARGIN:g} would not count."
        + ("" if request.is_sound else " The interval knows nothing of other runs of the samplers."),
        MARGIN,
    )


def _best(found: Gathered, rivals: list[str], level: float) -> Verdict:
    """Whether EDMALA has the lowest error of all the paper's samplers."""
    own = _mse(found, "edmala", "clean", "clean")
    leads = {name: _mse(found, name, "clean", "clean") - own for name in rivals}
    rival = min(leads, key=lambda name: leads[name].mean())
    lead = smallest(list(leads.values()), level)
    return judged(
        "edmala has the lowest error on clean images of all samplers of the paper.",
        lead,
        f"The best of the others is {rival}; {rival} minus edmala is {spoken(lead, 4, signed=True)}, where "
        f"the interval allows for its being the best of {len(rivals)}.",
        MARGIN,
    )


def _all_digits(context: Context, found: Gathered) -> Verdict:
    missing = {name: int((part["counts"].sum(axis=0) == 0).sum()) for name, part in found.items()}
    lacking = [f"{name} ({number})" for name, number in missing.items() if number]
    sentence = (
        f"LeNet (test accuracy {context.modes['accuracy']:.3f}) finds all ten digits for every sampler."
    )
    if lacking:
        sentence = f"LeNet finds no image of some digits for {', '.join(lacking)}."
    return Verdict(
        claim="All ten digits appear among the images of every sampler.",
        outcome="does not hold" if lacking else "holds",
        sentence=sentence,
        estimate=Estimate(value=float(sum(missing.values()))),
    )


# ---- tables ----------------------------------------------------------------------------------------


def _reconstruction(request: Request, found: Gathered, scored: str, with_paper: bool) -> Table:
    rows = [
        _reconstruction_row(request, name, part[scored], index, with_paper)
        for name, part in found.items()
        for index in range(len(CONDITIONS))
    ]
    columns = [Column(key="sampler", label="sampler"), Column(key="setting", label="test images")]
    for key, label, digits, better in METRIC_COLUMNS:
        columns.append(Column(key=key, label=label, digits=digits, better=better))
        if with_paper:
            columns.append(Column(key=f"{key}_paper", label=f"{label}, paper", digits=4))
    against = "the clean image" if scored == "clean" else "the spoiled image itself, as the authors did"
    return Table(
        key=f"reconstruction_{scored}",
        title=f"Reconstruction, scored against {against}",
        columns=columns,
        rows=rows,
        notes=captions.reconstruction_notes(request, scored),
    )


def _reconstruction_row(
    request: Request, name: str, scores: np.ndarray, index: int, with_paper: bool
) -> dict[str, Cell]:
    row: dict[str, Cell] = {"sampler": name, "setting": CONDITIONS[index]}
    for place, key in enumerate(METRICS):
        values = scores[:, index, place]
        row[key] = mean_estimate(values) if request.is_sound else _with_standard_error(values)
        if with_paper:
            row[f"{key}_paper"] = PAPER_TABLE[name][index][place] if name in PAPER_TABLE else None
    return row


def _with_standard_error(values: np.ndarray) -> Estimate:
    """Mean ± standard error from the population deviation, as the paper has it."""
    mean, error = float(values.mean()), float(values.std() / np.sqrt(len(values)))
    return Estimate(value=mean, low=mean - error, high=mean + error)


def _machine(context: Context, found: Gathered) -> Table:
    """How near the images are to the machine's own law."""
    normalizer, truth = context.likelihood["log_normalizer"], context.reference["log_density"]
    rows: list[dict[str, Cell]] = [
        {
            "sampler": "layer-wise Gibbs",
            "log_density": mean_estimate(truth),
            "log_probability": float(truth.mean() - normalizer),
            "discrepancy": float(context.reference["floor"]),
        }
    ]
    for name, part in found.items():
        rows.append(
            {
                "sampler": name,
                "log_density": mean_estimate(part["log_density"]),
                "log_probability": float(part["log_density"].mean() - normalizer),
                "discrepancy": mean_estimate(part["discrepancy"]),
            }
        )
    error = context.likelihood["standard_error"]
    return Table(
        key="machine",
        title="Images beside the machine's own law",
        columns=[
            Column(key="sampler", label="sampler"),
            Column(key="log_density", label="E[U]", digits=1),
            Column(key="log_probability", label="mean log-probability of an image", unit="nats", digits=1),
            Column(key="discrepancy", label="log-MMD to layer-wise Gibbs", digits=2, better="lower"),
        ],
        rows=rows,
        reference_rows=[0],
        notes=[
            (
                "By annealed importance sampling the machine's test log-likelihood is "
                f"{context.likelihood['value']:.2f} nats (standard error of log Z {error:.2f}). It belongs "
                "to the machine and is the same for all samplers."
            ),
            (
                "The first row's log-MMD is between two independent sets of layer-wise Gibbs: how well "
                "sets of this size can agree."
            ),
        ],
    )


def _counted(context: Context, found: Gathered) -> dict[str, np.ndarray]:
    """How often each digit is seen, of layer-wise Gibbs first."""
    counts = {name: part["counts"].sum(axis=0) for name, part in found.items()}
    return {"layer-wise Gibbs": context.modes["counts_reference"].sum(axis=0), **counts}


def _effective_number(counts: np.ndarray) -> float:
    """The exponential of the entropy of the shares."""
    shares = counts[counts > 0] / counts.sum()
    return float(np.exp(-np.sum(shares * np.log(shares))))


def _seen(context: Context, found: Gathered) -> captions.Seen:
    heights = [context.reference["log_density"], *(part["log_density"] for part in found.values())]
    return captions.Seen(
        [float(part.mean()) for part in heights],
        [_effective_number(counts) for counts in _counted(context, found).values()],
    )


def _digits(context: Context, found: Gathered) -> Table:
    """Which digits a classifier sees."""
    rows: list[dict[str, Cell]] = []
    for name, counts in _counted(context, found).items():
        shares = counts / counts.sum()
        row: dict[str, Cell] = {"sampler": name, "effective": _effective_number(counts)}
        row |= {f"digit_{digit}": float(share) for digit, share in enumerate(shares)}
        rows.append(row)
    return Table(
        key="digits",
        title="Digits that LeNet sees in the images",
        columns=[
            Column(key="sampler", label="sampler"),
            *(Column(key=f"digit_{digit}", label=str(digit), digits=2) for digit in range(10)),
            Column(key="effective", label="effective number of digits", digits=1, better="higher"),
        ],
        rows=rows,
        reference_rows=[0],
        notes=["The effective number is the exponential of the entropy of the shares: 10 if all are equal."],
    )


def _arrays(request: Request, context: Context, found: Gathered) -> dict[str, np.ndarray]:
    scored = "clean" if request.is_sound else "itself"
    arrays = {"shown_reference": context.reference["shown"]}
    for name, part in found.items():
        arrays[f"shown_{name}"] = context.modes[f"shown_{name}"]
        arrays[f"mse_{name}"] = part[scored][:, :, 0]
    return arrays
