"""Presenter of tuning: what was tried as results, and as a figure."""

from pathlib import Path
from typing import TYPE_CHECKING

from steppe.intervals import estimate_from_error
from steppe.report import style
from steppe.results import Column, Provenance, Results, Table
from steppe.run.storage.identity import describe_software

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from steppe.tune.tuned import Measured, Trial, Tuned

LABELS = {
    "acceptance_rate": "acceptance",
    "flips_per_step": "flips per step",
    "log_density": "E[U]",
    "ess_per_evaluation": "effective draws per evaluation",
    "loss": "loss in E[U]",
}
# What a goal looks at comes first; the curve beside it is what it costs.
PANELS = {
    "acceptance": ("acceptance_rate", "ess_per_evaluation"),
    "ess": ("ess_per_evaluation", "acceptance_rate"),
    "loss": ("loss", "ess_per_evaluation"),
}
MAX_TICKS = 6
CHOSEN_COLOR = "#CC3311"


def present_tuning(tuned: "Tuned") -> Results:
    """Return every trial with its intervals, the chosen one marked, and why it was chosen."""
    return Results(
        name="tuning",
        title=f"{tuned.parameter} of {tuned.recipe.name}",
        question=f"Which {tuned.parameter} serves the goal {tuned.goal!r}?",
        tables=[_tabulate(tuned)],
        notes=tuned.advice.splitlines(),
        provenance=Provenance.of_software(
            describe_software(),
            command=f"steppe.tune({tuned.recipe.name}, goal={tuned.goal!r}, parameter={tuned.parameter!r})",
            seeds=[],
            model_evaluations=tuned.num_evaluations,
        ),
    )


def _tabulate(tuned: "Tuned") -> Table:
    shown = {name: label for name, label in LABELS.items() if name != "loss" or tuned.goal == "loss"}
    return Table(
        key="trials",
        title="What was tried",
        columns=[
            Column(key="chosen", label="chosen"),
            Column(key="value", label=tuned.parameter),
            *([] if tuned.parameter == "step_size" else [Column(key="step_size", label="step size")]),
            *(Column(key=name, label=label) for name, label in shown.items()),
        ],
        rows=[
            {
                "chosen": "→" if index == tuned.chosen else "",
                "value": trial.value,
                "step_size": trial.step_size,
                **{name: estimate_from_error(*_read(trial, name)) for name in shown},
            }
            for index, trial in enumerate(tuned.trials)
        ],
        marked_rows=[tuned.chosen],
        notes=["Brackets are 95 % intervals over chains."],
    )


def _read(trial: "Trial", name: str) -> "Measured":
    statistics = {
        "acceptance_rate": trial.acceptance_rate,
        "flips_per_step": trial.flips_per_step,
        "log_density": trial.log_density,
        "ess_per_evaluation": trial.ess_per_evaluation,
        "loss": trial.loss,
    }
    found = statistics[name]
    assert found is not None
    return found


@style.apply()
def draw_trials(tuned: "Tuned", path: str | Path | None = None) -> "Figure":
    """Draw what the goal looks at, and its cost, against the number that was moved."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    for axes, name in zip(figure.subplots(1, 2), PANELS[tuned.goal], strict=True):
        _draw_panel(axes, tuned, name)
    figure.suptitle(f"{tuned.parameter} of {tuned.recipe.name}", x=0.01, ha="left")
    if path is not None:
        style.save(figure, Path(path))
    return figure


def _draw_panel(axes: "Axes", tuned: "Tuned", name: str) -> None:
    values = [trial.value for trial in tuned.trials]
    found = [_read(trial, name) for trial in tuned.trials]
    color = style.SAMPLER_COLORS.get(tuned.recipe.name, "#0077BB")
    axes.errorbar(
        values, [one.value for one in found], [one.error for one in found], fmt="o-", color=color, capsize=2
    )
    chosen = found[tuned.chosen]
    axes.plot(
        tuned.best.value, chosen.value, "o", ms=13, mfc="none", mec=CHOSEN_COLOR, mew=1.6, label="chosen"
    )
    numbers = [value for value in values if not isinstance(value, str)]
    if numbers and min(numbers) > 0:
        axes.set_xscale("log")
        axes.set_xticks(values[:: -(-len(values) // MAX_TICKS)], minor=False)
        axes.set_xticks([], minor=True)
        axes.xaxis.set_major_formatter("{x:.3g}")
    axes.set_xlabel(tuned.parameter)
    axes.set_title(LABELS[name])
    axes.margins(y=0.15)
    axes.legend()
