"""The eight cities: enumeration, walks of known distribution, and the whole experiment at quick scale."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from small_experiments import shrink
from steppe.results import read_results
from steppe_edlp.engine import carry_out
from steppe_edlp.experiment import EXPERIMENTS
from steppe_edlp.figures import draw
from steppe_edlp.request import Request
from steppe_edlp.tsp import instance
from steppe_edlp.tsp.enumeration import draw_exactly, enumerate_costs, find_minima
from steppe_edlp.tsp.walks import find_costs, make_keys, unpack_tours, walk, walk_as_coded

PAPER_TOUR = np.arange(8)


SMALL = shrink("tsp", num_steps=300, num_warmup=60, num_seeds=3, num_exact_chains=2)


def test_enumeration_gives_the_known_distribution_of_costs():
    exact = enumerate_costs()
    assert exact.optimum == pytest.approx(13.194113, abs=1e-5)
    assert exact.mean == pytest.approx(16.4693, abs=1e-4)
    assert exact.std == pytest.approx(1.5877, abs=1e-4)
    assert exact.optimal_share == pytest.approx(0.02554, abs=1e-5)


def test_codes_of_tours_are_read_back_with_their_costs():
    exact = enumerate_costs()
    codes = exact.tours @ 8 ** np.arange(8)[::-1]
    np.testing.assert_array_equal(unpack_tours(codes[::997]), exact.tours[::997])
    np.testing.assert_array_equal(find_costs(codes[::997]), exact.costs[::997])


def test_draws_spread_over_costs_have_the_distribution_of_single_draws():
    # The mean of 4 × 4000 stratified draws has a standard error below 1.59/√16000; five of them are 0.063.
    costs = find_costs(draw_exactly(range(4000), 4) @ 8 ** np.arange(8)[::-1])
    assert costs.mean() == pytest.approx(enumerate_costs().mean, abs=0.063)


def test_minima_cannot_be_improved_by_a_swap_and_the_optimum_is_one():
    found = find_minima()
    assert found.costs.min() == pytest.approx(13.194113, abs=1e-5)
    assert (found.rises > 0).all()
    pair = [found.flattest, found.sharpest]
    assert abs(np.diff(found.costs[pair])[0]) <= 0.1
    assert found.within_budget[pair[0]] > 2 * found.within_budget[pair[1]]
    np.testing.assert_allclose(found.profiles[:, 0, 1], found.costs[[found.flattest, found.sharpest]])


@pytest.mark.slow
def test_walks_as_coded_and_corrected_agree_where_nothing_is_decided():
    # Uncorrected: the same proposal, so the same rate of changed tours up to noise of 60 independent chains.
    starts, keys = np.tile(PAPER_TOUR, (60, 1)), make_keys(range(60))
    moves = [go(steppe.dula(step_size=0.3), starts, keys, 200).moves for go in (walk, walk_as_coded)]
    error = np.hypot(*(part.std(ddof=1) / np.sqrt(60) for part in moves))
    assert abs(moves[0].mean() - moves[1].mean()) < 5 * error  # false alarm 6e-7


@pytest.mark.slow
def test_a_walk_does_not_depend_on_the_number_of_chains():
    keys = make_keys(range(3))
    assert jnp.array_equal(jax.random.key_data(make_keys([2])[0]), jax.random.key_data(keys[2]))
    few = walk(steppe.dmala(step_size=0.3), np.tile(PAPER_TOUR, (3, 1)), keys, 50)
    one = walk(steppe.dmala(step_size=0.3), PAPER_TOUR[None], keys[2:], 50)
    np.testing.assert_array_equal(few.codes[2], one.codes[0])


@pytest.mark.parametrize("asked", ["sound", pytest.param("published", marks=pytest.mark.slow)])
def test_everything_is_reported(tmp_path, asked):
    request = Request(protocol=asked, samplers=("dmala", "edmala"))
    results = carry_out(SMALL, request, tmp_path, progress=False)
    assert len(results.verdicts) == (6 if asked == "sound" else 3)
    assert {table.key for table in results.tables} == {"runs", "distribution", "minima"}
    assert ("spread_paper" in results.tables[0].rows[0]) == (asked == "published")
    assert set(draw(read_results(tmp_path / "tsp"))) == {figure.key for figure in results.figures}


@pytest.mark.slow
def test_an_instance_is_solved_and_ranked():
    points = np.random.default_rng(0).uniform(size=(9, 2))
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    best, robust = instance.solve(distances, 0, instance.Size(4, 200, 50, 1))
    assert robust.costs.min() <= best.min() + 1e-5
    assert robust.num_alternatives[0] == robust.num_alternatives.max()


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["sound", "published"])
def test_quick_scale_runs_to_the_end(tmp_path, asked):
    results = carry_out(EXPERIMENTS["tsp"], Request(protocol=asked), tmp_path, progress=False)
    distribution: dict[Any, dict[str, Any]] = {
        row["sampler"]: row for row in results.table("distribution").rows
    }
    assert distribution["π, enumerated"]["mean"] == pytest.approx(16.4693, abs=1e-4)
    if asked == "sound":
        # 95 % intervals over 20 seeds, widened to 99.99 %: t quantiles with 19 degrees are 2.09 and 4.88.
        for name in ("dmala", "edmala", "informed_permutation"):
            mean = distribution[name]["mean"]
            assert abs(mean.value - 16.4693) < 4.88 / 2.09 * (mean.high - mean.value)
