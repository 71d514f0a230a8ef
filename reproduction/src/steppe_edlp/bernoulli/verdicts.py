"""The paper's claims about the four bits, judged."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from steppe.intervals import mean_estimate, share_estimate
from steppe.results import Estimate, Verdict
from steppe_edlp.bernoulli.measured import PAPER_SPECTRUM, Measured, percentile
from steppe_edlp.judging import Question, judged, judged_together
from steppe_edlp.occupancy import Landscape
from steppe_edlp.wording import spoken

PAIRS = (("edula", "dula"), ("edmala", "dmala"))
# Smallest differences that would count: the paper's own pictures show .39 against .08 of time in flat modes,
# and spreads of 2.2 against 2.7.
MASS_MARGIN, SPREAD_MARGIN = 0.02, 0.1


def sound_verdicts(landscape: Landscape, measured: Mapping[str, Measured]) -> list[Verdict]:
    """The paper's claims about the four bits, judged by many seeds and long chains."""
    questions: list[Question] = []
    for entropic, plain in PAIRS:
        if entropic in measured and plain in measured:
            pair = (entropic, plain, measured[entropic], measured[plain], landscape)
            questions += [partial(about, *pair) for about in (_flat_verdict, _sharp_verdict, _spread_verdict)]
    if "roughness_tilted" in measured:
        questions.append(partial(_tilt_verdict, measured["roughness_tilted"], landscape))
    return judged_together(questions)


def _flat_verdict(
    entropic: str, plain: str, one: Measured, other: Measured, at: Landscape, level: float
) -> Verdict:
    difference = mean_estimate(at.flat_mass(one.shares) - at.flat_mass(other.shares), level)
    exact = float(at.flat_mass(one.law) - at.flat_mass(other.law))
    return judged(
        f"{entropic} spends more time in flat modes than {plain}.",
        difference,
        f"Time in flat modes: {entropic} {at.flat_mass(one.shares).mean():.3f}, {plain} "
        f"{at.flat_mass(other.shares).mean():.3f}, difference {spoken(difference, signed=True)}. Enumeration "
        f"gives a difference of {exact:+.4f}; π itself has {float(at.flat_mass(at.law)):.3f}. Less than "
        f"{MASS_MARGIN} would not count.",
        MASS_MARGIN,
    )


def _sharp_verdict(
    entropic: str, plain: str, one: Measured, other: Measured, at: Landscape, level: float
) -> Verdict:
    difference = mean_estimate(at.sharp_mass(other.shares) - at.sharp_mass(one.shares), level)
    reason = (
        "It is the bias of a larger step: dula at α_eff has the same."
        if not one.recipe.is_adjusted
        else "Both have law π, whatever the coupling."
    )
    return judged(
        f"{entropic} spends less time in sharp modes than {plain}.",
        difference,
        f"Time in sharp modes: {entropic} {at.sharp_mass(one.shares).mean():.3f}, {plain} "
        f"{at.sharp_mass(other.shares).mean():.3f}, difference {spoken(difference, signed=True)}. π itself "
        f"has {float(at.sharp_mass(at.law)):.3f}. {reason}",
        MASS_MARGIN,
    )


def _spread_verdict(
    entropic: str, plain: str, one: Measured, other: Measured, at: Landscape, level: float
) -> Verdict:
    difference = mean_estimate(at.spectrum_std(other.shares) - at.spectrum_std(one.shares), level)
    paper = PAPER_SPECTRUM[plain][0] - PAPER_SPECTRUM[entropic][0]
    return judged(
        f"{entropic} has a narrower eigenspectrum than {plain}.",
        difference,
        f"{plain} minus {entropic}: {spoken(difference, signed=True)}; the paper's single runs differ by "
        f"{paper:+.3f}. Exact: {float(at.spectrum_std(other.law)):.3f} and "
        f"{float(at.spectrum_std(one.law)):.3f}.",
        SPREAD_MARGIN,
    )


def _tilt_verdict(one: Measured, at: Landscape, level: float) -> Verdict:
    masses = at.flat_mass(one.shares)
    difference = mean_estimate(masses - at.flat_mass(at.law), level)
    return judged(
        "A sampler with a law that favours flat modes (roughness_tilted) spends more time in them than π.",
        difference,
        f"Time in flat modes {spoken(mean_estimate(masses, level))} against "
        f"{float(at.flat_mass(at.law)):.3f} under π, at E[U] {float((one.shares @ at.heights).mean()):.3f} "
        f"against {float(at.law @ at.heights):.3f}.",
        MASS_MARGIN,
    )


def published_verdicts(landscape: Landscape, measured: Mapping[str, Measured]) -> list[Verdict]:
    """The paper's comparison of single runs, judged by how often it comes out the same."""
    return judged_together(
        [
            partial(_single_runs, entropic, plain, measured[entropic], measured[plain], landscape)
            for entropic, plain in PAIRS
            if entropic in measured and plain in measured
        ]
    )


def _single_runs(
    entropic: str, plain: str, one: Measured, other: Measured, at: Landscape, level: float
) -> Verdict:
    first, second = (at.spectrum_std(part.windows) for part in (one, other))
    wins = share_estimate(int(np.sum(first < second)), len(first), level)
    paper, against = PAPER_SPECTRUM[entropic][0], PAPER_SPECTRUM[plain][0]
    return judged(
        f"A run of {entropic} shows a narrower eigenspectrum than a run of {plain} "
        f"({paper} against {against}).",
        _shifted(wins, -0.5),
        f"Of {len(first)} pairs of runs as long as the paper's, {entropic} is narrower in "
        f"{spoken(wins, 2)}; a coin would give 0.5. The paper's {paper} is at percentile "
        f"{percentile(first, paper):.0f} of {entropic}'s runs, {against} at "
        f"{percentile(second, against):.0f} of {plain}'s; exact values are "
        f"{float(at.spectrum_std(one.law)):.3f} and {float(at.spectrum_std(other.law)):.3f}.",
    )


def _shifted(estimate: Estimate, by: float) -> Estimate:
    low, high = (None if end is None else end + by for end in (estimate.low, estimate.high))
    return Estimate(value=estimate.value + by, low=low, high=high)
