"""Binary neural networks: the paper's with its protocol, and a well-posed one whose settings are chosen."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import steppe
from steppe.intervals import estimate_smallest
from steppe.kernel.compose import Recipe
from steppe.results import Estimate
from steppe.targets.binary_network import BinaryNetwork, binary_network
from steppe_edlp.bnn.chains import LOG_PER, Heat, log_chains
from steppe_edlp.bnn.tabular import PAPER_TABLES, Rows, find_requested, find_rmse, fit_baselines, load_rows
from steppe_edlp.experiment import Experiment
from steppe_edlp.request import Found, Request, Row
from steppe_edlp.wording import describe_recipe
from steppe_edlp.work import Checkpoint, Content, Work

# Hidden units of the network that the paper prints, over those that its numbers are from.
PRINTED_WIDER = 5


class OnTable(NamedTuple):
    """Answers on one table of data by sampler; arrays have one entry per seed."""

    rows: Rows
    recipes: Mapping[str, Recipe]
    published: Mapping[str, Content]
    posed: Mapping[str, Content]
    chosen: Mapping[str, Content]


def run(experiment: Experiment, request: Request, work: Work) -> Found:
    """Carry out the experiment on every table asked for."""
    size = experiment.size(request)
    seeds = request.seeds(size.num_seeds if request.is_sound else 1)
    names = request.chosen(experiment.samplers)
    tables = [load_rows(asked, request) for asked in find_requested(request)]
    found = [_sample(rows, request, size, work, seeds, names) for rows in tables]
    found = [one for one in found if one.published]
    names = [name for name in names if all(name in one.published for one in found)]
    cut = [rows for rows in tables if not rows.is_whole]
    conditions = ["fewer_rows"] * any(rows.name in PAPER_TABLES for rows in cut)
    conditions += ["several"] * any(_count_seeds(one) > 1 for one in found)
    return Found(
        rows={
            "published": [row for one in found for row in _describe_published(one)],
            "posed": [row for one in found for row in _describe_posed(one)],
        },
        facts={
            "num_seeds": max(map(_count_seeds, found)),
            "num_steps": LOG_PER * (size.num_points - 1) + 1,
            "rows_left_out": " ".join(_say_rows_left_out(rows) for rows in cut),
        },
        conditions=[*conditions, *["other_table"] * any(rows.name not in PAPER_TABLES for rows in tables)],
        arrays={
            f"{key}_series": np.stack(
                [[one.published[n][f"{key}_series"].mean(axis=0) for n in names] for one in found]
            )
            for key in ("rmse", "likelihood")
        },
        settings={
            **{f"rows of {rows.name}": len(rows.train) for rows in tables},
            **{
                f"{name} on {one.rows.label}": words
                for one in found
                for name, recipe in one.recipes.items()
                if (words := describe_recipe(recipe))
            },
        },
        seeds=seeds[: max(map(_count_seeds, found))],
        data={name: digest for rows in tables for name, digest in rows.digests.items()},
        model_evaluations=_count_evaluations(size, len(seeds), found),
    )


def make_recipes(
    size: SimpleNamespace, table: str, names: Sequence[str], num_updates: int = 1
) -> dict[str, Recipe]:
    """The paper's samplers for a table; Gibbs resamples so many sites in a step, one in the paper."""
    centers = size.centers.get(table, size.centers["compas"])
    made = {}
    for name in names:
        numbers: dict[str, Any] = {}
        if name == "gibbs":  # the authors pick every site at random
            numbers = {"num_updates": num_updates, "scan": "random" if num_updates == 1 else "systematic"}
        if name not in ("gibbs", "gwg"):
            numbers["step_size"] = size.step_size
        if name in centers:
            numbers |= dict(zip(("center_step_size", "coupling_variance"), centers[name], strict=True))
        made[name] = getattr(steppe, name)(**numbers)
    return made


