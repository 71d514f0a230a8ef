"""Instances of TSPLIB: distances between cities, with the rounding the optima were published for.

`vrplib` reads the specification and the coordinates. Distances are computed here, because it neither
rounds as TSPLIB prescribes nor knows geographical ones and most forms of explicit weights.
"""

import dataclasses
import re
from collections.abc import Callable
from os import PathLike
from pathlib import Path

import numpy as np

from steppe.datasets import catalogue
from steppe.datasets.card import Card
from steppe.datasets.download import File
from steppe.datasets.files import Lookup, read_text, text_of
from steppe.errors import DataError
from steppe.optional import require

ARCHIVE = File(
    "tsplib/tsplib95_symmetric_tsp.tar.xz",
    "679fd5e294d31acf06902b3ad52e631cc82e5287f59b6e73a3c4cdf66f36fe32",
    1_139_584,
)
SINGLE_FILES = "https://raw.githubusercontent.com/mastqe/tsplib/775541365dc3f7f3cd6faa8d0e206036d2c45e0e"

EARTH_RADIUS = 6378.388
TSPLIB_PI = 3.141592  # TSPLIB fixes these digits; optima depend on them

MAX_CITIES = 20_000  # 3 GB of distances
ROWS_AT_A_TIME = 64


@dataclasses.dataclass(frozen=True)
class TspInstance:
    """A travelling-salesman problem.

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


def read_tsplib(path: str | PathLike[str]) -> TspInstance:
    """Read a file in TSPLIB format, symmetric or not.

    Parameters
    ----------
    path
        The file. Coordinates (`EUC_2D`, `CEIL_2D`, `MAN_2D`, `MAX_2D`, `GEO`, `ATT`) and explicit
        weights in any row form are understood.
    """
    return _parse(str(path), read_text(path))


def _parse(what: str, text: str) -> TspInstance:
    vrplib = require("vrplib.parse", "data", "Reading TSPLIB files")
    rest, weights = _without_weights(text)
    try:
        fields = vrplib.parse_vrplib(rest, compute_edge_weights=False)
        num_cities = int(fields["dimension"])
        coordinates = fields.get("node_coord")
        if coordinates is not None:
            coordinates = np.asarray(coordinates, float)[:, :2]
        kind, form = str(fields["edge_weight_type"]), str(fields.get("edge_weight_format", ""))
        if kind == "EXPLICIT":
            distances = explicit_distances(np.asarray(weights.split(), float), num_cities, form)
        else:
            distances = distances_between(np.asarray(coordinates, float), kind)
        if distances.shape != (num_cities, num_cities):
            raise ValueError(f"{len(distances)} cities are listed, but DIMENSION says {num_cities}")
    except KeyError as error:
        raise DataError(f"{what}: the specification {str(error).upper()} is missing.") from error
    except (ValueError, TypeError, IndexError, RuntimeError) as error:
        raise DataError(f"{what} is not a TSPLIB instance that can be read: {error}.") from error
    name = str(fields.get("name", Path(what).stem))
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


def _without_weights(text: str) -> tuple[str, str]:
    """Split off the explicit weights, and make the rest uniform enough for a strict parser."""
    lines = [line.strip() for line in text.replace("\r", "").splitlines() if line.strip()]
    rest, weights, is_weight = [], [], False
    for line in lines:
        if re.match(r"[A-Z_]+_SECTION", line):
            is_weight = line.startswith("EDGE_WEIGHT_SECTION")
        if line.startswith("EOF"):
            break
        if line == "-1":  # ends a list of fixed edges
            continue
        if not is_weight:
            rest.append(line)
        elif not line.startswith("EDGE_WEIGHT_SECTION"):
            weights.append(line)
    return "\n".join((*rest, "EOF")), " ".join(weights)


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
    match = re.fullmatch(r"(UPPER|LOWER)(_DIAG)?_(ROW|COL)", form)
    if match is None:
        raise ValueError(f"EDGE_WEIGHT_FORMAT {form!r} is unknown")
    # By columns, one triangle is read in the order of the rows of the other.
    is_upper = (match[1] == "UPPER") == (match[3] == "ROW")
    offset = 0 if match[2] else 1
    where = np.triu_indices(num_cities, offset) if is_upper else np.tril_indices(num_cities, -offset)
    if len(values) != len(where[0]):
        raise ValueError(f"{form} of {num_cities} cities needs {len(where[0])} weights; got {len(values)}")
    matrix = np.zeros((num_cities, num_cities))
    matrix[where] = values
    matrix = np.maximum(matrix, matrix.T)
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
    if len(coordinates) > MAX_CITIES:
        raise ValueError(
            f"{len(coordinates)} cities make a matrix of {len(coordinates) ** 2 * 8 / 2**30:.0f} GB"
        )
    distances = np.empty((len(coordinates),) * 2)
    for start in range(0, len(coordinates), ROWS_AT_A_TIME):  # temporaries stay small beside the matrix
        rows = slice(start, start + ROWS_AT_A_TIME)
        distances[rows] = between(coordinates[rows, None], coordinates[None])
    np.fill_diagonal(distances, 0)
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
