"""What must come out of the experiments at quick scale."""

from typing import Any

import numpy as np
import pytest

from steppe_edlp.engine import carry_out
from steppe_edlp.experiment import EXPERIMENTS
from steppe_edlp.figures import draw, write_figures
from steppe_edlp.request import Request
from steppe_edlp.tables import find_rows

pytestmark = pytest.mark.slow

NAMES = ("bernoulli", "eta", "flatness", "theory")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    directory = tmp_path_factory.mktemp("quick")
    return {name: carry_out(EXPERIMENTS[name], Request(), directory, progress=False) for name in NAMES}


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    directory = tmp_path_factory.mktemp("published")
    request = Request(protocol="published")
    return carry_out(EXPERIMENTS["bernoulli"], request, directory, progress=False)


def outcomes(results):
    return {verdict.claim: verdict.outcome for verdict in results.verdicts}


def inside(estimate, value, widths=2.5):
    """Whether a value is within some half-widths of a 95 % interval: 2.5 are five standard errors."""
    return abs(estimate.value - value) < widths * (estimate.high - estimate.value)


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_drawn(found, name, tmp_path):
    assert set(draw(found[name])) == {figure.key for figure in found[name].figures}
    assert len(write_figures(found[name], tmp_path)) == 2 * len(found[name].figures)


def test_sampled_masses_and_spectra_are_those_of_each_distribution(found):
    # 8 samplers × 3 numbers, five standard errors of 20 seeds each (Student's): a false alarm in 2e-3 of all
    # seeds. A dmala that accepts everything is 12 standard errors off.
    for row in found["bernoulli"].table("occupancy").rows:
        if "flat" in row:
            assert inside(row["flat"], row["flat_exact"]), row["sampler"]
            assert inside(row["sharp"], row["sharp_exact"]), row["sampler"]
            assert inside(row["log_density"], row["log_density_exact"]), row["sampler"]
    for row in found["bernoulli"].table("spectrum").rows[1:]:
        # The spread is not linear in the occupancy, so a mean over seeds is biased by about its variance.
        assert abs(row["std"].value - row["std_exact"]) < 0.05, row["sampler"]


def test_corrected_entropic_sampler_does_not_prefer_flat_modes(found):
    said = outcomes(found["bernoulli"])
    assert said["edmala spends more time in flat modes than dmala."] == "negligible"
    assert said["edula spends more time in flat modes than dula."] == "negligible"
    assert said["edula spends less time in sharp modes than dula."] == "shown"
    assert said["edmala has a narrower eigenspectrum than dmala."] == "negligible"


def test_numbers_of_the_paper_are_among_the_runs_of_its_length(published):
    # Percentiles of 1500 seeds: 92, 60, 1, 5. With 100 seeds a binomial share has a standard deviation of 5 %
    # at most; four of them, two-sided at five deviations, are a false alarm in 3e-6 of all seeds.
    rows = {row["sampler"]: row for row in published.table("spectrum").rows}
    for name, percentile in {"dula": 92, "dmala": 60, "edula": 1, "edmala": 5}.items():
        assert abs(rows[name]["percentile"] - percentile) < 25, name
    assert rows["edmala"]["window_sd"] > 0.15


def test_single_runs_of_the_published_protocol_are_called_a_coin(published):
    edula, edmala = published.verdicts[-2:]
    assert edula.outcome == "shown"
    assert edmala.outcome != "shown"
    assert 0.3 < edmala.estimate.value + 0.5 < 0.7


def test_acceptance_is_near_zero_at_tiny_variance_and_on_a_plateau_from_08(found):
    said = outcomes(found["eta"])
    assert said["Acceptance of edmala is near 0 at tiny η."] == "shown"
    assert said["Acceptance of edmala is on its plateau from η = 0.8."] == "shown"


def test_edula_blows_up_below_a_quarter_of_the_step(found):
    swept: list[dict[str, Any]] = find_rows(found["eta"], "sweep")
    rows = {row["variance"]: row for row in swept if row["sampler"] == "edula"}
    assert outcomes(found["eta"])["edula has a higher validation RMSE at very small η."] == "shown"
    assert rows[0.01]["effective_step"] is rows[0.02]["effective_step"] is None
    assert rows[0.05]["effective_step"] > 0.2
    assert rows[0.02]["rmse"].low > 1.5 * rows[0.05]["rmse"].high


def test_printed_theorems_fail_and_corrected_ones_hold(found):
    said = list(outcomes(found["theory"]).values())
    assert said == ["shown", *["opposite"] * 6, *["shown"] * 3]


def test_tilt_and_ensemble_are_flatter_at_equal_budget(found):
    said = outcomes(found["flatness"])
    assert said["roughness_tilted spends more time in flat modes than tempering of the same E[U]."] == "shown"
    assert said["A solution of robust_ensemble is flatter than one of dmala."] == "shown"
    assert said["A solution of edmala is flatter than one of dmala."] != "shown"
    rows = found["flatness"].table("tilt").rows
    assert [row["flat_exact"] for row in rows] == pytest.approx(
        [0.1451, 0.1961, 0.2516, 0.3669, 0.5814], abs=1e-4
    )
    tempered = np.array([row["flat_tempered"] for row in rows])
    assert np.all(tempered < 0.15)
