"""The summary as a table, as text and as JSON; and the running statistics of runs without draws."""

import io
import json
from typing import Any

import jax
import numpy as np
import pytest
from rich.console import Console

import steppe
from steppe.run.result import Run
from steppe.targets.bernoulli import paper_bernoulli
from unit.synthetic import fair_bits, trace_of, without_levels

TARGET = paper_bernoulli()
STATES = np.asarray(TARGET.domain.enumerate())


def run_of(trace, evaluations_per_step=1, seconds=2.0) -> Run:
    """A run with a trace made by hand."""
    description = sampled().description.model_copy(
        update={
            "evaluations_per_step": evaluations_per_step,
            "domain": trace.domain.to_json(),
            "num_warmup": 100,
        }
    )
    return Run(trace, description, seconds=seconds)


def sampled(**options) -> Run:
    counts = {"num_chains": 3, "num_warmup": 50, "num_draws": 200, **options}
    return steppe.sample(TARGET, steppe.dmala(), key=jax.random.key(1), **counts)


@pytest.fixture(scope="module")
def run_without_draws():
    return sampled(keep="stats")


def rendered(summary) -> str:
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(summary)
    return console.export_text()


# ---- layout --------------------------------------------------------------------------------------


def test_text_shows_figures_verdicts_and_that_nothing_is_wrong():
    text = str(run_of(trace_of(fair_bits())).summary({"share": lambda positions: positions.mean(axis=-1)}))
    for words in (
        "dmala on Binary(6)",
        "4 chains × 400 draws",
        "U (log-density)",
        "share",
        "6 mixed",
        "4 moving",
    ):
        assert words in text
    assert "All sites have converged" in text
    assert "verdict" not in text  # a table of chains only where one has something to say


def test_text_and_table_fit_a_hundred_columns_and_say_the_same():
    levels = fair_bits(num_chains=20)
    levels[3, :, :2] = 1
    levels[7] = levels[7, 0]
    summary = run_of(trace_of(levels)).summary()
    lines = [line.rstrip() for line in rendered(summary).splitlines()]
    assert lines == str(summary).splitlines()
    assert max(len(line) for line in lines) <= 100


def test_chains_with_something_to_say_are_shown_first():
    levels = fair_bits(num_chains=30)
    levels[25] = levels[25, 0]
    text = str(run_of(trace_of(levels)).summary())
    assert any(line.split()[:1] == ["25"] and "constant" in line for line in text.splitlines())
    assert "29 more" in text


def test_sites_are_never_given_an_rhat():
    levels = fair_bits()
    levels[:, :, 0] = np.array([0, 0, 1, 1])[:, None]
    run = run_of(trace_of(levels, log_density=np.random.default_rng(0).normal(size=(4, 400))))
    assert "1 not converged" in str(run.summary())
    assert "R-hat of" not in " ".join(run.diagnose().findings)


def test_undefined_figures_are_shown_as_a_dash_and_null():
    levels = np.ones((4, 50, 3), np.uint8)
    summary = run_of(trace_of(levels)).summary()
    assert "–" in str(summary)
    printed: dict[str, Any] = summary.to_dict()
    assert printed["quantities"]["log_density"]["rhat"] is None


def test_dictionary_is_strict_json_with_everything_in_it():
    levels = fair_bits()
    levels[:, :, 0] = np.array([0, 0, 1, 1])[:, None]
    content = run_of(trace_of(levels)).summary().to_dict()
    again = json.loads(json.dumps(content, allow_nan=False))
    assert again == content
    assert again["ok"] is False
    assert again["sites"][0] == "not converged"
    assert again["num_evaluations"] == 1600
    assert again["ess_per_second"] == pytest.approx(again["quantities"]["log_density"]["ess"] / 2.0)


def test_evaluations_are_counted_by_the_cost_of_a_step():
    summary = run_of(trace_of(fair_bits()), evaluations_per_step=2.5).summary()
    assert summary.to_dict()["num_evaluations"] == 4000


def test_runs_that_did_not_record_the_cost_of_a_step_are_measured_per_step():
    summary = run_of(trace_of(fair_bits()), evaluations_per_step=None).summary()
    assert summary.to_dict()["ess_per_evaluation"] is None
    assert "per step, whose cost depends on the target" in str(summary)


def test_names_cannot_steer_a_terminal_or_the_markup():
    hostile = "\x1b[31m[red]x[/]"
    text = str(run_of(trace_of(fair_bits())).summary({hostile: lambda positions: positions.mean(axis=-1)}))
    assert "\x1b" not in text
    assert "[red]x[/]" in text


def test_statistics_alone_are_summarised_without_sites():
    summary = run_of(without_levels(trace_of(fair_bits()))).summary()
    assert summary.to_dict()["sites"] is None
    assert "mixed" not in str(summary)


def test_large_log_densities_are_shown_with_decimals():
    log_density = -54321 + np.random.default_rng(0).normal(size=(4, 400))
    assert "−54321.0" in str(run_of(trace_of(fair_bits(), log_density=log_density)).summary())


def test_limit_decides_whether_a_run_is_ok():
    run = run_of(trace_of(fair_bits()))
    assert run.diagnose().ok
    assert not run.diagnose(limit=0.9).ok


# ---- running statistics -----------------------------------------------------------------------------


def test_running_figures_are_those_of_the_draws(run_without_draws):
    kept = sampled()
    figures = run_without_draws.observers
    levels = kept.trace.levels().astype(float)
    np.testing.assert_array_equal(figures.num_seen, [200] * 3)
    np.testing.assert_allclose(figures.mean, levels.mean(axis=1), atol=1e-5)
    np.testing.assert_allclose(figures.variance, levels.var(axis=1, ddof=1), atol=1e-4)
    log_density = kept.trace.statistic("log_density")
    np.testing.assert_array_equal(figures.best_log_density, log_density.max(axis=1))
    best = np.argmax(log_density, axis=1)
    np.testing.assert_array_equal(figures.best_position, levels[np.arange(3), best])
    counts = (levels[:, :, None] == STATES).all(axis=-1).sum(axis=1)
    np.testing.assert_array_equal(figures.visits, counts)


def test_run_on_disk_has_running_figures_where_it_was_sampled(tmp_path, run_without_draws):
    run = sampled(keep="stats", out=tmp_path / "run")
    np.testing.assert_array_equal(run.observers.visits, run_without_draws.observers.visits)
    with pytest.raises(steppe.errors.RunError, match="resume=True"):
        steppe.open_run(tmp_path / "run").observers  # noqa: B018
    resumed = sampled(keep="stats", out=tmp_path / "run", resume=True)
    np.testing.assert_array_equal(resumed.observers.visits, run.observers.visits)


def test_run_that_kept_its_draws_has_no_running_figures():
    with pytest.raises(steppe.errors.RunError, match="keep='draws'"):
        sampled(num_draws=5).observers  # noqa: B018


def test_extended_run_takes_the_running_figures_with_it():
    run = sampled(keep="none", num_draws=20)
    longer = run.extend(10)
    np.testing.assert_array_equal(longer.observers.num_seen, [30] * 3)
    with pytest.raises(steppe.errors.RunError, match="was extended"):
        run.observers  # noqa: B018


def test_summary_of_a_real_run_without_draws_has_a_table(run_without_draws):
    text = str(run_without_draws.summary())
    assert "3 chains × 200 draws" in text
    assert "per model evaluation" in text