def _sample(
    rows: Rows, request: Request, size: SimpleNamespace, work: Work, seeds: list[int], names: list[str]
) -> OnTable:
    recipes = make_recipes(size, rows.name, names)

    def do(kind: str, piece: Callable[..., Content], *arguments: Mapping[str, object]) -> dict[str, Content]:
        """Every sampler with every seed, the first axis of its answers counting seeds."""
        keys = {(name, seed): f"{kind}-{rows.key}-{name}-{seed}" for seed in seeds for name in names}
        given = {name: [one[name] for one in arguments] for name in names}
        answers = work.all(
            {
                key: partial(piece, rows, seed, size, *given[name], checkpoint=work.checkpoint(key))
                for (name, seed), key in keys.items()
            }
        )
        # Of a record, seeds that every sampler has, so that they are compared pair by pair.
        there = [name for name in names if keys[name, seeds[0]] in answers]
        whole = [seed for seed in seeds if all(keys[name, seed] in answers for name in there)]
        return {name: _stack([answers[keys[name, seed]] for seed in whole]) for name in there}

    published = do("published", _run_published, recipes)
    if not request.is_sound:
        return OnTable(rows, recipes, published, {}, {})
    # A site of Gibbs looks at one hidden unit; as many as there are units are worth one evaluation.
    fair = make_recipes(size, rows.name, names, size.num_hidden)
    choices = work.all(
        {f"choice-{rows.key}-{name}": partial(_choose, rows, size, fair[name]) for name in names}
    )
    chosen = {name: choices[f"choice-{rows.key}-{name}"] for name in names}
    steepness = {name: chosen[name]["steepness"] for name in names}
    return OnTable(rows, recipes, published, do("posed", _run_posed, fair, steepness), chosen)


def _stack(parts: list[Content]) -> Content:
    return {key: np.stack([np.asarray(part[key], float) for part in parts]) for key in parts[0]}


