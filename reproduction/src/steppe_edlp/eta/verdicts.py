"""The paper's statements about η, judged."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from steppe.intervals import mean_estimate
from steppe.results import Verdict
from steppe_edlp.judging import Question, judged, judged_together
from steppe_edlp.wording import spoken

if TYPE_CHECKING:
    from steppe_edlp.eta.report import Measured, Setting

One = Mapping[str, np.ndarray]
# Smallest share of the largest acceptance that counts as being on the plateau.
PLATEAU = 0.8
# Largest acceptance that counts as near 0.
NEAR_ZERO = 0.01
# Smallest difference of validation RMSE that would count.
RMSE_MARGIN = 0.005


def all_verdicts(setting: "Setting", measured: "Measured") -> list[Verdict]:
    """One per statement whose samplers were run."""

    def at(variance: float) -> int:
        return int(np.argmin(np.abs(setting.variances - variance)))

    questions: list[Question] = []
    if "edmala" in measured:
        acceptance = measured["edmala"]["acceptance"]
        questions += [partial(about, acceptance, at) for about in (_is_frozen, _is_on_plateau)]
    if "edula" in measured:
        edula = measured["edula"]
        questions += [partial(_breaks_down, edula, setting, at), partial(_needs_tuning, edula, at)]
    questions += [
        partial(_against_plain, entropic, plain, measured, at)
        for entropic, plain in (("edula", "dula"), ("edmala", "dmala"))
        if entropic in measured and plain in measured
    ]
    return judged_together(questions)


def _is_frozen(acceptance: np.ndarray, at: Callable[[float], int], level: float) -> Verdict:
    tiny = mean_estimate(acceptance[at(0.01)], level)
    return judged(
        "Acceptance of edmala is near 0 at tiny η.",
        mean_estimate(NEAR_ZERO - acceptance[at(0.01)], level),
        f"At η = 0.01 it is {spoken(tiny, 5)}; less than {NEAR_ZERO} counts as near 0.",
    )


def _is_on_plateau(acceptance: np.ndarray, at: Callable[[float], int], level: float) -> Verdict:
    here, there = acceptance[at(0.8)], acceptance[at(10.0)]
    return judged(
        "Acceptance of edmala is on its plateau from η = 0.8.",
        mean_estimate(here - PLATEAU * there, level),
        f"{spoken(mean_estimate(here, level))} at η = 0.8 against {spoken(mean_estimate(there, level))} at "
        f"η = 10; the plateau is what is above {PLATEAU} of the latter.",
    )


def _breaks_down(one: One, setting: "Setting", at: Callable[[float], int], level: float) -> Verdict:
    worse, more = (mean_estimate(one[key][at(0.01)] - one[key][at(0.1)], level) for key in ("rmse", "flips"))
    return judged(
        "edula breaks down at small η.",
        worse,
        f"Validation RMSE at η = 0.01 is higher than at 0.1 by {spoken(worse, 4)}, and it flips "
        f"{spoken(more, 0)} more of {setting.num_bits} bits per step: α_eff diverges at η = "
        f"{setting.threshold:g}, where bits become coins; below, most of them flip at every step.",
    )


def _needs_tuning(one: One, at: Callable[[float], int], level: float) -> Verdict:
    gain = mean_estimate(one["rmse"][at(5.0)] - one["rmse"][at(0.1)], level)
    return judged(
        "η has to be tuned: validation RMSE of edula at η = 0.1 is lower than at η = 4 or 5.",
        gain,
        f"RMSE at η = 5 minus at η = 0.1: {spoken(gain, 4, True)}. Less than {RMSE_MARGIN} would not count.",
        RMSE_MARGIN,
    )


def _against_plain(
    entropic: str, plain: str, measured: "Measured", at: Callable[[float], int], level: float
) -> Verdict:
    gain = mean_estimate(measured[plain]["rmse"][0] - measured[entropic]["rmse"][at(5.0)], level)
    return judged(
        f"On the plateau {entropic} predicts better than {plain}.",
        gain,
        f"Validation RMSE of {plain} minus that of {entropic} at η = 5: {spoken(gain, 4, True)}. Less than "
        f"{RMSE_MARGIN} would not count.",
        RMSE_MARGIN,
    )
