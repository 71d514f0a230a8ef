"""Graphs of the Gset collection for max-cut, in the format of the rudy generator."""

import dataclasses
import re
from os import PathLike
from pathlib import Path

import numpy as np

from steppe.arguments import checked
from steppe.datasets import catalogue
from steppe.datasets.card import Card
from steppe.datasets.download import File
from steppe.datasets.files import Lookup, read_number, read_text, text_of
from steppe.errors import DataError
from steppe.validation import shorten

ARCHIVE = File(
    "gset/gset_71_graphs.tar.xz",
    "3b99270fa83a1862e8a9b58347f08f219c5e1425cf12340531ca027386f919f2",
    1_631_404,
)
SINGLE_FILES = "https://raw.githubusercontent.com/0816keisuke/max-cut-problem-benchmark/5452624f167d/instance"

MAX_NODES = 10_000_000
WHOLE = re.compile(r"[0-9]{1,18}")


@dataclasses.dataclass(frozen=True)
class GraphInstance:
    r"""A weighted graph.

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

    Examples
    --------
    >>> import pathlib, steppe, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "triangle.txt")
    >>> _ = file.write_text("3 3\n1 2 1\n2 3 1\n1 3 1\n")
    >>> graph = steppe.datasets.read_gset(file)
    >>> graph.num_nodes, graph.edges.tolist()
    (3, [[0, 1], [1, 2], [0, 2]])
    >>> steppe.targets.max_cut(graph).domain
    Spin(3)
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


@checked(DataError)
def read_gset(path: str | PathLike[str]) -> GraphInstance:
    r"""Read a graph written as `nodes edges` and then `from to weight`, nodes numbered from 1.

    Parameters
    ----------
    path
        The file. A missing weight counts as 1.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from steppe.datasets import read_gset
    >>> file = pathlib.Path(tempfile.mkdtemp(), "pair.txt")
    >>> _ = file.write_text("2 1\n1 2 -1\n")
    >>> graph = read_gset(file)
    >>> graph.edges.tolist(), graph.weights.tolist()
    ([[0, 1]], [-1.0])
    """
    return _parse(str(path), read_text(path))


def _parse(what: str, text: str) -> GraphInstance:
    lines = [(number, line.split()) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    num_nodes, num_edges = _read_sizes(what, lines)
    if len(lines) - 1 != num_edges:
        raise DataError(f"{what}: it announces {num_edges} edges and lists {len(lines) - 1}.")
    edges, weights, seen = np.zeros((num_edges, 2), np.int64), np.ones(num_edges), {}
    for row, (number, words) in enumerate(lines[1:]):
        where = f"{what}, line {number}"
        if len(words) not in (2, 3) or not all(WHOLE.fullmatch(word) for word in words[:2]):
            raise DataError(f"{where}: an edge is two nodes and a weight; got {shorten(' '.join(words))}.")
        first, second = int(words[0]), int(words[1])
        if not (1 <= first <= num_nodes and 1 <= second <= num_nodes):
            raise DataError(f"{where}: it has an edge to a node outside 1 … {num_nodes}.")
        if first == second:
            raise DataError(f"{where}: node {first} has an edge to itself, which no cut counts.")
        pair = (min(first, second), max(first, second))
        if pair in seen:
            raise DataError(f"{where}: the edge {first} {second} stands in line {seen[pair]} already.")
        seen[pair] = number
        edges[row] = first - 1, second - 1
        weights[row] = read_number(where, words[2]) if len(words) == 3 else 1
    card = Card(
        name=what,
        source="Gset, Y. Ye, Stanford University (rudy generator of G. Rinaldi)",
        licence="none stated",
        sha256={},
        rows=num_edges,
        columns=3,
        preprocessing="nodes renumbered from 0",
    )
    return GraphInstance(Path(what).stem, num_nodes, edges, weights, None, card)


def _read_sizes(what: str, lines: list[tuple[int, list[str]]]) -> tuple[int, int]:
    """Numbers of nodes and edges, checked before anything is made of that size."""
    words = lines[0][1] if lines else []
    if len(words) != 2 or not all(WHOLE.fullmatch(word) for word in words):
        raise DataError(f"{what}: its first line must be `nodes edges`; got {shorten(' '.join(words))}.")
    num_nodes, num_edges = int(words[0]), int(words[1])
    if not 1 <= num_nodes <= MAX_NODES:
        raise DataError(f"{what}: a graph has from 1 to {MAX_NODES} nodes; it announces {num_nodes}.")
    return num_nodes, num_edges
