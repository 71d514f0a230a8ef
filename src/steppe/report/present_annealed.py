"""Presenter of an annealed run: what each chain found, as results."""

from typing import TYPE_CHECKING

import numpy as np

from steppe.report.cells import to_finite
from steppe.results import Cell, Column, Provenance, Results, Table
from steppe.run.storage.identity import describe_software

if TYPE_CHECKING:
    from steppe.run.anneal import Annealed

COLUMNS = [
    Column(key="chain", label="chain", digits=0),
    Column(key="best", label="best U", better="higher"),
    Column(key="progress", label="met at", unit="% of the schedule", digits=0),
    Column(key="end", label="U at the end"),
    Column(key="acceptance", label="acceptance at the end"),
]
TRACE_COLUMNS = [
    Column(key="evaluations", label="evaluations", digits=0),
    Column(key="seconds", label="time", unit="s"),
    Column(key="best", label="best U", better="higher"),
]


def present_annealed(annealed: "Annealed") -> Results:
    """Return the best and the last state of every chain, and when the best was met; the best are marked."""
    best = np.asarray(annealed.best_log_density, float)
    trace = {name: np.asarray(values, float) for name, values in annealed.trace.items()}
    return Results(
        name="annealed",
        title=f"Best log-density U = {best.max():.6g}",
        question="How good are the states that annealing met?",
        facts=_state_facts(annealed, trace),
        tables=[
            Table(
                key="chains",
                title=f"{len(best)} chains",
                columns=COLUMNS,
                rows=[_list_cells(annealed, chain) for chain in range(len(best))],
                marked_rows=np.flatnonzero(best == best.max()).tolist(),
            ),
            Table(
                key="trace",
                title="The best so far, each time it became better",
                columns=TRACE_COLUMNS,
                rows=_list_improvements(trace),
                is_detail=True,
            ),
        ],
        notes=[
            *filter(None, [annealed.shortfall]),
            "While hyper-parameters move, nothing is invariant: no word about probabilities.",
        ],
        provenance=Provenance.of_software(
            describe_software(),
            command="steppe.anneal",
            seeds=[],
            seconds=float(trace["seconds"][-1]),
            model_evaluations=float(trace["evaluations"][-1]),
        ),
    )


def _state_facts(annealed: "Annealed", trace: dict[str, np.ndarray]) -> dict[str, str]:
    first = int(np.argmax(trace["best_log_density"] == trace["best_log_density"][-1]))
    rounds = "1 round" if annealed.num_rounds == 1 else f"{annealed.num_rounds} rounds"
    return {
        "sampler": f"{annealed.recipe.name}: {annealed.reason}",
        "best": f"met after {trace['seconds'][first]:.3g} s, {trace['evaluations'][first]:.3g} evaluations",
        "end": f"after {rounds} and {trace['seconds'][-1]:.3g} s, because {annealed.stopped}",
    }


def _list_improvements(trace: dict[str, np.ndarray]) -> list[dict[str, Cell]]:
    best = trace["best_log_density"]
    is_better = np.diff(best, prepend=-np.inf) > 0
    return [
        {
            "evaluations": to_finite(trace["evaluations"][row]),
            "seconds": to_finite(trace["seconds"][row]),
            "best": to_finite(best[row]),
        }
        for row in np.flatnonzero(is_better)
    ]


def _list_cells(annealed: "Annealed", chain: int) -> dict[str, Cell]:
    history = {name: np.asarray(values, float)[chain] for name, values in annealed.history.items()}
    best = history["best_log_density"]
    met = history["progress"][np.argmax(best == best[-1])]
    return {
        "chain": chain,
        "best": to_finite(best[-1]),
        "progress": to_finite(100 * met),
        "end": to_finite(history["log_density"][-1]),
        "acceptance": to_finite(history["acceptance_rate"][-1]),
    }
