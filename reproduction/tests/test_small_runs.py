"""Experiments at tiny counts: tables, verdicts and figures come out and fit together."""

import numpy as np
import pytest

from steppe import samplers
from steppe.results import read_results
from steppe.targets.bernoulli import paper_bernoulli
from steppe_edlp.bernoulli import run as bernoulli
from steppe_edlp.catalogue import EXPERIMENTS
from steppe_edlp.driver import carry_out
from steppe_edlp.eta import run as eta
from steppe_edlp.figures import FIGURES, draw, write_figures
from steppe_edlp.occupancy import Landscape, expected_noise, visit
from steppe_edlp.request import Request


@pytest.fixture(scope="module")
def landscape():
    return Landscape(paper_bernoulli())


@pytest.fixture(scope="module")
def four_bits(tmp_path_factory):
    """A sound run of two samplers, and its directory."""
    directory = tmp_path_factory.mktemp("bernoulli")
    with pytest.MonkeyPatch.context() as patch:
        # The same number of chains for windows and for seeds: one program per sampler.
        patch.setitem(bernoulli.SIZES, "quick", bernoulli.Size(6, 4, 10, 300))
        request = Request(samplers=("dula", "dmala"), num_seeds=6)
        carry_out(EXPERIMENTS["bernoulli"], request, directory, progress=False)
    return directory / "bernoulli"


def test_spread_of_the_eigenvalues_under_the_target_is_the_known_one(landscape):
    assert landscape.spectrum_std(landscape.law) == pytest.approx(2.6462, abs=1e-4)
    assert landscape.spectrum_iqr(landscape.law) == pytest.approx(3.2243, abs=1e-4)
    assert landscape.flat_mass(landscape.law) == pytest.approx(0.1451, abs=1e-4)
    assert landscape.sharp_mass(landscape.law) == pytest.approx(0.2926, abs=1e-4)


def test_noise_of_seeds_is_what_sampling_the_target_shows(landscape):
    # 400 draws of a mean of 50 multinomials; the mean of their distances has a standard error of 1 %, so five
    # of them give a false alarm in 6e-7 of all seeds. Forgetting the root of the number of seeds is 7-fold.
    generator = np.random.default_rng(0)
    shares = generator.multinomial(200, landscape.law, (400, 50)) / 200
    distances = [landscape.distance(share) for share in shares]
    expected = np.mean([expected_noise(share) for share in shares])
    error = np.std(distances) / np.sqrt(len(distances))
    assert abs(np.mean(distances) - expected) < 5 * error + 0.02 * expected


def test_every_figure_that_is_named_is_drawn_and_written(four_bits):
    results = read_results(four_bits)
    assert set(draw(results)) == {figure.key for figure in results.figures}
    paths = write_figures(results, four_bits)
    assert len(paths) == 2 * len(results.figures)
    assert all(path.stat().st_size > 1000 for path in paths)
    assert {path.parent.name for path in paths} == {"figures"}
    assert sorted(path.name for path in four_bits.iterdir()) == [
        "figures",
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
def test_one_seed_is_enough_for_tables_without_intervals(tmp_path, monkeypatch, protocol):
    monkeypatch.setitem(bernoulli.SIZES, "quick", bernoulli.Size(1, 4, 10, 50))
    request = Request(protocol=protocol, samplers=("dula", "dmala"), num_seeds=1)
    results = carry_out(EXPERIMENTS["bernoulli"], request, tmp_path, progress=False)
    rows = results.table("occupancy").rows[1:]
    assert all(row["noise"] is None and row["flat"].low is None for row in rows)
    assert set(draw(results)) == {figure.key for figure in results.figures}


def test_every_experiment_has_figures_and_a_module():
    for name in ("bernoulli", "eta", "flatness", "theory"):
        assert name in FIGURES
        assert callable(EXPERIMENTS[name].run)


@pytest.mark.slow
def test_copies_of_an_ensemble_share_the_chains():
    found = visit(
        samplers.robust_ensemble(2, 0.5, 0.4),
        paper_bernoulli(),
        range(3),
        num_chains=4,
        num_warmup=0,
        num_draws=20,
    )
    assert found.shares.shape == (3, 16)
    np.testing.assert_allclose(found.shares.sum(axis=1), 1, rtol=1e-6)
    assert np.all(found.flips <= 4)


def test_acceptance_rises_from_nothing_to_a_plateau(tmp_path, monkeypatch):
    # 257 bits: at η = 0.01 one decision on 514 numbers accepts nothing (0.0 at each of ten seeds). At 0.8 a
    # seed shows 0.70 ± 0.09 (the same ten), so the mean of three is below 0.4 in 1e-8 of all seeds.
    monkeypatch.setitem(eta.SIZES, "quick", eta.Size(8, 32, 2, 8, 20))
    request = Request(samplers=("edmala",), num_seeds=3)
    results = carry_out(EXPERIMENTS["eta"], request, tmp_path, progress=False)
    rows = results.table("edmala").rows
    acceptance = [row["acceptance"].value for row in rows]
    assert acceptance[0] < 1e-3
    assert acceptance[7] > 0.4
    assert rows[0]["effective_step"] is None
    assert rows[-1]["effective_step"] == pytest.approx(0.1, abs=1e-3)
    assert set(draw(results)) == {figure.key for figure in results.figures}
