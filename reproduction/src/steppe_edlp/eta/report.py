"""What the sweep over η says: tables, verdicts, figures."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from steppe.intervals import mean_estimate
from steppe.results import Cell, Column, Figure, Table
from steppe.theory import effective_step_size
from steppe_edlp.eta.verdicts import all_verdicts
from steppe_edlp.judging import joint_note
from steppe_edlp.request import Findings, Request

# Of the figure of p(θ_a) for θ ~ Bernoulli(1/2).
DENSITY_VARIANCES = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
CENTERS = np.linspace(-2.5, 3.5, 241)
# Validation RMSE by η as printed in the paper's plotting script.
PAPER_RMSE = {
    "edula": (0.60752, 0.64876, 0.47278, 0.47379, 0.47407, 0.47583, 0.47639, 0.47771, 0.47723, 0.47735,
              0.47835, 0.47747, 0.47723),
    "edmala": (0.50997, 0.50997, 0.50997, 0.50711, 0.47875, 0.47209, 0.47653, 0.47678, 0.47709, 0.47868,
               0.47738, 0.47803, 0.47809),
}  # fmt: skip

Measured = Mapping[str, Mapping[str, np.ndarray]]


@dataclasses.dataclass(frozen=True)
class Setting:
    """What was run.

    Attributes
    ----------
    step_size, center_steps, variances
        `α`, `α_a` by sampler, and every `η`.
    num_bits, num_steps
        Size of the network, and steps of a run.
    constant_rmse
        Validation RMSE of predicting the mean of the training rows.
    description
        Data and network.
    """

    step_size: float
    center_steps: Mapping[str, float]
    variances: np.ndarray
    num_bits: int
    num_steps: int
    constant_rmse: float
    description: str

    @property
    def threshold(self) -> float:
        """The `η` at which `α_eff` of `edula` diverges."""
        return (self.step_size + self.center_steps["edula"]) / 4


def findings(request: Request, setting: Setting, measured: Measured) -> Findings:
    """Everything there is to say."""
    verdicts = all_verdicts(setting, measured) if request.is_sound else []
    return Findings(
        verdicts=verdicts,
        tables=[_table(setting, measured, name) for name in measured if name in setting.center_steps],
        figures=_figures(request, setting, measured),
        arrays=_arrays(setting, measured),
        settings={
            "α": setting.step_size,
            **{f"α_a of {name}": step for name, step in setting.center_steps.items()},
            "bits": setting.num_bits,
            "steps of a run": setting.num_steps,
            "network": setting.description,
            "RMSE of a constant": setting.constant_rmse,
        },
        notes=[*_notes(request, setting, measured), *joint_note(verdicts)],
    )


def _table(setting: Setting, measured: Measured, name: str) -> Table:
    one = measured[name]
    rows: list[dict[str, Cell]] = []
    for place, variance in enumerate(setting.variances):
        step = effective_step_size(setting.step_size, float(variance), setting.center_steps[name])
        rows.append(
            {
                "variance": float(variance),
                "rmse": mean_estimate(one["rmse"][place]),
                "rmse_paper": PAPER_RMSE[name][place],
                "acceptance": mean_estimate(one["acceptance"][place]),
                "flips": mean_estimate(one["flips"][place]),
                "distance": mean_estimate(one["distance"][place] / np.sqrt(setting.num_bits * variance)),
                "log_density": mean_estimate(one["log_density"][place]),
                "effective_step": step.value if step.is_proper else None,
            }
        )
    return Table(
        key=name,
        title=f"{name} over η",
        columns=[
            Column(key="variance", label="η", digits=2),
            Column(key="rmse", label="validation RMSE", digits=4, better="lower"),
            Column(key="rmse_paper", label="paper's, on COMPAS", digits=4),
            Column(key="acceptance", label="acceptance"),
            Column(key="flips", label="flips per step", digits=2),
            Column(key="distance", label="‖θ − θ_a‖ / √(dη)"),
            Column(key="log_density", label="E[U]", digits=2),
            Column(key="effective_step", label="α_eff", digits=4),
        ],
        rows=rows,
        notes=[
            (
                "α_eff is the step at which dula has the same law if U is quadratic; empty where there is "
                f"none, below η = {setting.threshold:g}."
            ),
        ],
    )


def _figures(request: Request, setting: Setting, measured: Measured) -> list[Figure]:
    figures = [
        Figure(
            key="densities",
            title="Where the center is when the position is a fair coin",
            caption="p(θ_a) = ½ N(0, η) + ½ N(1, η). Below η ≈ 0.25 the center has two modes and must cross "
            "between them; above, it forgets which bit it belongs to.",
            alternative="Densities of the center for seven values of η.",
        ),
        Figure(
            key="effective-step",
            title="The step that edula really takes",
            caption=f"α_eff of edula at α = {setting.step_size:g} grows without bound as η falls to "
            f"{setting.threshold:g} = (α + α_a)/4, and the flips per step follow it; far above, edula is "
            "dula.",
            alternative="Effective step and flips per step against η.",
        ),
    ]
    if any(name in measured for name in setting.center_steps):
        figures += [
            Figure(
                key="rmse",
                title="Validation error over η",
                caption="RMSE of the mean output, with 95 % intervals over seeds. Dotted: predicting the "
                "mean. Lines: the samplers without a center. Small η breaks both entropic samplers, edula by "
                "noise and edmala by standing still; elsewhere η makes no difference.",
                alternative="Validation RMSE against η for edula and edmala.",
            ),
            Figure(
                key="distance",
                title="Distance of the center",
                caption="‖θ − θ_a‖ along a run, for several η, beside its stationary value √(dη) (dashed). "
                + (
                    "Started in its law, the center stays at this distance: η sets it, not the target."
                    if request.is_sound
                    else "Started at the position, the center has not reached its law at the larger η."
                ),
                alternative="Distance between position and center against steps.",
            ),
        ]
    if "edmala" in measured:
        figures.append(
            Figure(
                key="acceptance",
                title="Acceptance of edmala over η",
                caption="Mean acceptance with 95 % intervals: near 0 at small η, a plateau from about 0.8. "
                "Line: dmala, which has no center.",
                alternative="Acceptance probability against η.",
            )
        )
    return figures


def _notes(request: Request, setting: Setting, measured: Measured) -> list[str]:
    notes = [
        (
            "The distance in the paper's figure is a norm across chains, about √(chains · η); here it is the "
            "norm of one chain's θ − θ_a, whose stationary value is √(dη)."
        ),
        f"A constant predictor has validation RMSE {setting.constant_rmse:.4f}.",
    ]
    if not request.is_sound:
        largest = float(setting.variances.max())
        notes.append(
            "The center starts at the position, as published. It needs about 2η/α_a steps to reach its law: "
            f"{2 * largest / setting.center_steps['edmala']:.0f} at η = {largest:g}, where a run has "
            f"{setting.num_steps}. Nothing is discarded, as published."
        )
    notes += _why_not_the_papers(request)
    if "edula" in measured:
        notes.append("`edula` itself refuses α_a ≥ 4η, where its center diverges; the sweep stays above.")
    return notes


def _why_not_the_papers(request: Request) -> list[str]:
    """Why the paper's validation errors cannot come out, as far as that is known beforehand."""
    lines = []
    if request.data is None:
        lines.append(
            "The paper's errors are those of COMPAS, and here the table is one that ships with scikit-learn: "
            "they can be compared in shape only. Use --data DIR for COMPAS."
        )
    if request.is_quick:
        lines.append(
            "At quick scale there are fewer and smaller networks, rows and steps than in the paper, so its "
            "numbers cannot come out; use --scale full."
        )
    if request.is_sound:
        lines.append(
            "The paper starts the center at the position and averages from the first step; here it starts in "
            "its law and only the second half of a run counts, so its errors cannot come out to the digit."
        )
    else:
        lines.append(
            "The random numbers come from another generator than the authors', so a single run cannot show "
            "the paper's digits. 0.50997 of edmala at η ≤ 0.05 is the error of its starting networks, which "
            "never move; other starting networks have another one."
        )
    return lines


def _arrays(setting: Setting, measured: Measured) -> dict[str, np.ndarray]:
    densities = [_density(variance) for variance in DENSITY_VARIANCES]
    grid = np.geomspace(setting.threshold * 1.02, setting.variances.max(), 200)
    steps = [effective_step_size(setting.step_size, x, setting.center_steps["edula"]).value for x in grid]
    arrays = {
        "variances": setting.variances.astype(float),
        "centers": CENTERS,
        "density_variances": np.asarray(DENSITY_VARIANCES),
        "densities": np.asarray(densities),
        "effective_variances": grid,
        "effective_steps": np.asarray(steps),
    }
    for name, one in measured.items():
        arrays |= {f"{name}_{key}": values for key, values in one.items() if key != "path"}
        if name in setting.center_steps:
            arrays[f"{name}_path"] = one["path"].mean(axis=-1)
    return arrays


def _density(variance: float) -> np.ndarray:
    """`p(θ_a)` for `θ ~ Bernoulli(1/2)`."""

    def normal(mean: float) -> Any:
        return np.exp(-((CENTERS - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)

    return 0.5 * normal(0.0) + 0.5 * normal(1.0)
