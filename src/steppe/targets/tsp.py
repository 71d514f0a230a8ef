"""The travelling salesman: tours through cities, the shorter the likelier.

`U = −β · cost`, and the cost of a tour is the sum of its edges, the one back to the start included. Lengths
may depend on the direction.
"""

from typing import Literal, Protocol, cast, get_args, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain import Permutation
from steppe.domain.permutation import check_permutation
from steppe.errors import TargetError
from steppe.pytree import is_concrete
from steppe.target import Target
from steppe.target.picture import Picture, picture_tours
from steppe.targets.checks import choice, positive, real_array, square_matrix, zeros
from steppe.targets.cycles import count_new_edges, find_successors, rotate_to_city_0
from steppe.targets.tour_moves import CHANGES
from steppe.targets.tsp_bits import PAPER_CORNERS, PAPER_WEIGHTS, TourBits, bit_target

Encoding = Literal["permutation", "bits"]


@runtime_checkable
class Roads(Protocol):
    """A loaded instance: whatever has distances between cities."""

    @property
    def distances(self) -> np.ndarray: ...  # noqa: D102


MIN_CITIES = 3


class Tsp(Target):
    """Tours as permutations of cities.

    Attributes
    ----------
    domain
        Permutations of the cities.
    lengths
        `L[a, b]` from city `a` to city `b`, zero on the diagonal.
    inverse_temperature
        `β`.
    """

    lengths: Array
    inverse_temperature: Array

    def cost(self, position: Array) -> Array:
        """Length of a tour, or of every one of a stack."""
        order = position.astype(jnp.int32)
        return jnp.sum(self.lengths[order, jnp.roll(order, -1, axis=-1)], axis=-1)

    def log_density(self, position: Array) -> Array:
        """`U` at a position."""
        return -self.inverse_temperature * self.cost(position)

    def value_and_grad(self, position: Array) -> tuple[Array, Array]:
        """`U`, and zero: nothing lies between two permutations."""
        return -self.inverse_temperature * self.cost(position), jnp.zeros_like(position)

    def move_differences(self, kind: str, position: Array) -> Array:
        """Exact `U(after) − U(before)` of all `"swap"`, `"two_opt"` or `"insert"` moves, in `O(n²)`."""
        return -self.inverse_temperature * CHANGES[kind](self.lengths, position.astype(jnp.int32))

    def canonical(self, position: Array) -> Array:
        """The same cycle from city 0; where lengths are symmetric also in one direction."""
        return rotate_to_city_0(jnp, position, self._is_directed)

    def distance(self, first: Array, second: Array) -> Array:
        """Number of edges of the first tour that the second does not have."""
        after, others_after, others_before = (
            find_successors(jnp, tour.astype(jnp.int32)) for tour in (first, second, second[::-1])
        )
        return count_new_edges(jnp, after, others_after, others_before, self._is_directed)

    @property
    def is_symmetric(self) -> bool:
        """Whether every way costs the same in both directions, so that a tour and its reverse are one."""
        return not self._is_directed

    @property
    def _is_directed(self) -> Array:
        return jnp.any(self.lengths != self.lengths.T)

    @property
    def picture(self) -> Picture | None:
        """A map made from the lengths."""
        return picture_tours(np.asarray(self.lengths))

    def starts(self, key: Array, num_chains: int) -> Array:
        """Positions of uniform random tours, for `sample(initial=...)`; the default start is the same."""
        return self.domain.draw(key, (num_chains,))

    def tour(self, position: ArrayLike) -> np.ndarray:
        """Cities in the order they are visited, for one position or a stack."""
        return np.asarray(position).astype(np.int64)

    def position(self, tour: ArrayLike) -> Array:
        """Position of a tour, which must visit every city once."""
        return self.domain.from_levels(check_permutation("position(tour)", tour, self.domain.num_sites))


