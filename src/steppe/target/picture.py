"""How states are drawn: tours on a map of their cities, lattices as images, sparse graphs by their nodes."""

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from steppe.target.log_density import Target

# Of more sites, or of more pairs for each, a picture shows nothing.
MAX_NODES = 300
MAX_PAIRS_PER_NODE = 5
NUM_LAYOUT_STEPS = 100


class Picture(NamedTuple):
    """What a state is drawn on.

    Attributes
    ----------
    kind
        `"tour"`: a state is an order of places; `"graph"`: a state gives a level to every node; `"image"`:
        sites stand in rows.
    places
        Of cities, (cities, 2); empty for a graph, which `place_nodes` lays out.
    pairs
        Edges of a graph, each once, (edges, 2).
    shape
        Rows and columns of an image; empty for the others.
    """

    kind: Literal["tour", "graph", "image"]
    places: list[list[float]]
    pairs: list[list[int]]
    shape: list[int]


def picture_graph(target: "Target") -> Picture | None:
    """Return the graph of the sites that interact, where it is known and small enough to be seen."""
    num_sites = target.domain.num_sites
    found = target.interactions if num_sites <= MAX_NODES else None
    if found is None:
        return None
    pairs = np.stack([np.asarray(found.sources), np.asarray(found.ends)], axis=1)
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    is_clear = 0 < len(pairs) <= MAX_PAIRS_PER_NODE * num_sites
    return Picture("graph", [], pairs.tolist(), []) if is_clear else None


def picture_tours(lengths: np.ndarray) -> Picture | None:
    """Return a map on which distances are as close to the given ones as a plane allows."""
    if len(lengths) > MAX_NODES:
        return None
    places = scale_to_plane((lengths + lengths.T) / 2)
    return Picture("tour", np.round(places / (np.abs(places).max() or 1.0), 4).tolist(), [], [])


def scale_to_plane(distances: np.ndarray) -> np.ndarray:
    """Classical scaling: points of a plane, exact up to turns and mirrors where distances are of a plane."""
    squares = np.asarray(distances, float) ** 2
    centered = squares - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True) + squares.mean()
    values, vectors = np.linalg.eigh(-centered / 2)
    places = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0))
    signs = np.sign(places[np.abs(places).argmax(axis=0), [0, 1]])  # the same on every machine
    return (places * np.where(signs == 0, 1.0, signs))[:, ::-1]


def place_nodes(pairs: np.ndarray, num_nodes: int) -> np.ndarray:
    """Lay out a graph: distances in the plane follow the steps between nodes (stress majorisation)."""
    steps = _count_steps(pairs, num_nodes)
    weights = np.where(steps > 0, 1.0, 0.0) / np.where(steps > 0, steps, 1.0) ** 2
    laplacian = np.diag(weights.sum(axis=1)) - weights
    solve = np.linalg.pinv(laplacian)
    places = scale_to_plane(steps) + 0.01 * np.random.default_rng(0).standard_normal((num_nodes, 2))
    for _ in range(NUM_LAYOUT_STEPS):
        apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
        pull = -weights * steps / np.maximum(apart, 1e-9)
        np.fill_diagonal(pull, 0.0)
        np.fill_diagonal(pull, -pull.sum(axis=1))
        places = solve @ (pull @ places)
    return places


def _count_steps(pairs: np.ndarray, num_nodes: int) -> np.ndarray:
    """Edges on the shortest way between two nodes; their mean where there is no way."""
    is_edge = np.zeros((num_nodes, num_nodes), np.float32)
    is_edge[pairs[:, 0], pairs[:, 1]] = is_edge[pairs[:, 1], pairs[:, 0]] = 1.0
    steps = np.full((num_nodes, num_nodes), -1)
    np.fill_diagonal(steps, 0)
    reached, count = np.eye(num_nodes, dtype=np.float32), 0
    while (is_new := (reached @ is_edge > 0) & (steps < 0)).any():
        count += 1
        steps[is_new] = count
        reached = is_new.astype(np.float32)
    return np.where(steps < 0, steps[steps > 0].mean(), steps)
