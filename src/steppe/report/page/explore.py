"""The knobs of the explore section and the numbers the browser starts from."""

from typing import NamedTuple

from steppe.report import style
from steppe.targets.bernoulli import PAPER_MODES, PAPER_PROBABILITIES


class Knob(NamedTuple):
    """A slider: what it is called, what raising it does, and its range.

    Attributes
    ----------
    key
        Name of the slider in the page.
    symbol, name
        What it is called.
    effect
        What raising it does.
    low, high, start
        Range and where it begins.
    is_log
        Whether equal distances are equal factors.
    """

    key: str
    symbol: str
    name: str
    effect: str
    low: float
    high: float
    start: float
    is_log: bool


KNOBS = (
    Knob(
        "alpha", "α", "step size", "Larger: more bits flip in a step, and DULA strays further from π.",
        0.05, 10.0, 0.5, True,
    ),
    Knob(
        "center", "αₐ", "center step size", "Larger: the center follows faster, EDULA strays further.",
        0.01, 10.0, 0.1, True,
    ),
    Knob(
        "eta", "η", "coupling variance", "Larger: a looser tie to the center, and EDULA becomes DULA.",
        0.1, 10.0, 1.0, True,
    ),
    Knob(
        "lambda", "λ", "price on roughness", "Larger: more mass on flat modes, at the cost of E[U].",
        0.0, 5.0, 1.0, False,
    ),
)  # fmt: skip

# Bound on the total variation between EDULA's exact distribution and the one shown, at three settings;
# tested.
EDULA_CHECKED = ((0.5, 0.5, 0.5), (0.5, 1.0, 0.4), (0.2, 0.1, 0.1))  # α, α_a, η
EDULA_ERROR = 0.004

DISTRIBUTIONS = (
    ("dula", "DULA", "Steps along the gradient, never corrected. Exact for this target."),
    (
        "edula",
        "EDULA",
        (
            "DULA's distribution at 1/α_eff = 1/α − 1/(4η − αₐ). Exact only for quadratic U; here an "
            "approximation, "
            f"within {EDULA_ERROR} in TV where the exact distribution was computed."
        ),
    ),
    ("tilt", "Tilt", "exp(U − λR), R the mean change of U over the four flips. Exact."),
)


def list_explore_data() -> dict[str, object]:
    """Numbers for the browser."""
    return {
        "probabilities": PAPER_PROBABILITIES,
        "flat": ["".join(map(str, mode)) for mode in PAPER_MODES.flat],
        "sharp": ["".join(map(str, mode)) for mode in PAPER_MODES.sharp],
        "knobs": [knob._asdict() for knob in KNOBS],
        "colors": {
            "dula": style.SAMPLER_COLORS["dula"],
            "edula": style.SAMPLER_COLORS["edula"],
            "tilt": style.SAMPLER_COLORS["roughness_tilted"],
        },
    }