@checked(TargetError)
def tsp(
    distances: ArrayLike | Roads | None = None,
    *,
    coordinates: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    encoding: Encoding = "permutation",
    inverse_temperature: ArrayLike = 1.0,
) -> Tsp | TourBits:
    """Travelling salesman problem, `π ∝ exp(−β · length of the tour)`.

    Parameters
    ----------
    distances
        Cities × cities, from row to column; need not be symmetric. The diagonal is not looked at. An
        instance with such a field, as `steppe.datasets.load("tsplib:berlin52")` gives, will do.
    coordinates
        Instead of distances: one row per city; distances are Euclidean.
    weights
        Factors on the distances, cities × cities, from row to column.
    encoding
        `"permutation"`: any number of cities, on a `Permutation` domain, for `informed_permutation` and
        `uniform_permutation`. `"bits"`: as in the paper, for `2**k` cities at the corners of a cube, whose
        coordinates are their names in bits; for samplers that change many bits at once.
    inverse_temperature
        `β > 0`.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.tsp(coordinates=[[0, 0], [0, 1], [1, 1], [1, 0]])
    >>> best = steppe.anneal(target, key=jax.random.key(0), num_steps=64).best
    >>> float(target.cost(best))  # around the square
    4.0
    """
    places = None if coordinates is None else _coordinates(coordinates)
    lengths = _lengths(distances, places, weights)
    beta = positive("tsp(inverse_temperature=...)", inverse_temperature)
    if choice("tsp(encoding=...)", encoding, get_args(Encoding)) == "bits":
        return bit_target(places, _factors(weights, len(lengths)), beta)
    return Tsp(Permutation(len(lengths)), lengths, beta)


@checked(TargetError)
def tsp_paper(encoding: Encoding = "bits", *, inverse_temperature: ArrayLike = 1.0) -> Tsp | TourBits:
    """The paper's eight cities: corners of a cube, with 56 factors that depend on the direction.

    The shortest tour is A-D-G-F-E-C-H-B (cities 0 to 7 are A to H) with cost 13.194113. In bits, chains must
    start at a tour, and a proposal without a flip counts as accepted, so that the step size is better set
    than adapted: `sample(target, dmala(0.15), initial=target.starts(key, 4), adapt=False, ...)`.

    Parameters
    ----------
    encoding, inverse_temperature
        As in `tsp`.

    Examples
    --------
    >>> from steppe.targets import tsp_paper
    >>> target = tsp_paper("permutation")
    >>> round(float(target.cost(target.position([0, 3, 6, 5, 4, 2, 7, 1]))), 4)  # A-D-G-F-E-C-H-B
    13.1941
    """
    return tsp(
        coordinates=np.asarray(PAPER_CORNERS),
        weights=np.asarray(PAPER_WEIGHTS),
        encoding=encoding,
        inverse_temperature=inverse_temperature,
    )


def _lengths(
    distances: ArrayLike | Roads | None, coordinates: np.ndarray | None, weights: ArrayLike | None
) -> Array:
    if (distances is None) == (coordinates is None):
        raise TargetError("`tsp` needs either `distances` or `coordinates=...`, one of them.")
    if distances is not None:
        given = distances.distances if isinstance(distances, Roads) else distances
        _check_roads(given)
        matrix = square_matrix("tsp(distances=...)", given)
        _check_not_negative("distances", matrix)
    else:
        assert coordinates is not None
        matrix = cast("Array", np.linalg.norm(coordinates[:, None] - coordinates[None], axis=-1))
    if len(matrix) < MIN_CITIES:
        raise TargetError(f"`tsp` needs at least {MIN_CITIES} cities; got {len(matrix)}.")
    return _factors(weights, len(matrix)) * matrix * (1 - np.eye(len(matrix), dtype=matrix.dtype))


def _coordinates(coordinates: ArrayLike) -> np.ndarray:
    return np.asarray(real_array("tsp(coordinates=...)", coordinates, ndim=2))


def _factors(weights: ArrayLike | None, num_cities: int) -> Array:
    if weights is None:
        return 1 + zeros(num_cities, num_cities)
    factors = square_matrix("tsp(weights=...)", weights)
    if len(factors) != num_cities:
        raise TargetError(
            f"`tsp(weights=...)` must be {num_cities} × {num_cities}, one factor per pair of cities; got "
            f"shape {factors.shape}."
        )
    _check_not_negative("weights", factors)
    return factors


def _check_roads(distances: ArrayLike) -> None:
    """Say what an infinite distance means here: cities without a road between them."""
    if is_concrete(distances):
        array = np.asarray(distances)
        missing = np.argwhere(np.isposinf(array)) if array.dtype.kind == "f" and array.ndim == 2 else ()
        missing = [pair for pair in np.asarray(missing).tolist() if pair[0] != pair[1]]
        if missing:
            raise TargetError(
                f"`tsp(distances=...)` has no road from city {missing[0][0]} to city {missing[0][1]} (inf). "
                "Every pair needs a length: give shortest paths, or a length no good tour can afford."
            )


def _check_not_negative(name: str, matrix: Array) -> None:
    if isinstance(matrix, np.ndarray) and (matrix < 0).any():
        row, column = np.argwhere(matrix < 0)[0].tolist()
        raise TargetError(
            f"`tsp({name}=...)` must not be negative; got {matrix[row, column]:g} from city {row} to city "
            f"{column}."
        )
