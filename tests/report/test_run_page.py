"""Run directories as pages: what mixed, what has not converged, what is damaged."""

import shutil
from typing import Any

import jax
import numpy as np
import pytest
from matplotlib.patches import Rectangle

import steppe
from run.resealing import change_run
from steppe.errors import DamagedRunError, DamagedRunWarning, RunError
from steppe.report.page import write_page
from steppe.report.page.gather import gather
from steppe.results import Estimate
from steppe.run.storage.directory import RunDirectory
from steppe.targets.bernoulli import paper_bernoulli


def sampled(out, **changes):
    request = {"num_chains": 4, "num_warmup": 10, "num_draws": 200, **changes}
    return steppe.sample(paper_bernoulli(), steppe.gibbs(), key=jax.random.key(0), out=out, **request)


@pytest.fixture(scope="module")
def run_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "a"
    sampled(path)
    return path


def test_the_numbers_are_those_of_the_summary(run_path):
    (section,), problems = gather(run_path)
    results, figures = section
    summary: dict[str, Any] = steppe.open_run(run_path).summary().to_dict()
    row = results.table("quantities").rows[0]
    figures_of_u = summary["quantities"]["log_density"]
    assert isinstance(row["mean"], Estimate)
    assert row["mean"].value == pytest.approx(figures_of_u["mean"])
    assert row["rhat"] == figures_of_u["rhat"]
    assert [row["mean"] for row in results.table("chains").rows] == pytest.approx(
        [chain["mean_log_density"] for chain in summary["chains"]]
    )
    counts = {row["verdict"]: row["count"] for row in results.table("sites").rows}
    assert counts == {
        label: summary["sites"].count(label) for label in ("mixed", "not converged", "constant")
    }
    acceptance = [row["acceptance"] for row in results.table("chains").rows]
    assert np.mean(np.array(acceptance, float)) == pytest.approx(summary["acceptance_rate"])
    flips = [row["flips"] for row in results.table("chains").rows]
    assert np.mean(np.array(flips, float)) == pytest.approx(summary["flip_rate"])
    assert (
        {figure.key for figure in results.figures} == set(figures) == {"trace", "mixing", "warmup", "sites"}
    )
    assert problems == []
    trace = steppe.open_run(run_path).trace
    highest = trace.statistic("log_density").max()
    assert results.facts["best draw"].startswith(f"U = {highest:.5g}: ")
    best = [int(level) for level in results.facts["best draw"][-4:]]
    assert paper_bernoulli().log_density(np.array(best, float)) == pytest.approx(highest)


def test_a_page_beside_a_run_leaves_the_run_whole(run_path, tmp_path):
    copy = shutil.copytree(run_path, tmp_path / "copy")
    page = write_page(copy).read_text(encoding="utf-8")
    assert "gibbs on Binary(4)" in page
    assert page.count("data:image/svg+xml") == 4
    assert RunDirectory(copy).problems() == []


@pytest.mark.parametrize("keep", ["stats", "none"])
def test_runs_that_kept_less_still_have_a_page(tmp_path, keep):
    sampled(tmp_path / "run", keep=keep)
    results = gather(tmp_path / "run").sections[0].results
    assert bool(results.tables) == (keep == "stats")
    assert "report" in write_page(tmp_path / "run").name


def test_parts_of_a_run_are_one_page(tmp_path):
    for index in range(2):
        sampled(tmp_path / "run", num_chains=8, shard=(index, 2))
    results = gather(tmp_path / "run").sections[0].results
    assert len(results.table("chains").rows) == 8


def test_damage_is_named_and_the_commit_before_it_is_shown(run_path, tmp_path):
    copy = shutil.copytree(run_path, tmp_path / "copy")
    sampled(copy, num_draws=300, resume=True)
    newest = copy / "journal.jsonl"
    newest.write_bytes(newest.read_bytes()[:-20])
    with pytest.warns(DamagedRunWarning):
        (section,), problems = gather(copy)
    assert any(newest.name in problem for problem in problems)
    assert section.results.table("quantities").rows


