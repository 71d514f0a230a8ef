"""States are drawn as what they are: images, tours on a map, graphs with coloured nodes."""

import jax
import numpy as np
import pytest

import steppe
from run.resealing import change_run
from steppe.errors import DamagedRunError
from steppe.report.page.gather import gather
from steppe.report.state_figures import draw_states, name_kind
from steppe.run.storage.record import PictureRecord
from steppe.target.picture import Picture, picture_graph, place_nodes, scale_to_plane
from steppe.trace import Trace

RING = np.array([[site, (site + 1) % 6] for site in range(6)])


def trace_of(domain, levels):
    levels = np.asarray(levels)
    kept = np.packbits(levels, axis=-1) if domain.is_two_level else levels
    return Trace({"levels": kept, "log_density": np.arange(levels.shape[1])[None] * 1.0}, 0, domain)


def test_scaling_gives_back_the_distances_of_a_plane():
    points = np.random.default_rng(0).random((9, 2))
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    places = scale_to_plane(distances)
    found = np.linalg.norm(places[:, None] - places[None], axis=-1)
    np.testing.assert_allclose(found, distances, atol=1e-12)


def test_neighbours_of_a_ring_stand_closer_than_others():
    places = place_nodes(RING, 6)
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
    is_edge = np.zeros((6, 6), bool)
    is_edge[RING[:, 0], RING[:, 1]] = is_edge[RING[:, 1], RING[:, 0]] = True
    others = apart[~is_edge & ~np.eye(6, dtype=bool)]
    assert apart[is_edge].max() < others.min()


def test_a_graph_is_drawn_with_its_cut():
    trace = trace_of(steppe.Binary(6), [[[0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]]])
    picture = Picture("graph", [], RING.tolist(), [])
    assert name_kind(trace, picture) == "graph"
    titles = [axes.get_title(loc="left") for axes in draw_states(trace, picture).axes]
    assert titles[0] == "best draw, U = 1\n6 of 6 pairs differ"


def test_a_tour_is_drawn_as_a_closed_line_through_its_cities():
    trace = trace_of(steppe.Permutation(4), [[[0, 1, 2, 3], [3, 1, 0, 2]]])
    places = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    figure = draw_states(trace, Picture("tour", places.tolist(), [], []))
    drawn = np.asarray(figure.axes[0].lines[0].get_xydata())
    starts = drawn[~np.isnan(drawn).any(axis=1)][::2]
    np.testing.assert_array_equal(starts, places[[3, 1, 0, 2]])


def test_large_and_dense_graphs_have_no_picture():
    assert picture_graph(steppe.targets.ising_lattice((20, 20), coupling=0.1)) is None
    assert picture_graph(steppe.targets.sherrington_kirkpatrick(30)) is None


def test_a_lattice_is_drawn_in_its_rows_although_its_domain_is_flat():
    target = steppe.targets.ising_lattice((2, 3), coupling=0.1)
    levels = [[[0, 0, 0, 1, 1, 1], [1, 0, 1, 0, 1, 0]]]
    drawn = draw_states(trace_of(target.domain, levels), target.picture).axes[0].images[0].get_array()
    np.testing.assert_array_equal(drawn, [[1, 0, 1], [0, 1, 0]])
    assert steppe.targets.potts((4, 4), 3, 0.5).picture == Picture("image", [], [], [4, 4])
    assert steppe.targets.ising_lattice((3, 2, 2), coupling=0.1).picture.kind == "graph"
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        PictureRecord(kind="image", places=[], pairs=[], shape=[0, 6])
    assert not PictureRecord(kind="image", places=[], pairs=[], shape=[2, 2]).fits(6)


@pytest.mark.slow
def test_the_report_of_a_run_on_disk_draws_its_tours_and_refuses_a_map_that_does_not_fit(tmp_path):
    target = steppe.targets.tsp(coordinates=np.random.default_rng(0).random((6, 2)))
    steppe.sample(target, key=jax.random.key(0), num_draws=50, out=tmp_path)
    (section,) = gather(tmp_path).sections
    assert "states" in {figure.key for figure in section.results.figures}
    change_run(tmp_path, lambda content: content["picture"]["places"].pop())
    with pytest.raises(DamagedRunError, match="picture does not fit 6 sites"):
        gather(tmp_path)
