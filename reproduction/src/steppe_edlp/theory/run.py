"""The paper's statements and true ones, each along a curve of points at which the exact number is known."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from steppe_edlp.experiment import Experiment
from steppe_edlp.request import Found, Request, Row
from steppe_edlp.theory import statements
from steppe_edlp.work import Content, Work

# Every point of these integrates over centers in four dimensions.
SLOW = {"glu-gap", "marginal"}
CLOSED_FORM_POINTS = 60
# What float32 matrices and grids of centers leave of a distance that is zero.
ZERO = 1e-3
COMPARISONS = {
    "marginal": statements.compare_marginal,
    "effective-step": statements.compare_effective_step,
    "drift": statements.compare_drift,
}


def run(experiment: Experiment, request: Request, work: Work) -> Found:
    """Carry out the experiment."""
    size = experiment.size(request)
    grids = {key: _make_grid(key, ends, size) for key, ends in size.grids.items()}
    bounds = {key: partial(statements.follow, grids[key], bound) for key, bound in statements.BOUNDS.items()}
    others = {key: partial(compare, grids[key]) for key, compare in COMPARISONS.items()}
    vanishing = partial(statements.find_small_step_limit, min(grids["dula-hidden-unit"]))
    found = work.all({**others, **bounds, "vanishing": vanishing})
    drift = found["drift"]
    return Found(
        rows={"bounds": [_describe(words, found[key]) for key, words in size.statements.items()]},
        facts={
            **{key: _summarize([found[key]]) for key in bounds},
            **{key: _describe_distances(found[key]) for key in ("marginal", "effective-step")},
            "dula": _summarize([found[key] for key in ("dula-four-bits", "dula-hidden-unit")]),
            "vanishing": _describe_limit(found["vanishing"]),
            "drift": {
                "published": drift["published"],
                "is_contraction": drift["published"] < 1,
                "largest": drift["true"].max(),
            },
        },
        arrays={
            **{key: np.stack([found[key][name] for name in ("x", "bound", "exact")]) for key in bounds},
            "drift": np.stack([drift[name] for name in ("x", "printed", "true")]),
        },
    )


def _make_grid(key: str, ends: Sequence[float], size: Any) -> list[float]:
    num_points = size.num_slow_points if key in SLOW else size.num_points
    num_points = CLOSED_FORM_POINTS if key == "drift" else num_points
    return [round(float(x), 5) for x in np.geomspace(ends[0], ends[1], num_points)]


def _describe(words: Mapping[str, str], one: Content) -> Row:
    place = _find_most_telling(one, words["claim"])
    unmet = [name for name, met in one["assumptions"].items() if not met]
    return {
        **words,
        "at": f"{words['at']} = {one['x'][place]:g}",
        "bound": float(one["bound"][place]),
        "exact": float(one["exact"][place]),
        "true": sum(held is True for held in one["holds"]),
        "points": len(one["holds"]),
        "assumptions": ", ".join(unmet) or "all met",
    }


def _find_most_telling(one: Content, relation: str) -> int:
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.log(one["exact"] / one["bound"])
    return int(np.nanargmax(excess if relation.endswith("≤") else -excess))


def _summarize(curves: Sequence[Content]) -> dict[str, Any]:
    """Whether a statement is true at every point where that is known, with the first where it is not."""
    decided = [held for one in curves for held in one["holds"] if held is not None]
    worst = min(curves, key=lambda one: np.mean([held is True for held in one["holds"]]))
    place = next((number for number, held in enumerate(worst["holds"]) if held is False), 0)
    x, bound, exact = (worst[name][place] for name in ("x", "bound", "exact"))
    found = f"True at {sum(decided)} of {len(decided)} points. At {x:g} it claims {bound:.3g}, and the exact "
    return {
        "holds": all(decided),
        "fraction": float(np.mean(decided)),
        "found": f"{found}number is {exact:.3g}.",
    }


def _describe_distances(one: Content) -> dict[str, Any]:
    largest = float(one["distance"].max())
    return {"largest": largest, "is_zero": largest < ZERO, "first": one["x"].min(), "last": one["x"].max()}


def _describe_limit(one: Content) -> dict[str, Any]:
    difference = one["limit"] - one["target"]
    return {**one, "difference": difference, "is_zero": abs(difference) < ZERO}