def test_a_run_that_is_not_complete_says_so(run_path, tmp_path):
    copy = shutil.copytree(run_path, tmp_path / "copy")
    change_run(copy, lambda content: content.update(num_draws=1000))
    verdicts = {verdict.claim: verdict for verdict in gather(copy).sections[0].results.verdicts}
    assert verdicts["The run is complete."].sentence == "200 of 1000 draws per chain are committed."


def test_a_run_of_which_nothing_is_whole_is_named_not_shown(run_path, tmp_path):
    copy = shutil.copytree(run_path, tmp_path / "copy")
    (copy / "rows.bin").write_bytes((copy / "rows.bin").read_bytes()[:-1])
    with pytest.raises(DamagedRunError, match="no commit that verifies"):
        write_page(copy)


def test_a_run_without_a_commit_is_one_sentence(run_path, tmp_path):
    copy = shutil.copytree(run_path, tmp_path / "copy")
    (copy / "acknowledged.json").unlink()
    for name in ("journal.jsonl", "rows.bin"):
        (copy / name).write_bytes(b"")
    with pytest.raises(RunError, match="no committed draws"):
        write_page(copy)


def test_a_run_is_drawn_as_four_panels_of_its_log_density():
    run = sampled(None)
    figure = run.plot()
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "log-density U",
        "density by chain",
        "autocorrelation of U",
        "effective sample size of U",
    ]
    trace = figure.axes[0]
    assert len(trace.lines) == 4
    np.testing.assert_array_equal(trace.lines[1].get_ydata(), run.trace.arrays["log_density"][1])
    assert np.asarray(figure.axes[3].lines[0].get_ydata())[-1] == pytest.approx(
        run.summary().mixing.log_density.ess
    )


def test_many_chains_are_drawn_as_a_fan():
    trace = sampled(None, num_chains=9, num_draws=50).plot().axes[0]
    assert len(trace.lines) == 1
    assert len(trace.collections) == 2


def test_ranks_of_chains_on_different_levels_leave_the_band():
    from steppe.report.run_figures import _rank

    values = np.array([np.arange(10.0), 100 + np.arange(10.0)])
    np.testing.assert_array_equal(_rank(values), np.arange(20).reshape(2, 10) + 0.5)


def test_sites_are_drawn_one_by_one_or_by_how_many_change():
    run = sampled(None)
    (axes,) = run.plot_sites().axes
    fraction = (run.levels[:, 1:] != run.levels[:, :-1]).mean(axis=(0, 1))
    drawn = {site: value for line in axes.lines for site, value in np.asarray(line.get_xydata())}
    assert drawn == pytest.approx(dict(enumerate(fraction)))
    wide = steppe.Target(lambda bits: bits.sum() * 0.0, steppe.Binary(2001))
    run = steppe.sample(wide, steppe.dula(), key=jax.random.key(0), num_chains=2, num_warmup=0, num_draws=5)
    (axes,) = run.plot_sites().axes
    assert sum(bar.get_height() for bar in axes.patches if isinstance(bar, Rectangle)) == 2001


def test_states_of_two_dimensions_are_pictures():
    plane = steppe.Target(lambda spins: 0.2 * (spins[1:] * spins[:-1]).sum(), steppe.Spin((3, 5)))
    run = steppe.sample(plane, steppe.dmala(), key=jax.random.key(0), num_chains=2, num_draws=20)
    best, last, mean = (np.asarray(axes.images[0].get_array()) for axes in run.plot_sites().axes)
    chain, row = np.unravel_index(np.argmax(run.trace.statistic("log_density")), (2, 20))
    np.testing.assert_array_equal(best, run.levels[chain, row].reshape(3, 5))
    np.testing.assert_array_equal(last, run.levels[0, -1].reshape(3, 5))
    np.testing.assert_allclose(mean, run.levels.mean(axis=(0, 1)).reshape(3, 5))


def test_a_run_without_statistics_cannot_be_drawn():
    run = sampled(None, keep="none")
    with pytest.raises(RunError, match="needs kept statistics"):
        run.plot()
    with pytest.raises(RunError, match="keeps no draws"):
        run.plot_sites()
