"""From "how many sites may differ" to a coupling variance."""

from math import comb, exp, log
from typing import Literal

from steppe.arguments import checked
from steppe.errors import RecipeError
from steppe.validation import choice, count, within

CenterKind = Literal["gaussian", "lattice"]


@checked(RecipeError, replicas="[1, inf)", squared_unit="(0, inf)")
def coupling_variance_from_flip_fraction(
    flip_fraction: float, *, center: CenterKind = "lattice", replicas: int = 2, squared_unit: float = 1.0
) -> float:
    """Return the `η` at which a stated fraction of two-level sites differs on flat ground.

    Parameters
    ----------
    flip_fraction
        `f` in (0, ½). With a lattice center: the fraction of a copy's sites that differ from the center. With
        a Gaussian center: the fraction of sites at which two copies differ.
    center
        Kind of center, as in `robust_ensemble`.
    replicas
        `y`, which matters for a Gaussian center only, and is then at least 2.
    squared_unit
        Squared length of a flip: 1 for bits, 4 for spins, 2 for one-hot sites.

    Notes
    -----
    A real landscape holds the copies together or apart; there, adapt to what is measured.
    """
    name = "coupling_variance_from_flip_fraction"
    remedy = "At ½ the copies are not coupled at all."
    f = within(f"{name}(flip_fraction=...)", flip_fraction, "(0, 0.5)", remedy=remedy)
    if choice(f"{name}(center=...)", center, CenterKind) == "lattice":
        return squared_unit / (2 * log((1 - f) / f))
    copies = count(f"{name}(replicas=...)", replicas)
    if copies < 2:
        raise RecipeError(f"`{name}(center='gaussian')` compares two copies; got replicas={replicas!r}.")
    return squared_unit * _gaussian_variance(f, copies)


def _gaussian_variance(f: float, copies: int) -> float:
    """Bisect: the fraction of differing pairs rises with the variance, from 0 to ½."""
    low, high = 1e-6, 1.0
    while _differing_pairs(high, copies) < f:
        high *= 2
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _differing_pairs(middle, copies) < f else (low, middle)
    return 0.5 * (low + high)


def _differing_pairs(variance: float, copies: int) -> float:
    """Fraction of differing pairs at one site of unit flip, the Gaussian center integrated out.

    With `m` of `y` copies up, `m (y − m)` pairs differ, each at a price of `1/(2ηy)`.
    """
    pairs = [m * (copies - m) for m in range(copies + 1)]
    weights = [comb(copies, m) * exp(-n / (2 * variance * copies)) for m, n in enumerate(pairs)]
    mean = sum(w * n for w, n in zip(weights, pairs, strict=True)) / sum(weights)
    return mean / comb(copies, 2)
