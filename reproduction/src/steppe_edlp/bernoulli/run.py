"""What is run on the four bits, at the authors' settings or soundly."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from steppe import samplers
from steppe.kernel.compose import Recipe
from steppe.targets.bernoulli import paper_bernoulli
from steppe.theory import effective_step_size
from steppe_edlp.bernoulli import captions, tables, verdicts
from steppe_edlp.bernoulli.measured import Measured
from steppe_edlp.judging import joint_note
from steppe_edlp.occupancy import Landscape, Visits, visit
from steppe_edlp.request import Findings, Request
from steppe_edlp.wording import settings_of
from steppe_edlp.work import Content, Work

# The numbers with which the authors' code gives the paper's results; the GLU ones are the code's as well.
PUBLISHED = {
    "dula": samplers.dula(0.1225),
    "dmala": samplers.dmala(0.1),
    "edula": samplers.edula(0.2, 0.1, 0.1),
    "edmala": samplers.edmala(0.4, 0.1, 0.08),
    "edula_glu": samplers.edula_glu(0.2, 8.0),
    "edmala_glu": samplers.edmala_glu(1.0, 0.1),
}
# Claims are about the authors' settings, so these stay; beside them the samplers that do have a flat law.
SOUND = PUBLISHED | {
    "robust_ensemble": samplers.robust_ensemble(2, 0.5, 0.4),
    "roughness_tilted": samplers.roughness_tilted(2.0, 0.4),
}
PAPER_CHAINS, PAPER_WARMUP, PAPER_DRAWS = 4, 201, 800
NUM_SEEDS = 20


class Size(NamedTuple):
    """How much is run: windows as long as the paper's run, and long chains of every seed."""

    num_windows: int
    num_chains: int
    num_warmup: int
    num_draws: int


SIZES = {"quick": Size(100, 20, 500, 2_000), "full": Size(1_500, 100, 1_000, 20_000)}


def run(request: Request, work: Work) -> Findings:
    """Carry out the experiment."""
    recipes = SOUND if request.is_sound else PUBLISHED
    recipes = {name: recipes[name] for name in request.chosen(recipes)}
    # The exact law of edula is a power iteration over centers in four dimensions: it takes longest.
    order = sorted(recipes, key=lambda name: name != "edula")
    pieces = {name: partial(_measured, recipes[name], request) for name in order}
    answers = work.all(pieces)
    landscape = Landscape(paper_bernoulli())
    measured = {name: Measured(recipes[name], **answers[name]) for name in recipes}
    return _findings(request, landscape, measured, _beside(recipes))


def _measured(recipe: Recipe, request: Request) -> Content:
    """Exact law, windows as long as the paper's run, and under the sound protocol long chains."""
    target, size = paper_bernoulli(), SIZES[request.scale]
    windows = visit(
        recipe,
        target,
        request.seeds(size.num_windows) if not request.is_sound else range(size.num_windows),
        num_chains=PAPER_CHAINS,
        num_warmup=PAPER_WARMUP,
        num_draws=PAPER_DRAWS,
    )
    long = (
        visit(
            recipe,
            target,
            request.seeds(NUM_SEEDS),
            num_chains=size.num_chains,
            num_warmup=size.num_warmup,
            num_draws=size.num_draws,
        )
        if request.is_sound
        else windows
    )
    return {"law": recipe.log_law(target).positions(), "windows": windows.shares, **_packed(long)}


def _packed(visits: Visits) -> dict[str, np.ndarray]:
    return {"shares": visits.shares, "acceptance": visits.acceptance, "flips": visits.flips}


def _beside(recipes: Mapping[str, Recipe]) -> dict[str, np.ndarray]:
    """Exact laws that are shown for comparison: the `dula` whose law `edula` has if `U` is quadratic."""
    if "edula" not in recipes:
        return {}
    numbers = {
        name: float(value)
        for name, value in recipes["edula"].build(paper_bernoulli(), audit=False).parameters.items()
    }
    step = effective_step_size(
        numbers["step_size"], numbers["coupling_variance"], numbers["center_step_size"]
    )
    law = samplers.dula(step.value).log_law(paper_bernoulli()).positions()
    return {f"dula({step.value:g})": law}


def _findings(
    request: Request,
    landscape: Landscape,
    measured: Mapping[str, Measured],
    beside: Mapping[str, np.ndarray],
) -> Findings:
    """Everything there is to say."""
    judge = verdicts.sound_verdicts if request.is_sound else verdicts.published_verdicts
    judged = judge(landscape, measured)
    size = SIZES[request.scale]
    num_windows = len(next(iter(measured.values())).windows)
    return Findings(
        verdicts=judged,
        tables=[
            tables.occupancy_table(landscape, measured, beside, request),
            tables.spectrum_table(landscape, measured, request),
        ],
        figures=captions.figures(landscape, measured),
        arrays=_arrays(landscape, measured),
        settings={
            **{name: settings_of(one.recipe) for name, one in measured.items()},
            "windows as long as the paper's run": num_windows,
            "chains, warm-up and draws of a window": "4 chains, 201 steps dropped, 800 kept",
            "chains per seed": size.num_chains if request.is_sound else 4,
            "draws per chain": size.num_draws if request.is_sound else 800,
        },
        notes=[*captions.notes(request), *joint_note(judged)],
        seeds=list(range(request.seed, request.seed + len(next(iter(measured.values())).shares))),
        model_evaluations=_evaluations(request, measured, size),
    )


def _evaluations(request: Request, measured: Mapping[str, Measured], size: Size) -> int:
    """One per chain and step for each of these samplers; copies of an ensemble share the chains."""
    one = next(iter(measured.values()))
    windows = len(one.windows) * 4 * 1001
    long = len(one.shares) * size.num_chains * (size.num_warmup + size.num_draws) if request.is_sound else 0
    return len(measured) * (windows + long)


def _arrays(landscape: Landscape, measured: Mapping[str, Measured]) -> dict[str, np.ndarray]:
    arrays = {"target": landscape.law, "eigenvalues": landscape.eigenvalues}
    for name, one in measured.items():
        arrays[f"shares_{name}"] = one.shares
        arrays[f"law_{name}"] = one.law
        arrays[f"window_std_{name}"] = landscape.spectrum_std(one.windows)
    return arrays
