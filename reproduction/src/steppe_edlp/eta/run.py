"""What is run over η: the authors' settings on their rows, or a small network many times."""

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from steppe import datasets, samplers
from steppe.kernel.compose import Recipe
from steppe.targets.binary_network import BinaryNetwork, binary_network
from steppe_edlp.eta import report
from steppe_edlp.eta.sweep import STRIDE, sweep
from steppe_edlp.request import Findings, Request
from steppe_edlp.work import Content, Work

VARIANCES = (0.01, 0.02, 0.05, 0.08, 0.1, 0.2, 0.5, 0.8, 1.0, 2.0, 5.0, 8.0, 10.0)
STEP_SIZE = 0.1
CENTER_STEPS = {"edula": 0.01, "edmala": 0.001}
NUM_SEEDS = 20


class Size(NamedTuple):
    """How much is run."""

    num_hidden: int
    num_rows: int | None
    num_chains: int
    num_points: int
    seeds_per_piece: int


SIZES = {"quick": Size(16, 128, 3, 40, NUM_SEEDS), "full": Size(100, None, 50, 200, 2)}


class Table(NamedTuple):
    """A network's posterior, and the rows its predictions are judged on."""

    target: BinaryNetwork
    x: np.ndarray
    y: np.ndarray
    constant_rmse: float
    description: str


def run(request: Request, work: Work) -> Findings:
    """Carry out the experiment."""
    size, seeds = SIZES[request.scale], request.seeds(NUM_SEEDS if request.is_sound else 1)
    table = _table(request, size)
    groups = [
        seeds[first : first + size.seeds_per_piece] for first in range(0, len(seeds), size.seeds_per_piece)
    ]
    recipes = _recipes(request)
    pieces = {
        f"{name}-{number}": partial(_swept, recipe, table, group, size, request)
        for name, recipe in recipes.items()
        for number, group in enumerate(groups)
    }
    answers = work.all(pieces)
    measured = {
        name: _joined([answers[f"{name}-{number}"] for number in range(len(groups))]) for name in recipes
    }
    setting = report.Setting(
        step_size=STEP_SIZE,
        center_steps=CENTER_STEPS,
        variances=np.asarray(VARIANCES),
        num_bits=table.target.domain.num_sites,
        num_steps=STRIDE * size.num_points,
        constant_rmse=table.constant_rmse,
        description=table.description,
    )
    findings = report.findings(request, setting, measured)
    evaluations = len(VARIANCES) * len(seeds) * size.num_chains * STRIDE * size.num_points * len(recipes)
    return dataclasses.replace(
        findings, seeds=seeds, data={"table": table.description}, model_evaluations=evaluations
    )


def _recipes(request: Request) -> dict[str, Recipe]:
    # A center that starts at the position needs 2η/α_a steps, thousands, to reach its law: the sound
    # protocol starts it there.
    start = "conditional" if request.is_sound else "position"
    known = {
        "dula": samplers.dula(STEP_SIZE),
        "dmala": samplers.dmala(STEP_SIZE),
        "edula": samplers.edula(STEP_SIZE, CENTER_STEPS["edula"], 1.0, center_start=start),
        "edmala": samplers.edmala(STEP_SIZE, CENTER_STEPS["edmala"], 1.0, center_start=start),
    }
    return {name: known[name] for name in request.chosen(known)}


def _table(request: Request, size: Size) -> Table:
    """COMPAS, as the paper, where a data directory is given; else tumours, which ship with scikit-learn."""
    name = "breast-cancer" if request.data is None else "compas"
    data = datasets.load(name, data=request.data, as_published=request.data is not None, download=False)
    rows = slice(size.num_rows)
    x, y = data.train.x[rows], data.train.y[rows].astype(np.float32)
    judged = data.validation
    constant = float(np.sqrt(np.mean((judged.y - y.mean()) ** 2)))
    digests = ", ".join(data.card.sha256.values()) or "ships with scikit-learn"
    words = (
        f"{name} ({digests}), {len(x)} training and {len(judged.y)} validation rows, {size.num_hidden} "
        "hidden units"
    )
    target = binary_network(x, y, size.num_hidden, preset="published")
    return Table(target, judged.x, judged.y.astype(np.float32), constant, words)


def _swept(recipe: Recipe, table: Table, seeds: list[int], size: Size, request: Request) -> Content:
    """Means over the run (sound: its second half) at every variance and seed, and the way of the distance."""
    variances = VARIANCES if recipe.coupling.has_center else (1.0,)
    series = sweep(
        recipe,
        table.target,
        variances,
        seeds,
        table.x,
        table.y,
        num_chains=size.num_chains,
        num_points=size.num_points,
    )
    first = size.num_points // 2 if request.is_sound else 0
    means = {name: values[first:].mean(axis=0) for name, values in series.items()}
    return {**means, "path": series["distance"]}


def _joined(parts: list[Content]) -> Mapping[str, np.ndarray]:
    """Groups of seeds side by side: the last axis counts seeds."""
    return {name: np.concatenate([part[name] for part in parts], axis=-1) for name in parts[0]}
