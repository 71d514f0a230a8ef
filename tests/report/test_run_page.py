"""Run directories as pages: what mixed, what has not converged, what is damaged."""

import shutil
from typing import Any

import jax
import numpy as np
import pytest

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
    assert {figure.key for figure in results.figures} == set(figures) == {"trace", "changes"}
    assert problems == []


def test_a_page_beside_a_run_leaves_the_run_whole(run_path, tmp_path):
    copy = shutil.copytree(run_path, tmp_path / "copy")
    page = write_page(copy).read_text(encoding="utf-8")
    assert "gibbs on Binary(4)" in page
    assert page.count("data:image/svg+xml") == 2
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
