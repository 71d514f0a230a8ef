"""Several named discrete variables as the sites of one domain, and back."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.domain import Binary, Categorical, Domain, Ordinal, Variable
from steppe.errors import TargetError
from steppe.run.result import Run
from steppe.target import LogDensity, ValueAndGrad, WrappedTarget


class Site(NamedTuple):
    """One named variable: integers in a box.

    Attributes
    ----------
    name
        What the model calls it.
    shape
        Shape of its value.
    low, high
        Least and largest value of every element, flat.
    is_ordered
        Whether neighbouring integers are alike; categories are not.
    """

    name: str
    shape: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    is_ordered: bool


class Packing(NamedTuple):
    """The sites of a model, one after another."""

    sites: tuple[Site, ...]

    @property
    def domain(self) -> Domain:
        """Bits where all elements have two values, ordered levels where all are alike, else categories."""
        counts = self._high - self._low + 1
        if (counts == 2).all():
            domain = Binary(len(counts))
        elif all(site.is_ordered for site in self.sites) and (counts == counts[0]).all():
            domain = Ordinal(len(counts), int(counts[0]))
        else:
            domain = Categorical(len(counts), counts.tolist())
        return domain.with_variables(*(Variable(site.name, site.shape, site.low) for site in self.sites))

    def check_differentiable(self) -> None:
        """Refuse to differentiate with respect to what indexes an array."""
        category = next((site.name for site in self.sites if not site.is_ordered), None)
        if category is not None:
            raise TargetError(
                f"Site {category!r} is categorical: its value is an index, which cannot be a real number, so "
                "there is no gradient. Use `gradient='differences'`."
            )

    def unpack(self, position: Array) -> dict[str, Array]:
        """Values by name, as integers; leading axes are a batch."""
        return self.from_levels(self.domain.to_levels(position))

    def unpack_real(self, position: Array) -> dict[str, Array]:
        """The same as real numbers that can be differentiated with respect to the position."""
        domain = self.domain
        if isinstance(domain, Categorical):
            position = position @ jnp.arange(domain.max_levels, dtype=position.dtype)
        return self._split(position + self._low.astype(position.dtype))

    def from_levels(self, levels: ArrayLike) -> dict[str, Array]:
        """Values by name from the levels of sites."""
        return self._split(jnp.asarray(levels, jnp.int32) + self._low)

    def pack(self, values: Mapping[str, ArrayLike]) -> Array:
        """Position with the given values."""
        flat = [jnp.reshape(jnp.asarray(values[site.name]), (-1,)) for site in self.sites]
        return self.domain.from_levels(jnp.concatenate(flat).astype(jnp.int32) - self._low)

    def _split(self, flat: Array) -> dict[str, Array]:
        ends = np.cumsum([len(site.low) for site in self.sites])
        parts = jnp.split(flat, ends[:-1], axis=-1)
        return {
            site.name: part.reshape((*part.shape[:-1], *site.shape))
            for site, part in zip(self.sites, parts, strict=True)
        }

    @property
    def _low(self) -> np.ndarray:
        return np.concatenate([np.asarray(site.low, np.int32) for site in self.sites])

    @property
    def _high(self) -> np.ndarray:
        return np.concatenate([np.asarray(site.high, np.int32) for site in self.sites])


class PackedTarget(WrappedTarget):
    """A target whose sites have names in the model it was made from."""

    packing: Packing = eqx.field(static=True)

    def __init__(
        self, log_density: LogDensity, packing: Packing, value_and_grad: ValueAndGrad | None
    ) -> None:
        self.packing = packing
        super().__init__(log_density, packing.domain, value_and_grad=value_and_grad)

    def unpack(self, positions: Array) -> dict[str, Array]:
        """Values of the model's variables by name; leading axes are a batch."""
        return self.packing.unpack(positions)

    def draws(self, run: Run) -> dict[str, np.ndarray]:
        """Draws of a run by name, with axes (chain, draw, …) in front."""
        return {name: np.asarray(v) for name, v in self.packing.from_levels(run.trace.levels()).items()}


def site(name: str, shape: Sequence[int], low: ArrayLike, high: ArrayLike, *, is_ordered: bool) -> Site:
    """Make a site from bounds of any shape that fits, refusing elements without a choice."""
    low, high = (np.broadcast_to(np.asarray(bound), tuple(shape)).ravel() for bound in (low, high))
    if (high <= low).any():
        index = int(np.argmax(high <= low))
        raise TargetError(
            f"Site {name!r} can only be {low[index]} at element {index}. A variable with one value is a "
            "constant: write it as one, or condition on it."
        )
    return Site(name, tuple(shape), tuple(low.tolist()), tuple(high.tolist()), is_ordered)
