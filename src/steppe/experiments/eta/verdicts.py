"""The paper's statements about η, judged."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from steppe.experiments.judging import judged
from steppe.experiments.wording import spoken
from steppe.intervals import mean_estimate
from steppe.results import Verdict

if TYPE_CHECKING:
    from steppe.experiments.eta.report import Measured, Setting

One = Mapping[str, np.ndarray]
# Smallest share of the largest acceptance that counts as being on the plateau.
PLATEAU = 0.8
# Smallest difference of validation RMSE that would count.
RMSE_MARGIN = 0.005


def all_verdicts(setting: "Setting", measured: "Measured") -> list[Verdict]:
    """One per statement whose samplers were run."""

    def at(variance: float) -> int:
        return int(np.argmin(np.abs(setting.variances - variance)))

    verdicts = []
    if "edmala" in measured:
        verdicts += _of_edmala(measured["edmala"], at)
    if "edula" in measured:
        verdicts += _of_edula(measured["edula"], setting, at)
    verdicts += [
        _against_plain(entropic, plain, measured, at)
        for entropic, plain in (("edula", "dula"), ("edmala", "dmala"))
        if entropic in measured and plain in measured
    ]
    return verdicts


def _of_edmala(one: One, at: Callable[[float], int]) -> list[Verdict]:
    acceptance = one["acceptance"]
    tiny = mean_estimate(acceptance[at(0.01)])
    # On the plateau from 0.8 on: above a share of the largest acceptance there is.
    excess = mean_estimate(acceptance[at(0.8)] - PLATEAU * acceptance[at(10.0)])
    return [
        judged(
            "Acceptance of edmala is near 0 at tiny η.",
            mean_estimate(0.01 - acceptance[at(0.01)]),
            f"At η = 0.01 it is {spoken(tiny, 5)}; less than 0.01 counts as near 0.",
        ),
        judged(
            "Acceptance of edmala is on its plateau from η = 0.8.",
            excess,
            f"{spoken(mean_estimate(acceptance[at(0.8)]))} at η = 0.8 against "
            f"{spoken(mean_estimate(acceptance[at(10.0)]))} at η = 10; the plateau is what is above "
            f"{PLATEAU} of the latter.",
        ),
    ]


def _of_edula(one: One, setting: "Setting", at: Callable[[float], int]) -> list[Verdict]:
    rmse, flips = one["rmse"], one["flips"]
    worse = mean_estimate(rmse[at(0.01)] - rmse[at(0.1)])
    more = mean_estimate(flips[at(0.01)] - flips[at(0.1)])
    return [
        judged(
            "edula breaks down at small η.",
            worse,
            f"Validation RMSE at η = 0.01 is higher than at 0.1 by {spoken(worse, 4)}, and it flips "
            f"{spoken(more, 0)} more of {setting.num_bits} bits per step: α_eff diverges at η = "
            f"{setting.threshold:g}, where bits become coins; below, most of them flip at every step.",
        ),
        judged(
            "η has to be tuned: validation RMSE of edula at η = 0.1 is lower than at η = 4 or 5.",
            mean_estimate(rmse[at(5.0)] - rmse[at(0.1)]),
            "RMSE at η = 5 minus at η = 0.1: "
            f"{spoken(mean_estimate(rmse[at(5.0)] - rmse[at(0.1)]), 4, True)}. Less than {RMSE_MARGIN} would "
            "not count.",
            RMSE_MARGIN,
        ),
    ]


def _against_plain(entropic: str, plain: str, measured: "Measured", at: Callable[[float], int]) -> Verdict:
    gain = mean_estimate(measured[plain]["rmse"][0] - measured[entropic]["rmse"][at(5.0)])
    return judged(
        f"On the plateau {entropic} predicts better than {plain}.",
        gain,
        f"Validation RMSE of {plain} minus that of {entropic} at η = 5: {spoken(gain, 4, True)}. Less than "
        f"{RMSE_MARGIN} would not count.",
        RMSE_MARGIN,
    )
