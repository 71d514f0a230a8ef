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


def present_annealed(annealed: "Annealed") -> Results:
    """Return the best and the last state of every chain; the best chains are marked."""
    best = np.asarray(annealed.best_log_density, float)
    return Results(
        name="annealed",
        title=f"Best log-density U = {best.max():.6g}",
        question="How good are the states that annealing met?",
        tables=[
            Table(
                key="chains",
                title=f"{len(best)} chains",
                columns=COLUMNS,
                rows=[_list_cells(annealed, chain) for chain in range(len(best))],
                marked_rows=np.flatnonzero(best == best.max()).tolist(),
            )
        ],
        notes=["While hyper-parameters move, nothing is invariant: no word about probabilities."],
        provenance=Provenance.of_software(describe_software(), command="steppe.anneal", seeds=[]),
    )


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
