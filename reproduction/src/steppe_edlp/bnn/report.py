"""Tables and verdicts on networks of binary weights."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from steppe.intervals import mean_estimate
from steppe.results import Cell, Column, Estimate, Table, Verdict
from steppe_edlp.bnn import captions
from steppe_edlp.bnn.published import PAPER
from steppe_edlp.bnn.tables import Rows
from steppe_edlp.judging import Question, joint_note, judged, judged_together
from steppe_edlp.request import Findings, Request
from steppe_edlp.wording import settings_of, spoken
from steppe_edlp.work import Content

PAIRS = (("edula", "dula"), ("edmala", "dmala"))
MARGIN = 0.001  # of RMSE and of log-likelihood: about what the paper's tables show between neighbours


class OnTable(NamedTuple):
    """Everything found on one table of data; arrays have one entry per seed.

    Attributes
    ----------
    rows
        The data.
    baselines
        Log-likelihood and test RMSE of a constant and of a linear predictor.
    published, posed
        Figures of every sampler on the paper's network, and on the well-posed one (empty if not run).
    chosen
        Steepness chosen on the validation rows.
    recipes
        The samplers.
    """

    rows: Rows
    baselines: Mapping[str, tuple[float, float]]
    published: Mapping[str, Content]
    posed: Mapping[str, Content]
    chosen: Mapping[str, Content]
    recipes: Mapping[str, Any]


def findings(request: Request, size: Any, seeds: Sequence[int], found: Sequence[OnTable]) -> Findings:
    """Everything found on all tables."""
    tables = [_published_table(request, one) for one in found]
    tables += [_posed_table(one) for one in found if one.posed]
    steps = 5 * size.num_points * size.num_chains * sum(len(one.published) for one in found) * len(seeds)
    cooled = 5 * (size.num_cooling + size.num_kept) * size.num_posed_chains
    steps += cooled * sum(len(one.posed) for one in found) * (len(seeds) + 3)
    arrays: dict[str, np.ndarray] = {}
    for one in found:
        for name, part in one.published.items():
            key = one.rows.name.replace("-", "_")
            arrays[f"rmse_{key}_{name}"] = part["rmse_series"].mean(axis=0)
            arrays[f"likelihood_{key}_{name}"] = part["likelihood_series"].mean(axis=0)
    verdicts = _sound_verdicts(found) if request.is_sound else _published_verdicts(found)
    return Findings(
        verdicts=verdicts,
        tables=tables,
        figures=captions.figures(request),
        arrays=arrays,
        settings={
            "hidden units": size.num_hidden,
            "networks side by side": size.num_chains,
            "steps": 5 * (size.num_points - 1) + 1,
            **{f"rows of {one.rows.name}": len(one.rows.train) for one in found},
            **{
                f"{name} on {one.rows.name}": settings_of(recipe)
                for one in found
                for name, recipe in one.recipes.items()
                if name in one.published and settings_of(recipe)
            },
        },
        notes=captions.notes(request, [one.rows for one in found])
        + (joint_note(verdicts) if request.is_sound else []),
        seeds=list(seeds),
        data={name: digest for one in found for name, digest in one.rows.digests.items()},
        model_evaluations=steps,
    )


# ---- verdicts --------------------------------------------------------------------------------------


def _published_verdicts(found: Sequence[OnTable]) -> list[Verdict]:
    return [
        verdict
        for one in found
        for pair in PAIRS
        if _has(one.published, pair)
        for verdict in _single(one, *pair)
    ]


def _sound_verdicts(found: Sequence[OnTable]) -> list[Verdict]:
    return judged_together([question for one in found for question in _questions(one)])


def _questions(one: OnTable) -> list[Question]:
    published, posed = (one.published, "the paper's network"), (one.posed, "the well-posed network")
    questions: list[Question] = []
    for pair in PAIRS:
        if _has(one.published, pair):
            questions += [
                partial(_compared, one, *pair, *published, "rmse"),
                partial(_compared, one, *pair, *posed, "rmse"),
                partial(_compared, one, *pair, *published, "likelihood"),
            ]
    if "edmala" in one.published:
        questions += [partial(_beats_constant, one, "edmala", *network) for network in (published, posed)]
    return questions


def _has(found: Mapping[str, Content], pair: tuple[str, str]) -> bool:
    return all(name in found for name in pair)


def _compared(
    one: OnTable, entropic: str, plain: str, found: Mapping[str, Content], of: str, key: str, level: float
) -> Verdict:
    first, second = found[entropic][key], found[plain][key]
    difference = mean_estimate(second - first if key == "rmse" else first - second, level)
    what = "a lower test RMSE" if key == "rmse" else "a higher training log-likelihood"
    # The paper has numbers of its own network only.
    paper = PAPER.get(one.rows.name, {}) if found is one.published else {}
    place = 1 if key == "rmse" else 0
    beside = f" The paper has {paper[entropic][place]} and {paper[plain][place]}." if paper else ""
    return judged(
        f"{entropic} has {what} than {plain} on {one.rows.name}, with {of}.",
        difference,
        f"{first.mean():.4f} against {second.mean():.4f} over {len(first)} seeds; advantage "
        f"{spoken(difference, 4, signed=True)}. Less than {MARGIN:g} would not count.{beside}",
        MARGIN,
    )


def _single(one: OnTable, entropic: str, plain: str) -> list[Verdict]:
    """The paper's comparison of single runs: the interval is the spread along each run, as it prints it."""
    verdicts = []
    for key, place, what in (
        ("rmse", 1, "a lower test RMSE"),
        ("likelihood", 0, "a higher training log-likelihood"),
    ):
        first, second = one.published[entropic], one.published[plain]
        sign = -1 if key == "rmse" else 1
        gap = sign * float(first[key][0] - second[key][0])
        reach = float(np.hypot(first[f"{key}_sd"][0], second[f"{key}_sd"][0]))
        paper = PAPER.get(one.rows.name, {})
        beside = f" The paper has {paper[entropic][place]} and {paper[plain][place]}." if paper else ""
        verdicts.append(
            judged(
                f"A run of {entropic} has {what} than a run of {plain} on {one.rows.name}.",
                Estimate(value=gap, low=gap - reach, high=gap + reach),
                f"{float(first[key][0]):.4f} ± {float(first[f'{key}_sd'][0]):.4f} against "
                f"{float(second[key][0]):.4f} ± {float(second[f'{key}_sd'][0]):.4f}, where ± is the spread "
                f"along one run, mostly its beginning.{beside}",
                MARGIN,
            )
        )
    return verdicts


