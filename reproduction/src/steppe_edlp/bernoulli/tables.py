"""Tables of the four bits."""

from collections.abc import Mapping

import numpy as np

from steppe.intervals import mean_estimate
from steppe.results import Cell, Column, Table
from steppe_edlp.bernoulli.measured import PAPER_SPECTRUM, Measured, percentile
from steppe_edlp.occupancy import Landscape, expected_noise
from steppe_edlp.request import Request
from steppe_edlp.wording import settings_of


def occupancy_table(
    landscape: Landscape, measured: Mapping[str, Measured], beside: Mapping[str, np.ndarray], request: Request
) -> Table:
    """Mass on the modes, E[U] and distance to π: sampled, and exact beside it."""
    rows = [_exact_row("π", "what every sampler is meant to sample", landscape, landscape.law)]
    for name, one in measured.items():
        rows.append(_sampled_row(name, one, landscape, request))
        if name == "edula":
            rows += [
                _exact_row(label, "exact law of dula at α_eff", landscape, law)
                for label, law in beside.items()
            ]
    references = [number for number, row in enumerate(rows) if row["flat"] is None]
    return Table(
        key="occupancy",
        title="Time spent in flat and in sharp modes",
        columns=[
            Column(key="sampler", label="sampler"),
            Column(key="settings", label="settings"),
            Column(key="flat", label="time in flat modes"),
            Column(key="flat_exact", label="exact", digits=4),
            Column(key="sharp", label="time in sharp modes"),
            Column(key="sharp_exact", label="exact", digits=4),
            Column(key="log_density", label="E[U]"),
            Column(key="log_density_exact", label="exact"),
            Column(key="distance", label="TV to π", digits=4, better="lower"),
            Column(key="noise", label="TV by noise alone", digits=4),
            Column(key="distance_exact", label="TV exact", digits=4, better="lower"),
            Column(key="acceptance", label="acceptance", digits=2),
            Column(key="flips", label="flips per step", digits=2),
        ],
        rows=rows,
        reference_rows=references,
        notes=[
            (
                "Flat modes are 0100 and 1001, sharp modes 0010 and 0111. Intervals are 95 %, from "
                "independent seeds. Exact values come from enumeration of each sampler's own stationary law."
            ),
            "“TV by noise alone” is what a sampler of exactly π would show with as much data.",
        ],
    )


def _exact_row(name: str, settings: str, landscape: Landscape, law: np.ndarray) -> dict[str, Cell]:
    return {
        "sampler": name,
        "settings": settings,
        "flat": None,
        "sharp": None,
        "log_density": None,
        "distance": None,
        "noise": None,
        "acceptance": None,
        "flips": None,
        **_exact_cells(landscape, law),
    }


def _exact_cells(landscape: Landscape, law: np.ndarray) -> dict[str, Cell]:
    return {
        "flat_exact": float(landscape.flat_mass(law)),
        "sharp_exact": float(landscape.sharp_mass(law)),
        "log_density_exact": float(law @ landscape.heights),
        "distance_exact": landscape.distance(law),
    }


def _sampled_row(name: str, one: Measured, landscape: Landscape, request: Request) -> dict[str, Cell]:
    # The published protocol is one seed; the others show how much it could have been otherwise.
    shares = one.shares if request.is_sound else one.shares[:1]
    return {
        "sampler": name,
        "settings": settings_of(one.recipe),
        "flat": mean_estimate(landscape.flat_mass(shares)),
        "sharp": mean_estimate(landscape.sharp_mass(shares)),
        "log_density": mean_estimate(shares @ landscape.heights),
        "distance": landscape.distance(shares),
        "noise": expected_noise(one.shares, None if request.is_sound else 1),
        "acceptance": float(one.acceptance.mean()) if one.recipe.is_adjusted else None,
        "flips": float(one.flips.mean()),
        **_exact_cells(landscape, one.law),
    }


def spectrum_table(landscape: Landscape, measured: Mapping[str, Measured], request: Request) -> Table:
    """Spread of the eigenvalues of pairwise interactions: ours, exact, and the paper's among many seeds."""
    rows: list[dict[str, Cell]] = [
        {
            "sampler": "π",
            "std": float(landscape.spectrum_std(landscape.law)),
            "iqr": float(landscape.spectrum_iqr(landscape.law)),
            "std_exact": float(landscape.spectrum_std(landscape.law)),
            "iqr_exact": float(landscape.spectrum_iqr(landscape.law)),
        }
    ]
    for name, one in measured.items():
        shares = one.shares if request.is_sound else one.shares[:1]
        windows = landscape.spectrum_std(one.windows)
        paper = PAPER_SPECTRUM.get(name)
        rows.append(
            {
                "sampler": name,
                "std": mean_estimate(landscape.spectrum_std(shares)),
                "std_exact": float(landscape.spectrum_std(one.law)),
                "std_paper": None if paper is None else paper[0],
                "iqr": mean_estimate(landscape.spectrum_iqr(shares)),
                "iqr_exact": float(landscape.spectrum_iqr(one.law)),
                "iqr_paper": None if paper is None else paper[1],
                "window_mean": float(windows.mean()),
                "window_sd": float(windows.std(ddof=1)) if len(windows) > 1 else None,
                "percentile": None if paper is None else percentile(windows, paper[0]),
            }
        )
    return Table(
        key="spectrum",
        title="Eigenvalues of pairwise interactions at the states visited",
        columns=[
            Column(key="sampler", label="sampler"),
            Column(key="std", label="std"),
            Column(key="std_exact", label="std, exact"),
            Column(key="std_paper", label="std, paper"),
            Column(key="iqr", label="IQR"),
            Column(key="iqr_exact", label="IQR, exact"),
            Column(key="iqr_paper", label="IQR, paper"),
            Column(key="window_mean", label="std of a run like the paper's, mean"),
            Column(key="window_sd", label="its spread over seeds"),
            Column(key="percentile", label="percentile of the paper's std", unit="%", digits=0),
        ],
        rows=rows,
        reference_rows=[0],
        notes=[
            (
                "The eigenvalues sum to zero at every state, so their spread is a function of where a chain "
                "has been and of nothing else. It measures interaction strength, not flatness: it depends on "
                "how U is extended to the reals, which π does not know."
            ),
        ],
    )
