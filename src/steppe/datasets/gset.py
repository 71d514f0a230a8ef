"""Graphs of the Gset collection for max-cut, in the format of the rudy generator."""

import dataclasses
from os import PathLike
from pathlib import Path

import numpy as np

from steppe.datasets import catalogue
from steppe.datasets.card import Card
from steppe.datasets.download import File
from steppe.datasets.files import Lookup, read_text, text_of
from steppe.errors import DataError

ARCHIVE = File(
    "gset/gset_71_graphs.tar.xz",
    "3b99270fa83a1862e8a9b58347f08f219c5e1425cf12340531ca027386f919f2",
    1_631_404,
)
SINGLE_FILES = "https://raw.githubusercontent.com/0816keisuke/max-cut-problem-benchmark/5452624f167d/instance"


@dataclasses.dataclass(frozen=True)
class GraphInstance:
    """A weighted graph.

    Attributes
    ----------
    name
        As in the collection.
    num_nodes
        Nodes, numbered from 0.
    edges
        Pairs of nodes, edges × 2.
    weights
        One per edge.
    best_known
        The largest cut in the literature, where there is one.
    card
        Where it comes from.
    """

    name: str
    num_nodes: int
    edges: np.ndarray
    weights: np.ndarray
    best_known: float | None
    card: Card


def load_gset(name: str, lookup: Lookup) -> GraphInstance:
    """Load a graph by its name."""
    row = catalogue.row("gset", name)
    alternatives = (
        ARCHIVE._replace(member=f"./{name}.txt"),
        File(f"gset/{name}.txt", row["sha256"], int(row["bytes"]), f"{SINGLE_FILES}/{name}/{name}.txt"),
    )
    what = f"gset:{name}"
    found = lookup.find(what, alternatives)
    graph = _parse(what, text_of(what, found))
    best = float(row["best_known"]) if row["best_known"] else None
    card = dataclasses.replace(graph.card, name=what, sha256={found.path.name: found.sha256})
    return dataclasses.replace(graph, name=name, best_known=best, card=card)


def read_gset(path: str | PathLike[str]) -> GraphInstance:
    """Read a graph written as `nodes edges` and then `from to weight`, nodes numbered from 1.

    Parameters
    ----------
    path
        The file. A missing weight counts as 1.
    """
    return _parse(str(path), read_text(path))


def _parse(what: str, text: str) -> GraphInstance:
    lines = [line.split() for line in text.splitlines() if line.strip()]
    try:
        num_nodes, num_edges = (int(word) for word in lines[0])
        table = np.asarray([line if len(line) == 3 else [*line, "1"] for line in lines[1:]], float)
        if table.shape != (num_edges, 3):
            raise ValueError(f"it announces {num_edges} edges and lists {len(table)}")
        edges = table[:, :2].astype(np.int64) - 1
        if num_edges and not (edges.min() >= 0 and edges.max() < num_nodes):
            raise ValueError(f"it has an edge to a node outside 1 … {num_nodes}")
    except (ValueError, IndexError) as error:
        raise DataError(f"{what} is not a graph in Gset format: {error}.") from error
    card = Card(
        name=what,
        source="Gset, Y. Ye, Stanford University (rudy generator of G. Rinaldi)",
        licence="none stated",
        sha256={},
        rows=num_edges,
        columns=3,
        preprocessing="nodes renumbered from 0",
    )
    return GraphInstance(Path(what).stem, num_nodes, edges, table[:, 2], None, card)
