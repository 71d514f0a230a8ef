"""What is true of each statement."""

from collections.abc import Mapping

import numpy as np

from steppe.results import Estimate, Verdict
from steppe_edlp.work import Content

# What float32 matrices and grids of centers leave of a distance that is zero.
ZERO = 1e-3


def all_verdicts(found: Mapping[str, Content]) -> list[Verdict]:
    """One per statement, in the order of the paper, then the corrected ones."""
    return [
        _marginal(found["marginal"]),
        _everywhere(
            found,
            ("dula-four-bits", "dula-hidden-unit"),
            "The bias of dula is at most Z exp(M/4 − 1/(2α)).",
            "It is true of the four bits, sixfold loose, and false where a gradient is not a difference: one "
            "bit seen by a hidden unit.",
        ),
        _vanishing(found["dula-hidden-unit"]),
        _everywhere(
            found,
            ("proposition-5-4",),
            "Proposition 5.4: the bias of edula is at most Z exp{M/4 − 1/(2α) + (Δ² − ϑ)/(2η)}.",
            "All its assumptions are met by one flat bit, and it is false there: as α → 0 the bound vanishes "
            "and the center's own bias stays.",
        ),
        _everywhere(
            found,
            ("theorem-5-5",),
            "Theorem 5.5: edula comes as near to the joint law as Proposition 5.4 says.",
            "False on the same bit in the limit of many steps.",
        ),
        _everywhere(
            found,
            ("theorem-5-6",),
            "Theorem 5.6: edmala converges at least at rate ε.",
            "False on one concave bit: the claimed rate does not fall with α_a, the true one does.",
        ),
        _drift(found["drift"]),
        _everywhere(
            found,
            ("edula-bias",),
            "Corrected: for quadratic U the bias of edula is at most 2B/(1 + B).",
            "True at every point of a ring of four bits, and loose.",
        ),
        _everywhere(
            found,
            ("glu-gap",),
            "Corrected: GLU with exact draws has a gap of at least exp(−diam²/(4η)).",
            "True at every η tried on the four bits.",
        ),
        _effective_step(found["effective-step"]),
    ]


def _verdict(claim: str, holds: bool, sentence: str, value: float) -> Verdict:
    outcome = "holds" if holds else "does not hold"
    return Verdict(claim=claim, outcome=outcome, sentence=sentence, estimate=Estimate(value=value))


def _everywhere(found: Mapping[str, Content], keys: tuple[str, ...], claim: str, reason: str) -> Verdict:
    held = [one for key in keys for one in found[key]["holds"]]
    decided = [one for one in held if one is not None]
    worst = min(keys, key=lambda key: np.mean([one is True for one in found[key]["holds"]]))
    place = next((number for number, one in enumerate(found[worst]["holds"]) if one is False), 0)
    bound, exact = found[worst]["bound"][place], found[worst]["exact"][place]
    numbers = f" At {found[worst]['x'][place]:g} it claims {bound:.3g}, and the exact number is {exact:.3g}."
    return _verdict(
        claim,
        all(decided),
        f"{reason} True at {sum(decided)} of {len(decided)} points.{numbers}",
        float(np.mean(decided)),
    )


def _marginal(one: Content) -> Verdict:
    largest = float(one["distance"].max())
    return _verdict(
        "Lemma 4.1: under the joint law the position alone has law π, for every η.",
        largest < ZERO,
        f"Integrating the center out leaves π to within {largest:.1g} in total variation for η from "
        f"{one['x'].min():g} to {one['x'].max():g}. Hence a corrected sampler cannot prefer flat modes.",
        largest,
    )


def _vanishing(one: Content) -> Verdict:
    return _verdict(
        "The bias of the uncorrected samplers vanishes as α → 0.",
        abs(one["limit"] - one["target"]) < ZERO,
        f"On one bit seen by a hidden unit dula tends to p(1) = {one['limit']:.3f} where π has "
        f"{one['target']:.3f}: the odds of a flip tend to the trapezoidal rule of the slope, not to the "
        "difference.",
        one["limit"] - one["target"],
    )


def _drift(one: Content) -> Verdict:
    return _verdict(
        "The drift theorem: the center of edula contracts by λ = 2(1 − α_a/η)².",
        one["published"] < 1,
        f"At the settings of the paper's networks λ = {one['published']:.2f}, no contraction. The true "
        f"factor |1 − α_a/(2η)| is below 1 for every α_a < 4η; over the ratios tried it is at most "
        f"{one['true'].max():.3f}.",
        one["published"],
    )


def _effective_step(one: Content) -> Verdict:
    largest = float(one["distance"].max())
    return _verdict(
        "For quadratic U, edula has the law of dula at 1/α_eff = 1/α − 1/(4η − α_a).",
        largest < ZERO,
        f"On two coupled bits the two laws differ by at most {largest:.1g} in total variation for η from "
        f"{one['x'].min():g} to {one['x'].max():g}: edula is dula at a larger step.",
        largest,
    )
