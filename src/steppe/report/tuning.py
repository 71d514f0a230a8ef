"""What tuning tried, as a table and as a picture."""

from pathlib import Path
from typing import TYPE_CHECKING

from steppe.report import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table

    from steppe.tune.report import Measured, Tuned

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


def trials_table(tuned: "Tuned") -> "Table":
    """Return what was tried as a table for the terminal, the chosen row marked."""
    from rich.table import Table

    shown = [name for name in LABELS if name != "loss" or tuned.goal == "loss"]
    table = Table(title=f"{tuned.number} of {tuned.recipe.name}", caption=tuned.reason)
    for heading in ("", tuned.number, "step size", *(LABELS[name] for name in shown)):
        table.add_column(heading, justify="right")
    for index, trial in enumerate(tuned.trials):
        is_chosen = index == tuned.chosen
        step = "–" if trial.step_size is None else f"{trial.step_size:.3g}"
        figures = [_figure(getattr(trial, name)) for name in shown]
        style_of_row = "bold" if is_chosen else None
        table.add_row("→" if is_chosen else "", f"{trial.value:.4g}", step, *figures, style=style_of_row)
    return table


def _figure(figure: "Measured") -> str:
    return f"{figure.value:.3g} ± {figure.error:.1g}"


@style.applied()
def plot_trials(tuned: "Tuned", path: str | Path | None = None) -> "Figure":
    """Draw what the goal looks at, and its price, against the number that was moved."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    for axes, name in zip(figure.subplots(1, 2), PANELS[tuned.goal], strict=True):
        _panel(axes, tuned, name)
    figure.suptitle(f"{tuned.number} of {tuned.recipe.name}", x=0.01, ha="left")
    if path is not None:
        style.save(figure, Path(path))
    return figure


def _panel(axes: "Axes", tuned: "Tuned", name: str) -> None:
    values = [trial.value for trial in tuned.trials]
    figures = [getattr(trial, name) for trial in tuned.trials]
    color = style.SAMPLER_COLORS.get(tuned.recipe.name, "#0077BB")
    axes.errorbar(
        values, [f.value for f in figures], [f.error for f in figures], fmt="o-", color=color, capsize=2
    )
    chosen = figures[tuned.chosen]
    axes.plot(
        tuned.best.value, chosen.value, "o", ms=13, mfc="none", mec=CHOSEN_COLOR, mew=1.6, label="chosen"
    )
    if min(values) > 0:
        axes.set_xscale("log")
        axes.set_xticks(values[:: -(-len(values) // MAX_TICKS)], minor=False)
        axes.set_xticks([], minor=True)
        axes.xaxis.set_major_formatter("{x:.3g}")
    axes.set_xlabel(tuned.number)
    axes.set_title(LABELS[name])
    axes.margins(y=0.15)
    axes.legend()
