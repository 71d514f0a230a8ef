"""What is claimed of flatness, judged."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from steppe.intervals import mean_estimate
from steppe.results import Estimate, Verdict
from steppe_edlp.judging import Question, judged
from steppe_edlp.occupancy import Landscape
from steppe_edlp.wording import spoken
from steppe_edlp.work import Content

if TYPE_CHECKING:
    from steppe_edlp.flatness.report import Solutions

# Smallest differences that would count.
MASS_MARGIN, ERROR_MARGIN = 0.02, 0.005
PAIRS = (("robust_ensemble", "dmala"), ("robust_ensemble", "edmala"), ("edmala", "dmala"))


def about_four_bits(landscape: Landscape, found: Content) -> list[Question]:
    """Where the strongest tilt spends its time."""
    return [partial(about, landscape, found) for about in (_is_in_flat_modes, _is_not_in_sharp_modes)]


def _is_in_flat_modes(landscape: Landscape, found: Content, level: float) -> Verdict:
    strongest, tempered = found["shares"][-1], found["tempered"][-1]
    flat = mean_estimate(landscape.flat_mass(strongest) - landscape.flat_mass(tempered), level)
    return judged(
        "roughness_tilted spends more time in flat modes than tempering of the same E[U].",
        flat,
        f"On the four bits at λ = 4: {spoken(flat, signed=True)} more time, at E[U] = "
        f"{float((strongest @ landscape.heights).mean()):.3f}; the exact law of the tilt has "
        f"{float(landscape.flat_mass(found['laws'][-1])):.3f}, tempering "
        f"{float(landscape.flat_mass(tempered)):.3f}.",
        MASS_MARGIN,
    )


def _is_not_in_sharp_modes(landscape: Landscape, found: Content, level: float) -> Verdict:
    strongest, tempered = found["shares"][-1], found["tempered"][-1]
    sharp = mean_estimate(landscape.sharp_mass(tempered) - landscape.sharp_mass(strongest), level)
    return judged(
        "roughness_tilted spends less time in sharp modes than tempering of the same E[U].",
        sharp,
        f"On the four bits at λ = 4: {spoken(sharp, signed=True)} less time.",
        MASS_MARGIN,
    )


def of_mixture(found: Content) -> Verdict:
    """What flat mass costs the tilt and tempering in height, by enumeration of ten bits."""
    masses, heights = found["tempered"][np.argsort(found["tempered"][:, 0])].T
    mass, kept = found["tilted"][3]
    gain = float(kept - np.interp(mass, masses, heights))
    return judged(
        "At equal mass of the flat component the tilt keeps more height than tempering.",
        Estimate(value=gain),
        f"On ten bits at λ = 0.5, flat mass {mass:.3f}: E[U] is higher by {gain:.2f} (exact).",
    )


def about_perceptrons(solutions: "Mapping[str, Solutions]", flips: Sequence[int]) -> list[Question]:
    """Who generalises, and who is flat, at equal budget."""
    questions: list[Question] = []
    for better, other in PAIRS:
        if better in solutions and other in solutions:
            pair = (better, other, solutions[better], solutions[other])
            questions += [partial(_generalises, *pair), partial(_is_flatter, *pair, flips)]
    return questions


def _generalises(better: str, other: str, one: "Solutions", two: "Solutions", level: float) -> Verdict:
    gain = mean_estimate(two.best(two.test_error) - one.best(one.test_error), level)
    heights = one.best(one.log_density).mean(), two.best(two.log_density).mean()
    return judged(
        f"A solution of {better} generalises better than one of {other}.",
        gain,
        f"Test error lower by {spoken(gain, 4, signed=True)}: {one.best(one.test_error).mean():.4f} against "
        f"{two.best(two.test_error).mean():.4f}, at U = {heights[0]:.2f} against {heights[1]:.2f}. Less than "
        f"{ERROR_MARGIN} would not count.",
        ERROR_MARGIN,
    )


def _is_flatter(
    better: str, other: str, one: "Solutions", two: "Solutions", flips: Sequence[int], level: float
) -> Verdict:
    place = len(flips) // 2

    def rise(solutions: "Solutions") -> np.ndarray:
        errors = solutions.best(solutions.errors_after_flips)[:, place]
        return errors - solutions.best(solutions.train_errors)

    fewer = mean_estimate(rise(two) - rise(one), level)
    return judged(
        f"A solution of {better} is flatter than one of {other}.",
        fewer,
        f"{flips[place]} random flips add {rise(one).mean():.1f} training errors against "
        f"{rise(two).mean():.1f}: {spoken(fewer, 2, signed=True)} fewer.",
    )
