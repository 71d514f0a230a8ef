"""Real coordinates beside discrete sites: the continuous part of a mixed model."""

import math
from typing import ClassVar

from steppe.arguments import checked
from steppe.domain.base import SiteShape, Variable, show_sites, to_site_shape
from steppe.errors import DomainError
from steppe.validation import positive


class Real:
    """Real coordinates, as a part of a `Product` beside discrete ones.

    They run over all real numbers: write a positive number as the exponential of a coordinate and add the
    logarithm of the derivative to the log-density. Only the block of `steppe.mixed` moves them.

    Parameters
    ----------
    shape
        Number of coordinates, at least 1, or their shape.
    scale
        How large a typical coordinate is: chains start at `scale` times a standard normal, and steps are in
        units of it.

    Examples
    --------
    >>> import steppe
    >>> steppe.Product(z=steppe.Binary(5), mu=steppe.Real(2, scale=3.0))
    Product(z=Binary(5), mu=Real(2, scale=3))
    """

    id: ClassVar[str] = "real"

    @checked(DomainError)
    def __init__(self, shape: SiteShape, scale: float = 1.0) -> None:
        self.shape = to_site_shape(shape)
        self.scale: float = positive("Real(scale=...)", scale, error=DomainError)

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return math.prod(self.shape)

    def to_json(self) -> dict[str, object]:
        """Id and parameters, as they stand in files."""
        return {"id": self.id, "shape": list(self.shape), "scale": self.scale}

    def name(self, name: str) -> Variable:
        """Return the variable that the coordinates are."""
        return Variable(name, self.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Real) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self.shape, self.scale))

    def __repr__(self) -> str:
        scale = "" if self.scale == 1 else f", scale={self.scale:g}"
        return f"Real({show_sites(self.shape)}{scale})"
