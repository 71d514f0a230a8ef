"""Instances of TSPLIB: distances between cities, with the rounding the optima were published for.

Cities stand at their number, in whatever order a file lists them. Sizes are checked before anything is made
of that size, and what cannot be read is named with its line.
"""

import dataclasses
import re
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from steppe.arguments import checked
from steppe.datasets import catalogue
from steppe.datasets.card import Card
from steppe.datasets.download import File
from steppe.datasets.files import Lookup, read_number, read_text, text_of
from steppe.errors import DataError
from steppe.validation import shorten

ARCHIVE = File(
    "tsplib/tsplib95_symmetric_tsp.tar.xz",
    "679fd5e294d31acf06902b3ad52e631cc82e5287f59b6e73a3c4cdf66f36fe32",
    1_139_584,
)
SINGLE_FILES = "https://raw.githubusercontent.com/mastqe/tsplib/775541365dc3f7f3cd6faa8d0e206036d2c45e0e"

EARTH_RADIUS = 6378.388
TSPLIB_PI = 3.141592  # TSPLIB fixes these digits; optima depend on them

MAX_CITIES = 20_000  # 3 GB of distances
MAX_DEGREES = (90, 180)  # of latitude and longitude
ROWS_AT_A_TIME = 64
FORM = re.compile(r"(UPPER|LOWER)(_DIAG)?_(ROW|COL)")


@dataclasses.dataclass(frozen=True)
class TspInstance:
    r"""A travelling-salesman problem.

    Attributes
    ----------
    name
        As in the file.
    distances
        From row to column, cities × cities, zero on the diagonal.
    coordinates
        Cities × 2, or `None` where only distances are given.
    optimum
        Length of the shortest tour, where it is known.
    card
        Where it comes from.

    Examples
    --------
    >>> import pathlib, steppe, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "square.tsp")
    >>> lines = [
    ...     "NAME: square",
    ...     "TYPE: TSP",
    ...     "DIMENSION: 4",
    ...     "EDGE_WEIGHT_TYPE: EUC_2D",
    ...     "NODE_COORD_SECTION",
    ... ]
    >>> _ = file.write_text("\n".join([*lines, "1 0 0", "2 0 3", "3 4 3", "4 4 0", "EOF"]))
    >>> square = steppe.datasets.read_tsplib(file)
    >>> square.distances[0].astype(int).tolist()
    [0, 3, 5, 4]
    >>> steppe.targets.tsp(square).domain
    Permutation(4)
    """

    name: str
    distances: np.ndarray
    coordinates: np.ndarray | None
    optimum: float | None
    card: Card

    @property
    def num_cities(self) -> int:
        """Cities."""
        return len(self.distances)

    @property
    def is_symmetric(self) -> bool:
        """Whether every way costs the same in both directions."""
        return bool((self.distances == self.distances.T).all())


def load_tsplib(name: str, lookup: Lookup) -> TspInstance:
    """Load an instance by its name."""
    row = catalogue.row("tsplib", name)
    size, digest = int(row["bytes"]), row["sha256"]
    alternatives = (
        ARCHIVE._replace(member=f"tsp/{name}.tsp"),
        File(f"tsplib/{name}.tsp", digest, size, f"{SINGLE_FILES}/{name}.tsp"),
    )
    what = f"tsplib:{name}"
    found = lookup.find(what, alternatives)
    instance = _parse(what, text_of(what, found))
    optimum = float(row["optimum"]) if row["optimum"] else None
    card = dataclasses.replace(instance.card, name=what, sha256={found.path.name: found.sha256})
    return dataclasses.replace(instance, optimum=optimum, card=card)


@checked(DataError)
def read_tsplib(path: str | PathLike[str]) -> TspInstance:
    r"""Read a file in TSPLIB format, symmetric or not.

    Parameters
    ----------
    path
        The file. Coordinates (`EUC_2D`, `CEIL_2D`, `MAN_2D`, `MAX_2D`, `GEO`, `ATT`) and explicit
        weights in any row form are understood.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from steppe.datasets import read_tsplib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "three.tsp")
    >>> lines = ["NAME: three", "TYPE: TSP", "DIMENSION: 3", "EDGE_WEIGHT_TYPE: EUC_2D", "NODE_COORD_SECTION"]
    >>> _ = file.write_text("\n".join([*lines, "1 0 0", "2 3 4", "3 6 8", "EOF"]))
    >>> read_tsplib(file).distances.astype(int).tolist()
    [[0, 5, 10], [5, 0, 5], [10, 5, 0]]
    """
    return _parse(str(path), read_text(path))


