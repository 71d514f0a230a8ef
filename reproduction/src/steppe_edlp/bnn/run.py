"""What is run: the paper's network with its protocol, and a well-posed one whose settings are chosen."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from steppe.kernel.compose import Recipe
from steppe.targets.binary_network import BinaryNetwork, binary_network
from steppe_edlp.bnn import report
from steppe_edlp.bnn.chains import Heat, logged
from steppe_edlp.bnn.published import SAMPLERS, recipes
from steppe_edlp.bnn.tables import Rows, baselines, load, requested_tables, rmse
from steppe_edlp.request import Findings, Request
from steppe_edlp.work import Content, Work

# U per unexplained share of the variance of y; which one is chosen on validation rows.
STEEPNESS = (50.0, 500.0, 2000.0)
CHOICE_SEED = 50_000
HOTTEST = 0.02


class Size(NamedTuple):
    """How much is run.

    Attributes
    ----------
    num_hidden
        Hidden units.
    num_chains, num_points
        Networks side by side and log points, five steps apart, of the paper's protocol.
    num_posed_chains, num_cooling, num_kept
        The same of the well-posed network: log points while it is cooled, and those after it.
    num_seeds
        Seeds.
    """

    num_hidden: int
    num_chains: int
    num_points: int
    num_posed_chains: int
    num_cooling: int
    num_kept: int
    num_seeds: int


SIZES = {"quick": Size(20, 8, 31, 8, 24, 24, 5), "full": Size(100, 50, 201, 8, 160, 80, 5)}


def run(request: Request, work: Work) -> Findings:
    """Carry out the experiment on every table asked for."""
    size = SIZES[request.scale]
    seeds = request.seeds(size.num_seeds if request.is_sound else 1)
    names = request.chosen(SAMPLERS)
    found = [
        _on_table(load(name, rows, request), request, size, work, seeds, names)
        for name, rows in requested_tables(request).items()
    ]
    return report.findings(request, size, seeds, found)


def _on_table(
    rows: Rows, request: Request, size: Size, work: Work, seeds: list[int], names: list[str]
) -> report.OnTable:
    known = recipes(rows.name)
    pieces = {
        f"published-{rows.name}-{name}-{seed}": partial(_as_published, rows, known[name], seed, size)
        for seed in seeds
        for name in names
    }
    answers = work.all(pieces)
    published = {name: _stacked(answers, f"published-{rows.name}-{name}", seeds) for name in names}
    posed: dict[str, Content] = {}
    chosen: dict[str, Content] = {}
    if request.is_sound:
        # A site of Gibbs looks at one hidden unit; as many as there are units are worth one evaluation.
        fair = recipes(rows.name, size.num_hidden)
        chosen = work.all(
            {f"choice-{rows.name}-{name}": partial(_choice, rows, fair[name], size) for name in names}
        )
        chosen = {name: chosen[f"choice-{rows.name}-{name}"] for name in names}
        pieces = {
            f"posed-{rows.name}-{name}-{seed}": partial(
                _posed, rows, fair[name], seed, size, chosen[name]["steepness"]
            )
            for seed in seeds
            for name in names
        }
        answers = work.all(pieces)
        posed = {name: _stacked(answers, f"posed-{rows.name}-{name}", seeds) for name in names}
    return report.OnTable(rows, baselines(rows.train, rows.test), published, posed, chosen, known)


def _stacked(answers: Mapping[str, Content], prefix: str, seeds: list[int]) -> Content:
    """Answers of all seeds, the first axis counting seeds."""
    parts = [answers[f"{prefix}-{seed}"] for seed in seeds]
    return {key: np.stack([np.asarray(part[key], float) for part in parts]) for key in parts[0]}


def _as_published(rows: Rows, recipe: Recipe, seed: int, size: Size) -> Content:
    """The paper's network; every log point counts once under its protocol, the last half soundly."""
    target = binary_network(rows.train.x, rows.train.y, size.num_hidden, preset="published")
    found = logged(target, recipe, rows.test.x, seed, num_chains=size.num_chains, num_points=size.num_points)
    errors = np.sqrt(np.mean((found.outputs - rows.test.y) ** 2, axis=1))
    half = len(errors) // 2
    return {
        "rmse_series": errors,
        "likelihood_series": found.likelihood,
        "rmse": errors.mean(),
        "rmse_sd": errors.std(),
        "likelihood": found.likelihood.mean(),
        "likelihood_sd": found.likelihood.std(),
        "rmse_late": errors[half:].mean(),
        "likelihood_late": found.likelihood[half:].mean(),
        "acceptance": found.acceptance.mean(),
    }


def well_posed(rows: Rows, num_hidden: int, steepness: float) -> BinaryNetwork:
    """The network whose outputs have the scale of the data; temperatures in units of the variance of y."""
    least = 1 / (2 + len(rows.fitted))
    temperature = steepness / max(float(rows.fitted.y.var()), least**2)
    return binary_network(rows.fitted.x, rows.fitted.y, num_hidden, temperature=temperature)


def _posed(rows: Rows, recipe: Recipe, seed: int, size: Size, steepness: float) -> Content:
    """Cool, then average the outputs of all networks of the log points after it."""
    both = np.concatenate([rows.test.x, rows.validation.x])
    found = logged(
        well_posed(rows, size.num_hidden, steepness),
        recipe,
        both,
        seed,
        num_chains=size.num_posed_chains,
        num_points=size.num_cooling + size.num_kept,
        heat=Heat(size.num_cooling, HOTTEST),
    )
    outputs = found.outputs[size.num_cooling :].mean(axis=0)
    return {
        "rmse": rmse(outputs[: len(rows.test)], rows.test.y),
        "validation": rmse(outputs[len(rows.test) :], rows.validation.y),
        "likelihood": found.likelihood[size.num_cooling :].mean(),
        "acceptance": found.acceptance[size.num_cooling :].mean(),
    }


def _choice(rows: Rows, recipe: Recipe, size: Size) -> Content:
    """Try every temperature with one seed and take the one best on the validation rows."""
    tried = [_posed(rows, recipe, CHOICE_SEED, size, steepness)["validation"] for steepness in STEEPNESS]
    return {"steepness": STEEPNESS[int(np.argmin(tried))], "validation": np.asarray(tried)}
