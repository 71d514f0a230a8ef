"""Experiments at tiny counts: tables, verdicts and figures come out and fit together."""

from typing import Any

import numpy as np
import pytest

from small_experiments import shrink
from steppe import samplers
from steppe.results import read_results
from steppe.targets.bernoulli import paper_bernoulli
from steppe_edlp.engine import carry_out
from steppe_edlp.experiment import EXPERIMENTS
from steppe_edlp.figures import draw, write_figures
from steppe_edlp.occupancy import SmallTarget, estimate_noise, visit
from steppe_edlp.request import Request
from steppe_edlp.tables import find_rows


@pytest.fixture(scope="module")
def known():
    return SmallTarget(paper_bernoulli())


@pytest.fixture(scope="module")
def four_bits(tmp_path_factory):
    """A sound run of two samplers, and its directory."""
    directory = tmp_path_factory.mktemp("bernoulli")
    # The same number of chains for windows and for seeds: one program per sampler.
    long = {"num_chains": 4, "num_warmup": 10, "num_draws": 300}
    request = Request(samplers=("dula", "dmala"), num_seeds=6)
    carry_out(shrink("bernoulli", num_windows=6, long=long), request, directory, progress=False)
    return directory / "bernoulli"


def test_spread_of_the_eigenvalues_under_the_target_is_the_known_one(known):
    assert known.spectrum_std(known.probabilities) == pytest.approx(2.6462, abs=1e-4)
    assert known.spectrum_iqr(known.probabilities) == pytest.approx(3.2243, abs=1e-4)
    assert known.flat_mass(known.probabilities) == pytest.approx(0.1451, abs=1e-4)
    assert known.sharp_mass(known.probabilities) == pytest.approx(0.2926, abs=1e-4)


def test_noise_of_seeds_is_what_sampling_the_target_shows(known):
    # 400 draws of a mean of 50 multinomials; the mean of their distances has a standard error of 1 %, so five
    # of them give a false alarm in 6e-7 of all seeds. Forgetting the root of the number of seeds is 7-fold.
    generator = np.random.default_rng(0)
    fractions = generator.multinomial(200, known.probabilities, (400, 50)) / 200
    distances = [known.distance(fraction) for fraction in fractions]
    expected = np.mean(np.array([estimate_noise(fraction) for fraction in fractions], float))
    error = np.std(distances) / np.sqrt(len(distances))
    assert abs(np.mean(distances) - expected) < 5 * error + 0.02 * expected


@pytest.mark.slow
def test_every_figure_that_is_named_is_drawn_and_written(four_bits):
    results = read_results(four_bits)
    assert set(draw(results)) == {figure.key for figure in results.figures}
    paths = write_figures(results, four_bits)
    assert len(paths) == 2 * len(results.figures)
    assert all(path.stat().st_size > 1000 for path in paths)
    assert {path.parent.name for path in paths} == {"figures"}
    assert sorted(path.name for path in four_bits.iterdir()) == [
        "figures",
        "lock",
        "parts",
        "request.json",
        "results.json",
    ]


def test_tables_stand_beside_the_exact_values(four_bits):
    rows = {row["sampler"]: row for row in read_results(four_bits).table("occupancy").rows}
    assert list(rows) == ["π", "dula", "dmala"]
    assert rows["dmala"]["distance_exact"] == pytest.approx(0, abs=1e-6)
    assert rows["dula"]["sharp_exact"] == pytest.approx(0.2854, abs=1e-4)
    spectrum = {row["sampler"]: row for row in read_results(four_bits).table("spectrum").rows}
    assert spectrum["dula"]["std_paper"] == 2.832
    assert spectrum["dula"]["std_exact"] == pytest.approx(2.638, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["sound", "published"])
def test_one_seed_is_enough_for_tables_without_intervals(tmp_path, protocol):
    experiment = shrink("bernoulli", num_windows=1, long={"num_chains": 4, "num_warmup": 10, "num_draws": 50})
    request = Request(protocol=protocol, samplers=("dula", "dmala"), num_seeds=1)
    results = carry_out(experiment, request, tmp_path, progress=False)
    rows: list[dict[str, Any]] = results.table("occupancy").rows[1:]
    assert all(row["noise"] is None and row["flat"].low is None for row in rows)
    assert set(draw(results)) == {figure.key for figure in results.figures}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs_draws_and_describes_itself(name):
    experiment = EXPERIMENTS[name]
    assert callable(experiment.run)
    assert callable(experiment.draw)
    assert {claim.table for claim in experiment.claims} <= {"", *experiment.tables}
    assert all(claim.difference or claim.estimate for claim in experiment.claims)


@pytest.mark.slow
def test_replicas_of_an_ensemble_share_the_chains():
    found = visit(
        samplers.robust_ensemble(replicas=2, coupling_variance=0.5, step_size=0.4),
        paper_bernoulli(),
        range(3),
        num_chains=4,
        num_warmup=0,
        num_draws=20,
    )
    assert found.fractions.shape == (3, 16)
    np.testing.assert_allclose(found.fractions.sum(axis=1), 1, rtol=1e-6)
    assert np.all(found.flips <= 4)


@pytest.mark.slow
def test_acceptance_rises_from_nothing_to_a_plateau(tmp_path):
    # 257 bits: at η = 0.01 one decision on 514 numbers accepts nothing (0.0 at each of ten seeds). At 0.8 a
    # seed shows 0.70 ± 0.09 (the same ten), so the mean of three is below 0.4 in 1e-8 of all seeds.
    experiment = shrink("eta", num_hidden=8, num_rows=32, num_chains=2, num_points=8)
    request = Request(samplers=("edmala",), num_seeds=3)
    results = carry_out(experiment, request, tmp_path, progress=False)
    rows: list[dict[str, Any]] = find_rows(results, "sweep")
    acceptance = [row["acceptance"].value for row in rows]
    assert acceptance[0] < 1e-3
    assert acceptance[7] > 0.4
    assert rows[0]["effective_step"] is None
    assert rows[-1]["effective_step"] == pytest.approx(0.1, abs=1e-3)
    assert set(draw(results)) == {figure.key for figure in results.figures}