class Sections(NamedTuple):
    """A file taken apart; every line of data as its number and its words."""

    fields: dict[str, str]
    data: dict[str, list[tuple[int, list[str]]]]


def _parse(what: str, text: str) -> TspInstance:
    fields, data = _take_apart(what, text)
    num_cities = _read_dimension(what, fields)
    kind = fields.get("EDGE_WEIGHT_TYPE")
    if kind is None:
        raise DataError(f"{what}: the specification EDGE_WEIGHT_TYPE is missing.")
    coordinates = None
    if "NODE_COORD_SECTION" in data:
        coordinates = _read_coordinates(what, data["NODE_COORD_SECTION"], num_cities)
    try:
        if kind == "EXPLICIT":
            form = fields.get("EDGE_WEIGHT_FORMAT", "")
            values = _read_weights(what, data.get("EDGE_WEIGHT_SECTION", []), num_cities, form)
            distances = explicit_distances(values, num_cities, form)
        elif coordinates is None:
            raise ValueError(f"it has no NODE_COORD_SECTION, which EDGE_WEIGHT_TYPE {kind} needs")
        else:
            distances = distances_between(coordinates, kind)
    except DataError:  # which names the file and the line
        raise
    except ValueError as error:
        raise DataError(f"{what} is not a TSPLIB instance that can be read: {error}.") from error
    name = fields.get("NAME") or Path(what).stem
    card = Card(
        name=name,
        source="TSPLIB95, G. Reinelt, Universität Heidelberg",
        licence="none stated; freely offered for research",
        sha256={},
        rows=num_cities,
        columns=num_cities,
        preprocessing=f"distances of type {kind} rounded as TSPLIB prescribes",
    )
    return TspInstance(name, distances, coordinates, None, card)


def _take_apart(what: str, text: str) -> Sections:
    """Split a file into its specifications and the lines of its sections."""
    fields: dict[str, str] = {}
    data: dict[str, list[tuple[int, list[str]]]] = {}
    section: list[tuple[int, list[str]]] | None = None
    for number, line in enumerate(text.replace("\r", "").split("\n"), 1):
        words = line.split()
        if not words or words == ["-1"]:  # ends a list of fixed edges
            continue
        if words[0].rstrip(":") == "EOF":
            break
        keyword = re.match(r"\s*([A-Z][A-Z0-9_]*)\s*(:?)(.*)", line)
        if keyword and keyword[1].endswith("_SECTION"):
            section = data.setdefault(keyword[1], [])
        elif keyword and keyword[2]:
            fields[keyword[1]], section = keyword[3].strip(), None
        elif section is None:
            raise DataError(f"{what}, line {number}: {shorten(line)} belongs to no section of TSPLIB.")
        else:
            section.append((number, words))
    return Sections(fields, data)


def _read_dimension(what: str, fields: dict[str, str]) -> int:
    """Number of cities, checked before anything is made of that size."""
    given = fields.get("DIMENSION")
    if given is None:
        raise DataError(f"{what}: the specification DIMENSION is missing.")
    if not re.fullmatch(r"[0-9]{1,9}", given) or not 1 <= int(given) <= MAX_CITIES:
        raise DataError(f"{what}: DIMENSION must be an integer from 1 to {MAX_CITIES}; got {shorten(given)}.")
    return int(given)


def _read_coordinates(what: str, lines: list[tuple[int, list[str]]], num_cities: int) -> np.ndarray:
    """Coordinates by the number of the city, in whatever order the file lists them."""
    if len(lines) != num_cities:
        raise DataError(f"{what}: {len(lines)} cities are listed, but DIMENSION says {num_cities}.")
    coordinates = np.full((num_cities, 2), np.nan)
    for number, words in lines:
        where = f"{what}, line {number}"
        if len(words) < 3 or not re.fullmatch(r"[0-9]{1,9}", words[0]):
            raise DataError(f"{where}: a city is its number and two coordinates; got {shorten(words)}.")
        city = int(words[0]) - 1
        if not 0 <= city < num_cities:
            raise DataError(f"{where}: city {words[0]} is outside 1 … {num_cities}.")
        if not np.isnan(coordinates[city, 0]):
            raise DataError(f"{where}: city {words[0]} is listed a second time.")
        coordinates[city] = [read_number(where, word) for word in words[1:3]]
    return coordinates


def _read_weights(what: str, lines: list[tuple[int, list[str]]], num_cities: int, form: str) -> np.ndarray:
    """Explicit weights, as many as the form has."""
    found = sum(len(words) for _, words in lines)
    wanted = _count_weights(num_cities, form)
    if found != wanted:
        raise ValueError(f"{form} of {num_cities} cities needs {wanted} weights; got {found}")
    return np.array(
        [read_number(f"{what}, line {number}", word) for number, words in lines for word in words]
    )