def _beats_constant(one: OnTable, name: str, found: Mapping[str, Content], of: str, level: float) -> Verdict:
    constant, linear = one.baselines["constant"][1], one.baselines["linear"][1]
    difference = mean_estimate(constant - found[name]["rmse"], level)
    return judged(
        f"{name} predicts {one.rows.name} better than the mean of the training rows does, with {of}.",
        difference,
        f"Test RMSE {float(found[name]['rmse'].mean()):.4f}; a constant has {constant:.4f} and least squares "
        f"{linear:.4f}. Advantage over the constant {spoken(difference, 4, signed=True)}.",
    )


# ---- tables ----------------------------------------------------------------------------------------


def _published_table(request: Request, one: OnTable) -> Table:
    paper = PAPER.get(one.rows.name, {})
    rows: list[dict[str, Cell]] = []
    for name, part in one.published.items():
        row: dict[str, Cell] = {"predictor": name, "acceptance": float(part["acceptance"].mean())}
        for key in ("rmse", "likelihood"):
            row[key] = mean_estimate(part[key]) if request.is_sound else _along(part, key)
            row[f"{key}_late"] = mean_estimate(part[f"{key}_late"])
        if paper:
            row |= {"likelihood_paper": paper[name][0], "rmse_paper": paper[name][1]}
        rows.append(row)
    references = [len(rows) + index for index in range(len(one.baselines))]
    rows += _baseline_rows(one)
    columns = [
        Column(key="predictor", label="sampler"),
        Column(key="rmse", label="test RMSE", digits=4, better="lower"),
        *([Column(key="rmse_paper", label="paper", digits=4)] if paper else []),
        Column(key="rmse_late", label="test RMSE, second half", digits=4, better="lower"),
        Column(key="likelihood", label="training log-likelihood", digits=4, better="higher"),
        *([Column(key="likelihood_paper", label="paper", digits=4)] if paper else []),
        Column(key="likelihood_late", label="the same, second half", digits=4, better="higher"),
        Column(key="acceptance", label="acceptance", digits=2),
    ]
    interval = "95 %, over seeds" if request.is_sound else "± the spread along one run, as in the paper"
    return Table(
        key=f"published_{one.rows.name.replace('-', '_')}",
        title=f"{one.rows.name}: the paper's network, {len(one.rows.train)} training rows",
        columns=columns,
        rows=rows,
        reference_rows=references,
        notes=[
            (
                f"Intervals are {interval}. “Log-likelihood” is −MSE, mean over networks and rows; the RMSE "
                "is that of the mean output of the current networks, averaged over log points from the "
                "first step on."
            ),
        ],
    )


def _along(part: Content, key: str) -> Estimate:
    value, spread = float(part[key][0]), float(part[f"{key}_sd"][0])
    return Estimate(value=value, low=value - spread, high=value + spread)


def _baseline_rows(one: OnTable) -> list[dict[str, Cell]]:
    return [
        {"predictor": f"{name} predictor", "rmse": error, "likelihood": likelihood}
        for name, (likelihood, error) in one.baselines.items()
    ]


def _posed_table(one: OnTable) -> Table:
    rows: list[dict[str, Cell]] = [
        {
            "predictor": name,
            "rmse": mean_estimate(part["rmse"]),
            "likelihood": mean_estimate(part["likelihood"]),
            "validation": mean_estimate(part["validation"]),
            "steepness": float(one.chosen[name]["steepness"]),
            "acceptance": float(part["acceptance"].mean()),
        }
        for name, part in one.posed.items()
    ]
    references = [len(rows) + index for index in range(len(one.baselines))]
    return Table(
        key=f"posed_{one.rows.name.replace('-', '_')}",
        title=f"{one.rows.name}: the well-posed network, {len(one.rows.fitted)} training rows",
        columns=[
            Column(key="predictor", label="sampler"),
            Column(key="rmse", label="test RMSE", digits=4, better="lower"),
            Column(key="likelihood", label="training log-likelihood", digits=4, better="higher"),
            Column(key="validation", label="validation RMSE", digits=4),
            Column(key="steepness", label="steepness chosen", digits=0),
            Column(key="acceptance", label="acceptance", digits=2),
        ],
        rows=[*rows, *_baseline_rows(one)],
        reference_rows=references,
        notes=[
            (
                "Intervals are 95 %, over seeds. Outputs of all networks and log points after cooling are "
                f"averaged before they are scored. The steepness is chosen on {len(one.rows.validation)} "
                "validation rows, which are neither trained nor tested on."
            ),
        ],
    )
