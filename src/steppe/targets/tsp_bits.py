"""Tours in bits, as the paper has them: a city is a corner of a cube, and its coordinates are its name.

A tour of `2**k` cities is `k · 2**k` bits, `k` for each place. Most bit strings name some city twice and are
no tour (`is_valid`); every single flip of a tour is one of them, so only samplers that flip several bits at
once move at all.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.domain import Binary
from steppe.domain.permutation import check_permutation
from steppe.errors import TargetError
from steppe.target import Target


class TourBits(Target):
    """Tours as bits. Random bits are hardly ever a tour: start chains at `starts(key, num_chains)`.

    Attributes
    ----------
    domain
        As many bits for each place as there are axes.
    weights
        Factor from the corner named by the row to that named by the column, in binary order of names.
    city_of_corner
        Number of the city at each corner.
    inverse_temperature
        `β`.
    """

    weights: Array
    city_of_corner: Array
    inverse_temperature: Array

    def log_density(self, position: Array) -> Array:
        """`U` at a position, whether it is a tour or not."""
        return -self.inverse_temperature * self.cost(position)

    def cost(self, position: Array) -> Array:
        """Length of a tour, or of every one of a stack: the sum of weighted distances round it."""
        weights, steps, _ = self._edges(position)
        return jnp.sum(weights * steps, axis=-1)

    def value_and_grad(self, position: Array) -> tuple[Array, Array]:
        """`U` and its gradient with the weights held fixed, as in the paper."""
        weights, steps, jumps = self._edges(position)
        # Two places that name one city are at distance zero; they pull each other nowhere.
        pulls = (weights / jnp.where(steps > 0, steps, 1))[:, None] * jumps
        gradient = self.inverse_temperature * (pulls - jnp.roll(pulls, 1, axis=0))
        return -self.inverse_temperature * jnp.sum(weights * steps), gradient.reshape(-1)

    def is_valid(self, position: Array) -> Array:
        """Whether every city is named once."""
        names = self.corners(position)
        is_same = names[..., :, None] == names[..., None, :]  # a sort is many times slower
        return jnp.sum(is_same, axis=(-2, -1)) == names.shape[-1]

    def corners(self, position: Array) -> Array:
        """Binary names of the corners in the order they are visited."""
        bits = self._places(position)
        powers = 2 ** np.arange(bits.shape[-1])[::-1]
        return jnp.sum(bits * powers, axis=-1).astype(jnp.int32)

    def _places(self, position: Array) -> Array:
        num_cities = self.weights.shape[-1]
        return position.reshape(*position.shape[:-1], num_cities, num_cities.bit_length() - 1)

    def _edges(self, position: Array) -> tuple[Array, Array, Array]:
        """Weight, distance and vector of every edge, from each place to the next."""
        places, names = self._places(position), self.corners(position)
        jumps = jnp.roll(places, -1, axis=-2) - places
        squared = jnp.sum(jumps**2, axis=-1)
        return self.weights[names, jnp.roll(names, -1, axis=-1)], jnp.sqrt(squared), jumps

    def starts(self, key: Array, num_chains: int) -> Array:
        """Positions of uniform random tours, for `sample(initial=...)`."""
        cities = jnp.tile(jnp.arange(len(self.city_of_corner)), (num_chains, 1))
        tours = np.asarray(jax.random.permutation(key, cities, axis=1, independent=True))
        return jnp.stack([self.position(tour) for tour in tours])

    @property
    def is_symmetric(self) -> bool:
        """Whether every way costs the same in both directions, so that a tour and its reverse are one."""
        return bool(jnp.all(self.weights == self.weights.T))

    def tour(self, position: ArrayLike) -> np.ndarray:
        """Cities in the order they are visited, for one position or a stack."""
        return np.asarray(self.city_of_corner)[np.asarray(self.corners(jnp.asarray(position)))]

    def position(self, tour: ArrayLike) -> Array:
        """Position of a tour, which must visit every city once."""
        cities = np.asarray(self.city_of_corner)
        order = check_permutation("position(tour)", tour, len(cities))
        names = np.argsort(cities)[order]
        num_bits = len(cities).bit_length() - 1
        return self.domain.from_levels((names[:, None] >> np.arange(num_bits)[::-1] & 1).reshape(-1))


def bit_target(coordinates: np.ndarray | None, weights: Array, inverse_temperature: Array) -> TourBits:
    """Make a target in bits from the corners and the factors between cities."""
    names = _names(coordinates)
    city_of_corner = np.argsort(names)
    return TourBits(
        domain=Binary(len(names) * (len(names).bit_length() - 1)),
        weights=jnp.asarray(np.asarray(weights)[np.ix_(city_of_corner, city_of_corner)]),
        city_of_corner=jnp.asarray(city_of_corner, jnp.int32),
        inverse_temperature=inverse_temperature,
    )


def _names(coordinates: np.ndarray | None) -> np.ndarray:
    """Binary numbers of the cities' corners."""
    if coordinates is None:
        raise TargetError(
            "`tsp(encoding='bits')` needs `coordinates=...`: the corners of a cube are the cities' names."
        )
    num_cities, num_bits = coordinates.shape
    names = coordinates @ 2.0 ** np.arange(num_bits)[::-1]
    are_corners = np.isin(coordinates, (0, 1)).all() and num_cities == 2**num_bits
    if not are_corners or len(set(names.tolist())) != num_cities:
        raise TargetError(
            "`tsp(encoding='bits')` needs every corner of a cube as a city, 2**k rows of k zeros and ones; "
            f"got coordinates of shape {coordinates.shape}. Use `encoding='permutation'`."
        )
    return names.astype(np.int64)


# The paper's eight cities A to H, and the factors from the row's city to the column's, as the authors' code
# has them.
PAPER_CITIES = "ABCDEFGH"
PAPER_CORNERS = ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 1, 1), (1, 0, 1), (1, 1, 1), (0, 0, 0))
PAPER_WEIGHTS = (
    (0.0, 2.0, 1.5, 1.2, 2.1, 2.3, 2.2, 2.4),
    (1.0, 0.0, 2.5, 2.0, 2.6, 2.5, 2.8, 2.9),
    (1.8, 2.2, 0.0, 1.6, 1.4, 1.6, 1.5, 1.7),
    (1.7, 1.3, 1.9, 0.0, 2.4, 2.3, 2.2, 2.6),
    (1.9, 2.1, 1.8, 1.5, 0.0, 2.5, 2.8, 2.6),
    (1.5, 1.9, 1.7, 1.7, 1.4, 0.0, 2.2, 2.3),
    (1.6, 1.7, 1.6, 1.8, 1.5, 1.4, 0.0, 2.5),
    (1.8, 1.5, 1.9, 2.0, 1.6, 1.5, 1.7, 0.0),
)