def _run_published(
    rows: Rows, seed: int, size: SimpleNamespace, recipe: Recipe, *, checkpoint: Checkpoint | None = None
) -> Content:
    """The paper's network; every log point counts once under its protocol, the last half soundly."""
    num_hidden = size.num_hidden * (PRINTED_WIDER if rows.is_printed else 1)
    preset = "printed" if rows.is_printed else "published"
    target = binary_network(rows.train.x, rows.train.y, num_hidden, preset=preset)
    counts = {"num_chains": size.num_chains, "num_points": size.num_points}
    found = log_chains(target, recipe, rows.test.x, seed, **counts, checkpoint=checkpoint)
    errors = np.sqrt(np.mean((found.outputs - rows.test.y) ** 2, axis=1))
    answer: Content = {"acceptance": found.acceptance.mean()}
    for key, series in (("rmse", errors), ("likelihood", found.likelihood)):
        answer |= {f"{key}_series": series, key: series.mean(), f"{key}_sd": series.std()}
        answer[f"{key}_late"] = series[len(series) // 2 :].mean()
    return answer


def make_well_posed(rows: Rows, num_hidden: int, steepness: float) -> BinaryNetwork:
    """The network whose outputs have the scale of the data; temperatures in units of the variance of y."""
    minimum = 1 / (2 + len(rows.fitted))
    temperature = steepness / max(float(rows.fitted.y.var()), minimum**2)
    return binary_network(rows.fitted.x, rows.fitted.y, num_hidden, temperature=temperature)


def _run_posed(
    rows: Rows,
    seed: int,
    size: SimpleNamespace,
    recipe: Recipe,
    steepness: float,
    *,
    checkpoint: Checkpoint | None = None,
) -> Content:
    """Cool, then average the outputs of all networks of the log points after it."""
    found = log_chains(
        make_well_posed(rows, size.num_hidden, steepness),
        recipe,
        np.concatenate([rows.test.x, rows.validation.x]),
        seed,
        num_chains=size.num_posed_chains,
        num_points=size.num_cooling + size.num_kept,
        heat=Heat(size.num_cooling, size.hottest),
        checkpoint=checkpoint,
    )
    outputs = found.outputs[size.num_cooling :].mean(axis=0)
    return {
        "rmse": find_rmse(outputs[: len(rows.test)], rows.test.y),
        "validation": find_rmse(outputs[len(rows.test) :], rows.validation.y),
        "likelihood": found.likelihood[size.num_cooling :].mean(),
        "acceptance": found.acceptance[size.num_cooling :].mean(),
    }


def _choose(rows: Rows, size: SimpleNamespace, recipe: Recipe) -> Content:
    """Try every temperature with one seed and take the one best on the validation rows."""
    tried = [_run_posed(rows, size.choice_seed, size, recipe, one)["validation"] for one in size.steepness]
    return {"steepness": size.steepness[int(np.argmin(tried))], "validation": np.asarray(tried)}


def _describe_published(one: OnTable) -> list[Row]:
    shared = {"data": one.rows.label, "table": one.rows.name, "num_train": len(one.rows.train)}
    rows: list[Row] = []
    for name, part in one.published.items():
        row: Row = {**shared, "sampler": name, "acceptance": float(part["acceptance"].mean())}
        for key in ("rmse", "likelihood"):
            row |= {key: part[key] if _count_seeds(one) > 1 else _with_spread(part, key)}
            row[f"{key}_sd"] = float(part[f"{key}_sd"].mean())
            row[f"{key}_late"] = part[f"{key}_late"]
        row["num_seeds"] = _count_seeds(one)
        rows.append(row | (_find_lead(one) if name == "edmala" and len(one.published) > 1 else {}))
    return [*rows, *_describe_baselines(one, shared)]


def _count_seeds(one: OnTable) -> int:
    return len(next(iter(one.published.values()))["rmse"])


def _find_lead(one: OnTable) -> Row:
    """By how much the test error of EDMALA is below that of the best of the others."""
    errors = {name: part["rmse"] for name, part in one.published.items()}
    leads = {name: values - errors["edmala"] for name, values in errors.items() if name != "edmala"}
    rival = min(leads, key=lambda name: leads[name].mean())
    lead = partial(estimate_smallest, list(leads.values()))
    return {"lead": lead, "rival": rival, "num_rivals": len(leads)}


def _with_spread(part: Content, key: str) -> Estimate:
    value, spread = float(part[key][0]), float(part[f"{key}_sd"][0])
    return Estimate(value=value, low=value - spread, high=value + spread)


def _describe_posed(one: OnTable) -> list[Row]:
    counts = {"num_train": len(one.rows.fitted), "num_validation": len(one.rows.validation)}
    shared = {"data": one.rows.label, **counts}
    rows = [
        {
            **shared,
            **part,
            "sampler": name,
            "steepness": float(one.chosen[name]["steepness"]),
            "acceptance": float(part["acceptance"].mean()),
        }
        for name, part in one.posed.items()
    ]
    return [*rows, *_describe_baselines(one, shared)] if rows else []


def _describe_baselines(one: OnTable, shared: Row) -> list[Row]:
    return [
        {**shared, "sampler": f"{name} predictor", "is_reference": True, "rmse": error, "likelihood": fit}
        for name, (fit, error) in fit_baselines(one.rows.train, one.rows.test).items()
    ]


def _say_rows_left_out(rows: Rows) -> str:
    train, test = rows.num_published
    return (
        f"Only the first {len(rows.train)} of {train} training rows of {rows.name} and {len(rows.test)} of "
        f"{test} test rows are used. All rows: `steppe reproduce bnn --scale full --instance {rows.name} "
        "--data DIR`."
    )


def _count_evaluations(size: SimpleNamespace, num_seeds: int, found: Sequence[OnTable]) -> int:
    steps = LOG_PER * size.num_points * size.num_chains * num_seeds * sum(len(one.published) for one in found)
    cooled = LOG_PER * (size.num_cooling + size.num_kept) * size.num_posed_chains
    return steps + cooled * sum(len(one.posed) for one in found) * (num_seeds + len(size.steepness))
