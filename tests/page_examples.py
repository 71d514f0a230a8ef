"""Results to lay out: realistic ones from recorded numbers, and ones whose every text is hostile."""

import json
import shutil
from pathlib import Path
from typing import Any

from steppe.results import Column, Estimate, Figure, Provenance, Results, Table, Verdict

DOCS = Path(__file__).parents[1] / "docs"
PROVENANCE = Provenance(
    command="steppe reproduce bernoulli --scale quick",
    versions={"steppe": "0.1.0", "jax": "0.10.2", "numpy": "2.4.6"},
    device="cpu",
    seeds=list(range(20)),
    data={"digits": "sha256 0f2a…"},
    started="2026-01-31T12:00:00Z",
    seconds=41.5,
    model_evaluations=4_000_000,
)


def bernoulli() -> Results:
    """Four bits: flat and sharp mass against the strength of the tilt."""
    recorded = json.loads((DOCS / "results" / "flat_small.json").read_text(encoding="utf-8"))["four_bits"]
    rows = [{"sampler": "π, exact", "strength": None, **_exact(recorded[0])}]
    rows += [
        {"sampler": "roughness_tilted", "strength": row["strength"], **_sampled(row)} for row in recorded
    ]
    return Results(
        name="bernoulli",
        title="Four bits with two flat and two sharp modes",
        question="Do samplers that are tied to a center visit flat modes more often than the target says?",
        protocol="sound",
        scale="quick",
        verdicts=[
            Verdict(
                claim="EDMALA visits flat modes more often than DMALA.",
                outcome="does not hold",
                sentence="Both have the distribution π; over 20 seeds their flat mass differs by 0.0003.",
                estimate=Estimate(value=0.0003, low=-0.0011, high=0.0017),
            ),
            Verdict(
                claim="EDULA visits flat modes more often than DULA.",
                outcome="holds",
                sentence="It does, by the bias of a larger step: the flat mass rises by 0.021.",
                estimate=Estimate(value=0.021, low=0.017, high=0.025),
            ),
            Verdict(
                claim="The samples of EDMALA have a narrower spectrum.",
                outcome="not distinguishable",
                sentence="Twenty seeds cannot tell the two standard deviations apart.",
            ),
        ],
        tables=[
            Table(
                key="tilt",
                title="Mass on flat and sharp modes against the price on roughness",
                columns=[
                    Column(key="sampler", label="sampler"),
                    Column(key="strength", label="λ", digits=1),
                    Column(key="flat", label="flat mass", better="higher"),
                    Column(key="sharp", label="sharp mass", better="lower"),
                    Column(key="mean", label="E[U]", better="higher"),
                ],
                rows=rows,
                reference_rows=[0],
                notes=["Intervals are two standard errors wide on either side, over 20 seeds."],
            )
        ],
        figures=[
            Figure(
                key="occupancy",
                title="Samplers that samples π sit on the bars.",
                caption="Uncorrected samplers leave them, and the tilt moves mass to the flat modes.",
                alternative="Bars of sixteen probabilities with the occupancy of eleven samplers as markers.",
            ),
            Figure(
                key="modes",
                title="Flat and sharp modes.",
                caption="Each beside the four states one flip away.",
                alternative="Two flat and two sharp modes and their neighbours.",
            ),
        ],
        settings={"step_size": 0.5, "coupling_variance": 0.8, "num_draws": 20_000, "corrected": True},
        notes=["The target is small enough to enumerate, so the exact value stands beside every number."],
        provenance=PROVENANCE,
    )


def digits() -> Results:
    """A sheet of images and a figure whose file is missing."""
    recorded = json.loads((DOCS / "results" / "flat_digits.json").read_text(encoding="utf-8"))
    return Results(
        name="rbm",
        title="Handwritten digits from a Boltzmann machine",
        question="Do samplers that favour flat modes draw better digits?",
        protocol="published",
        scale="full",
        verdicts=[
            Verdict(
                claim="Samples of EDMALA look more like digits than those of DMALA.",
                outcome="not distinguishable",
                sentence="Over five seeds the mean log-density differs by 0.054.",
                estimate=Estimate(value=0.054, low=-0.01, high=0.118),
            )
        ],
        tables=[
            Table(
                key="flatness",
                title="Flatness of the samples, with the mean log-density beside it",
                columns=[
                    Column(key="sampler", label="sampler"),
                    Column(key="u", label="E[U]", better="higher"),
                    Column(key="rough", label="mean |ΔU|", better="lower"),
                    Column(key="drop", label="largest drop", unit="nats", better="lower", digits=2),
                ],
                rows=[
                    {
                        "sampler": row["sampler"],
                        "u": _pair(row["U"]),
                        "rough": _pair(row["mean |ΔU|"]),
                        "drop": _pair(row["max drop"]),
                    }
                    for row in recorded
                ],
            )
        ],
        figures=[
            Figure(
                key="sheet",
                title="Samples of three samplers.",
                caption="A row per sampler.",
                alternative="Three rows of small images of digits.",
            ),
            Figure(key="lost", title="A lost figure.", caption="Its file is gone.", alternative="Nothing."),
        ],
        provenance=PROVENANCE,
    )


def write_examples(directory: Path) -> Path:
    """Two experiments with their figures, and a results file cut short."""
    bernoulli().save(directory / "bernoulli")
    digits().save(directory / "rbm")
    for source, target in (
        ("occupancy.svg", "bernoulli/figures/occupancy.svg"),
        ("flat-modes.svg", "bernoulli/figures/modes.svg"),
        ("flat-digits.png", "rbm/figures/sheet.png"),
    ):
        (directory / target).parent.mkdir(exist_ok=True)
        shutil.copy(DOCS / "images" / source, directory / target)
    damaged = directory / "tsp" / "results.json"
    damaged.parent.mkdir()
    damaged.write_text('{"schema_version": 1, "name": "tsp", "ti')
    return directory


def _exact(row: dict[str, Any]) -> dict[str, Any]:
    return {"flat": row["flat"]["exact"], "sharp": row["sharp"]["exact"], "mean": row["E[U]"]["exact"]}


def _sampled(row: dict[str, Any]) -> dict[str, Any]:
    names = {"flat": "flat", "sharp": "sharp", "mean": "E[U]"}
    return {key: _pair((row[n]["sampled"], row[n]["standard_error"])) for key, n in names.items()}


def _pair(pair: Any) -> Estimate:
    value, error = pair
    return Estimate(value=value, low=value - 2 * error, high=value + 2 * error)
