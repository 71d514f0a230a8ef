"""Cuts of graphs read from files: the instance is the edge list it holds."""

import dataclasses

import jax
import numpy as np
import pytest

import steppe
from steppe import targets
from steppe.errors import TargetError


@dataclasses.dataclass
class Instance:
    """The fields of a loaded graph that are used."""

    edges: np.ndarray
    weights: np.ndarray
    num_nodes: int


def triangle() -> Instance:
    return Instance(np.asarray([[0, 1], [1, 2], [0, 2]]), np.asarray([1.0, 2.0, -1.0]), 4)


def test_a_loaded_instance_is_its_edge_list():
    instance = triangle()
    loaded = targets.max_cut(instance)
    given = targets.max_cut(instance.edges, instance.weights, num_nodes=4)
    assert loaded.domain == steppe.Spin(4)
    positions = given.domain.enumerate()
    cuts = jax.vmap(loaded.cut_value)(positions)
    np.testing.assert_array_equal(cuts, jax.vmap(given.cut_value)(positions))
    assert cuts.max() == 3


def test_a_gset_file_can_be_cut(tmp_path):
    pytest.importorskip("steppe.datasets")
    from steppe.datasets import read_gset

    path = tmp_path / "square.txt"
    path.write_text("4 4\n1 2 1\n2 3 1\n3 4 1\n4 1 1\n")
    target = targets.max_cut(read_gset(path))
    assert target.cut_value(np.asarray([1.0, -1.0, 1.0, -1.0])) == 4


def test_weights_beside_a_loaded_instance_are_refused():
    with pytest.raises(TargetError, match=r"weights=.*so does a loaded instance"):
        targets.max_cut(triangle(), weights=[1.0, 1.0, 1.0])
