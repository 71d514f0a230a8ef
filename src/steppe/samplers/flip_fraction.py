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
        `f` in (0, ½). With a lattice center: the fraction of a replica's sites that differ from the center.
        With a Gaussian center: the fraction of sites at which two replicas differ.
    center
        Kind of center, as in `robust_ensemble`.
    replicas
        `y`, which matters for a Gaussian center only, and is then at least 2.
    squared_unit
        Squared length of a flip: 1 for bits, 4 for spins, 2 for one-hot sites.

    Notes
    -----
    A real log-density holds the replicas together or apart; there, adapt to what is measured.

    Examples
    --------
    >>> import math, steppe
    >>> variance = steppe.coupling_variance_from_flip_fraction(0.1)
    >>> round(1 / (1 + math.exp(1 / (2 * variance))), 3)  # a bit differs from its center that often
    0.1
    """
    name = "coupling_variance_from_flip_fraction"
    remedy = "At ½ the replicas are not coupled at all."
    f = within(f"{name}(flip_fraction=...)", flip_fraction, "(0, 0.5)", remedy=remedy)
    if choice(f"{name}(center=...)", center, CenterKind) == "lattice":
        return squared_unit / (2 * log((1 - f) / f))
    replicas = count(f"{name}(replicas=...)", replicas)
    if replicas < 2:
        raise RecipeError(f"`{name}(center='gaussian')` compares two replicas; got replicas={replicas!r}.")
    return squared_unit * _gaussian_variance(f, replicas)


def _gaussian_variance(f: float, replicas: int) -> float:
    """Bisect: the fraction of differing pairs rises with the variance, from 0 to ½."""
    low, high = 1e-6, 1.0
    while _differing_pairs(high, replicas) < f:
        high *= 2
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _differing_pairs(middle, replicas) < f else (low, middle)
    return 0.5 * (low + high)


def _differing_pairs(variance: float, replicas: int) -> float:
    """Fraction of differing pairs at one site of unit flip, the Gaussian center integrated out.

    With `m` of `y` replicas up, `m (y − m)` pairs differ, each at a cost of `1/(2ηy)`.
    """
    pairs = [m * (replicas - m) for m in range(replicas + 1)]
    weights = [comb(replicas, m) * exp(-n / (2 * variance * replicas)) for m, n in enumerate(pairs)]
    mean = sum(w * n for w, n in zip(weights, pairs, strict=True)) / sum(weights)
    return mean / comb(replicas, 2)