def _count_weights(num_cities: int, form: str) -> int:
    if form == "FULL_MATRIX":
        return num_cities**2
    match = FORM.fullmatch(form)
    if match is None:
        raise ValueError(f"EDGE_WEIGHT_FORMAT {form!r} is unknown")
    return num_cities * (num_cities + (1 if match[2] else -1)) // 2


def explicit_distances(values: np.ndarray, num_cities: int, form: str) -> np.ndarray:
    """Arrange explicit weights in a matrix.

    Parameters
    ----------
    values
        All numbers of the section in reading order.
    num_cities
        Rows of the matrix.
    form
        `FULL_MATRIX`, or `UPPER`/`LOWER`, with or without `_DIAG`, by `_ROW` or `_COL`.
    """
    if form == "FULL_MATRIX":
        matrix = values.reshape(num_cities, num_cities).copy()
        np.fill_diagonal(matrix, 0)  # asymmetric instances write a large number there
        return matrix
    match = FORM.fullmatch(form)
    if match is None or len(values) != _count_weights(num_cities, form):
        raise ValueError(f"{len(values)} weights do not make {num_cities} cities of the form {form!r}")
    # By columns, one triangle is read in the order of the rows of the other.
    is_upper = (match[1] == "UPPER") == (match[3] == "ROW")
    offset = 0 if match[2] else 1
    where = np.triu_indices(num_cities, offset) if is_upper else np.tril_indices(num_cities, -offset)
    matrix = np.zeros((num_cities, num_cities))
    matrix[where] = values
    matrix += matrix.T  # not the larger of both, which is 0 where a weight is negative
    np.fill_diagonal(matrix, 0)
    return matrix


def distances_between(coordinates: np.ndarray, kind: str) -> np.ndarray:
    """Compute distances by one of the functions of TSPLIB.

    Parameters
    ----------
    coordinates
        Cities × 2.
    kind
        The `EDGE_WEIGHT_TYPE`.
    """
    between = _FUNCTIONS.get(kind)
    if between is None:
        raise ValueError(f"EDGE_WEIGHT_TYPE {kind!r} is unknown")
    if kind == "GEO" and not (np.abs(coordinates) <= MAX_DEGREES).all():
        city = 1 + int((np.abs(coordinates) > MAX_DEGREES).any(axis=1).argmax())
        raise ValueError(
            f"city {city} lies at {coordinates[city - 1].tolist()}, and degrees of EDGE_WEIGHT_TYPE GEO are "
            "at most 90 of latitude and 180 of longitude"
        )
    distances = np.empty((len(coordinates),) * 2)
    for start in range(0, len(coordinates), ROWS_AT_A_TIME):  # temporaries stay small beside the matrix
        rows = slice(start, start + ROWS_AT_A_TIME)
        with np.errstate(over="ignore", invalid="ignore"):
            distances[rows] = between(coordinates[rows, None], coordinates[None])
    np.fill_diagonal(distances, 0)
    if not np.isfinite(distances).all():
        raise ValueError("cities are so far apart that a distance is not a finite number")
    return distances


def _round(values: np.ndarray) -> np.ndarray:
    return np.floor(values + 0.5)


def _straight(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.hypot(*np.moveaxis(a - b, -1, 0))


def _geographical(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Great-circle distances in whole kilometres from degrees.minutes."""
    (latitude_a, longitude_a), (latitude_b, longitude_b) = _radians(a), _radians(b)
    q1 = np.cos(longitude_a - longitude_b)
    q2 = np.cos(latitude_a - latitude_b)
    q3 = np.cos(latitude_a + latitude_b)
    angles = np.arccos(np.clip(0.5 * ((1 + q1) * q2 - (1 - q1) * q3), -1, 1))
    return np.floor(EARTH_RADIUS * angles + 1)


def _radians(coordinates: np.ndarray) -> np.ndarray:
    degrees = np.trunc(coordinates)
    return np.moveaxis(TSPLIB_PI * (degrees + 5 * (coordinates - degrees) / 3) / 180, -1, 0)


_FUNCTIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "EUC_2D": lambda a, b: _round(_straight(a, b)),
    "CEIL_2D": lambda a, b: np.ceil(_straight(a, b)),
    "MAN_2D": lambda a, b: _round(np.abs(a - b).sum(-1)),
    "MAX_2D": lambda a, b: _round(np.abs(a - b)).max(-1),
    "ATT": lambda a, b: np.ceil(np.sqrt(((a - b) ** 2).sum(-1) / 10)),
    "GEO": _geographical,
}
