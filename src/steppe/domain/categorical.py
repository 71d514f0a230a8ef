"""Sites whose levels are categories, embedded as one-hot rows."""

import math
from collections.abc import Iterable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain.base import Domain, SiteShape, show_sites, to_site_shape
from steppe.errors import DomainError
from steppe.validation import count


class Categorical(Domain):
    """Unordered levels as one-hot rows; a position has shape `(*sites, max_levels)`.

    Parameters
    ----------
    num_sites
        Number of sites, at least 1, or their shape.
    num_levels
        Number of levels, at least 2: one integer for all sites or one per site, in order. With one per site,
        rows are padded with zeros to the largest number; a padded column is never chosen.

    Examples
    --------
    >>> import steppe
    >>> domain = steppe.Categorical(4, 3)
    >>> domain.shape
    (4, 3)
    >>> domain.from_levels([2, 0, 1, 1]).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]
    """

    id = "categorical"

    @checked(DomainError)
    def __init__(self, num_sites: SiteShape, num_levels: int | Sequence[int]) -> None:
        site_shape = to_site_shape(num_sites)
        super().__init__(site_shape, _level_counts(math.prod(site_shape), num_levels))
        self.shape = (self.num_sites, self.max_levels)

    @property
    def squared_unit(self) -> float:
        return 2.0

    @property
    def coordinate_mask(self) -> np.ndarray | None:
        return self.level_mask if self.is_ragged else None

    def is_member(self, position: np.ndarray) -> np.ndarray:
        one_hot = np.isin(position, (0, 1)).all(axis=-1) & (position.sum(axis=-1) == 1)
        return one_hot & (position * ~self.level_mask == 0).all(axis=-1)

    def to_levels(self, position: Array) -> Array:
        return jnp.argmax(position, axis=-1).astype(self.level_dtype)

    def from_levels(self, levels: ArrayLike) -> Array:
        levels = self._check_levels(levels)
        return jax.nn.one_hot(levels, self.max_levels, dtype=jnp.result_type(float))

    def slopes(self, position: Array, gradient: Array) -> Array:
        return gradient - jnp.sum(gradient * position, axis=-1, keepdims=True)

    def squared_jumps(self, position: Array) -> Array:
        return 2 * (1 - position)

    def points(self, site: int) -> np.ndarray:
        return np.eye(self.num_levels[site], self.max_levels)

    def differs(self, first: Array, second: Array) -> Array:
        return jnp.any(first != second, axis=-1)

    def replace_sites(self, position: Array, sites: Array, levels: Array) -> Array:
        return position.at[sites].set(self.from_levels(levels))

    @property
    def squared_flip(self) -> float:
        return 2.0

    def flip_slopes(self, position: Array, gradient: Array) -> Array:
        return jnp.sum(gradient * (1 - 2 * position), axis=-1)

    def flip(self, position: Array, sites: Array) -> Array:
        return jnp.where(sites[..., None], 1 - position, position)

    def to_json(self) -> dict[str, object]:
        return {**super().to_json(), "num_levels": list(self.num_levels)}

    def __repr__(self) -> str:
        levels = list(self.num_levels) if self.is_ragged else self.max_levels
        return f"Categorical({show_sites(self.site_shape)}, {levels})"


def _level_counts(num_sites: int, num_levels: int | Sequence[int]) -> list[int]:
    if isinstance(num_levels, int | np.integer):
        num_levels = [int(num_levels)] * num_sites
    counts = list(num_levels) if isinstance(num_levels, Iterable) else [num_levels]
    if len(counts) != num_sites:
        raise DomainError(
            f"`num_levels` must be one integer or one per site; got {num_levels!r} for {num_sites} sites."
        )
    remedy = "A site with one level is a constant: leave it out."
    return [
        count(f"num_levels[{site}]", value, 2, error=DomainError, remedy=remedy)
        for site, value in enumerate(counts)
    ]
