"""TSPLIB and Gset: published optima recomputed, forms of weights, refusals."""

import os
from pathlib import Path

import numpy as np
import pytest

from steppe import datasets
from steppe.datasets import DataError, tsplib

needs_data = pytest.mark.skipif("STEPPE_DATA" not in os.environ, reason="STEPPE_DATA is not set")

HEAD = "NAME : own\nTYPE : TSP\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : EXPLICIT\nEDGE_WEIGHT_FORMAT : {}\n"
MATRIX = np.asarray([[0, 1, 2, 3], [1, 0, 4, 5], [2, 4, 0, 6], [3, 5, 6, 0]], float)
UPPER, LOWER = np.triu_indices(4), np.tril_indices(4)
FORMS = {
    "FULL_MATRIX": MATRIX.ravel(),
    "UPPER_ROW": MATRIX[np.triu_indices(4, 1)],
    "LOWER_ROW": MATRIX[np.tril_indices(4, -1)],
    "UPPER_DIAG_ROW": MATRIX[UPPER],
    "LOWER_DIAG_ROW": MATRIX[LOWER],
    "UPPER_COL": MATRIX[np.tril_indices(4, -1)],
    "LOWER_DIAG_COL": MATRIX[UPPER],
}


@needs_data
@pytest.mark.parametrize(
    "name", ["ulysses16", "ulysses22", "att48", "berlin52", "gr24", "bayg29", "eil76", "pr76"]
)
def test_published_tours_have_the_published_length(name):
    # Kinds of distances: GEO, GEO, ATT, EUC_2D, and explicit ones by lower and upper rows.
    instance = datasets.load(f"tsplib:{name}", download=False)
    path = Path(os.environ["STEPPE_DATA"], "tsplib", "small", f"{name}.opt.tour")
    words = path.read_text().split("TOUR_SECTION")[1].split()
    tour = [int(word) - 1 for word in words[: words.index("-1")]]
    assert sorted(tour) == list(range(instance.num_cities))
    assert instance.distances[tour, np.roll(tour, -1)].sum() == instance.optimum
    assert instance.is_symmetric


@needs_data
def test_gset_graphs_have_the_published_size_and_a_cut_below_the_best_known():
    graph = datasets.load("gset:G14", download=False)
    assert (graph.num_nodes, graph.edges.shape, graph.best_known) == (800, (4694, 2), 3064)
    side = np.random.default_rng(0).integers(0, 2, graph.num_nodes)
    cut = graph.weights[side[graph.edges[:, 0]] != side[graph.edges[:, 1]]].sum()
    assert 0 < cut < graph.best_known
    assert graph.edges.min() == 0
    assert datasets.load("gset:G81", download=False).best_known == 14060


@pytest.mark.parametrize("form", FORMS)
def test_explicit_weights_are_read_in_every_form(tmp_path, form):
    values = "\n".join(" ".join(f"{v:g}" for v in part) for part in np.array_split(FORMS[form], 3))
    path = tmp_path / "own.tsp"
    path.write_text(f"{HEAD.format(form)}EDGE_WEIGHT_SECTION\n{values}\nEOF\n")
    np.testing.assert_array_equal(datasets.read_tsplib(path).distances, MATRIX)


def test_weights_below_zero_are_kept_in_every_form(tmp_path):
    for form, weights in FORMS.items():
        path = tmp_path / form
        values = " ".join(f"{-v:g}" for v in weights)
        path.write_text(f"{HEAD.format(form)}EDGE_WEIGHT_SECTION\n{values}\nEOF\n")
        np.testing.assert_array_equal(datasets.read_tsplib(path).distances, -MATRIX)


def test_asymmetric_instances_keep_their_direction(tmp_path):
    text = HEAD.format("FULL_MATRIX").replace("DIMENSION : 4", "DIMENSION: 3").replace("TSP", "ATSP")
    path = tmp_path / "own.atsp"
    path.write_text(f"{text}EDGE_WEIGHT_SECTION\n9999 1 2\n3 9999 4\n5 6 9999\nEOF\n")
    instance = datasets.read_tsplib(path)
    np.testing.assert_array_equal(instance.distances, [[0, 1, 2], [3, 0, 4], [5, 6, 0]])
    assert not instance.is_symmetric
    assert (instance.coordinates, instance.optimum) == (None, None)


def test_distances_round_as_tsplib_prescribes():
    cities = np.asarray([[0.0, 0.0], [1.0, 1.0], [10.0, 3.5]])
    wanted = {"EUC_2D": (1, 11), "CEIL_2D": (2, 11), "MAN_2D": (2, 14), "MAX_2D": (1, 10), "ATT": (1, 4)}
    for kind, lengths in wanted.items():
        assert tuple(tsplib.distances_between(cities, kind)[0, 1:]) == lengths, kind


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            HEAD.format("UPPER_ROW") + "EDGE_WEIGHT_SECTION\n1 2 3\nEOF",
            "UPPER_ROW of 4 cities needs 6 weights; got 3",
        ),
        (HEAD.format("SPIRAL") + "EDGE_WEIGHT_SECTION\n1 2 3\nEOF", "EDGE_WEIGHT_FORMAT 'SPIRAL' is unknown"),
        ("NAME : own\nEDGE_WEIGHT_TYPE : EUC_2D\n", "DIMENSION is missing"),
        (
            "DIMENSION : 3\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 1 1\nEOF",
            "DIMENSION says 3",
        ),
    ],
)
def test_an_unreadable_instance_says_why(tmp_path, text, complaint):
    path = tmp_path / "own.tsp"
    path.write_text(text)
    with pytest.raises(DataError, match=f"own.tsp.*{complaint}"):
        datasets.read_tsplib(path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("3 2\n1 2 1\n", "announces 2 edges and lists 1"),
        ("2 1\n1 3 1\n", r"outside 1 … 2"),
        ("", "first line must be `nodes edges`"),
    ],
)
def test_an_unreadable_graph_says_why(tmp_path, text, complaint):
    path = tmp_path / "own.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=f"own.txt.*{complaint}"):
        datasets.read_gset(path)


def test_graphs_without_weights_have_weight_one(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("3 2\n1 2\n3 1\n")
    graph = datasets.read_gset(path)
    assert (graph.num_nodes, graph.edges.tolist(), graph.weights.tolist()) == (3, [[0, 1], [2, 0]], [1, 1])


def test_unknown_instances_name_neighbours_and_the_reader():
    with pytest.raises(DataError, match=r"no `tsplib:berlin53`; there is berlin52.*read_tsplib"):
        datasets.load("tsplib:berlin53")
