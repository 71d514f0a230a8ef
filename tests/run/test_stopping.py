"""`sample` ends by time, effective draws, agreement, value or patience, with the draws it would have made."""

import itertools
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe.cli import main
from steppe.errors import CallbackError, RunError

KEY = jax.random.key(5)
TARGET = steppe.Target(lambda x: jnp.sum(x) / 2, steppe.Binary(6))


def sample(**changes):
    request = {"num_chains": 4, "num_warmup": 50, "num_draws": 20_000, **changes}
    return steppe.sample(TARGET, steppe.gibbs(), key=KEY, **request)


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_a_run_that_was_stopped_has_the_first_draws_of_the_whole_one(where, tmp_path):
    out = None if where == "memory" else tmp_path / "run"
    run = sample(until=steppe.until(ess=300), out=out)
    num_draws = run.levels.shape[1]
    assert num_draws < 20_000
    assert run.summary().mixing.log_density.ess >= 300
    assert "ESS of U" in run.stopped
    assert not run.shortfall
    np.testing.assert_array_equal(run.levels, sample(num_draws=num_draws).levels)


def test_both_of_two_conditions_on_draws_must_hold():
    run = sample(until=steppe.until(ess=20, rhat=1.01))
    found = run.summary().mixing.log_density
    assert found.rhat <= 1.01
    assert found.ess >= 20


def test_what_was_not_reached_is_said():
    run = sample(num_draws=100, until=steppe.until(ess=1e6))
    assert not run.stopped
    assert "of 1e+06" in run.shortfall
    assert "Allow more draws" in run.shortfall
    assert "Allow more draws" in str(run.summary())
    assert "1e+09 was asked for" in sample(num_draws=100, until=steppe.until(value=1e9)).shortfall


def test_earlier_draws_count_when_a_run_is_continued(tmp_path):
    first = sample(num_draws=400, out=tmp_path / "run", thinning=2)
    assert (first.trace.statistic("acceptance_rate") == 1).all()  # of Gibbs, also over two steps
    wanted = 0.9 * first.summary().mixing.log_density.ess
    again = sample(out=tmp_path / "run", thinning=2, resume=True, until=steppe.until(ess=wanted))
    assert again.levels.shape[1] < 2 * 400 + 100
    np.testing.assert_array_equal(again.levels[:, :400], first.levels)


def test_a_run_ends_by_value_and_by_patience():
    assert "log-density 3" in sample(until=steppe.until(value=3.0)).stopped
    run = sample(until=steppe.until(patience=100))
    assert "steps without a better one" in run.stopped
    assert run.levels.shape[1] < 20_000


def test_a_run_ends_in_time(tmp_path):
    kept = sample(num_draws=10**5, time_limit=0.01, keep="stats", out=tmp_path / "run")
    assert "time limit" in kept.stopped
    begun = time.monotonic()
    run = sample(num_draws=10**8, time_limit=1.0, keep="stats")
    assert time.monotonic() - begun < 60
    assert run.stopped == "the time limit of 1 s"


def test_a_run_in_memory_goes_on_until_it_is_good():
    short = sample(num_draws=30)
    run = short.extend_until(ess=300)
    assert run.summary().mixing.log_density.ess >= 300
    np.testing.assert_array_equal(run.levels, sample(num_draws=run.levels.shape[1]).levels)
    never = sample(num_draws=30).extend_until(ess=1e9, max_draws=50)
    assert never.levels.shape[1] == 80
    assert "of 1e+09" in never.shortfall


def test_a_callback_is_told_of_every_row():
    seen = []
    run = sample(num_draws=500, on_chunk=seen.append)
    assert sum(len(one.log_density) for one in seen) == seen[-1].num_rows == seen[-1].num_rows_planned == 550
    np.testing.assert_allclose(
        np.concatenate([one.log_density for one in seen]).T, run.trace.arrays["log_density"]
    )
    assert seen[0].is_warmup
    assert not seen[-1].is_warmup
    assert all(one.steps_per_second > 0 for one in seen)


def test_what_a_callback_raises_is_named_and_everything_is_kept(tmp_path):
    calls = itertools.count()

    def on_chunk(_):
        if next(calls) == 2:
            raise ValueError("no connection")

    with pytest.raises(CallbackError, match=r"`sample\(on_chunk=...\)` raised ValueError: 'no connection'"):
        sample(out=tmp_path / "run", on_chunk=on_chunk)
    kept = steppe.open_run(tmp_path / "run").trace
    assert kept.num_rows > 0
    resumed = sample(out=tmp_path / "run", resume=True, num_draws=2000)
    np.testing.assert_array_equal(resumed.levels, sample(num_draws=2000).levels)


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (steppe.until, "none was given"),
        (lambda: steppe.until(rhat=1.0), "must be above 1"),
        (lambda: steppe.until(ess=0), "until(ess=...)"),
        (lambda: sample(time_limit=0), "sample(time_limit=...)"),
        (lambda: sample(until=400), "until"),
        (lambda: sample(on_chunk=3), "on_chunk"),
        (lambda: sample(num_draws=20).extend_until(), "none was given"),
        (lambda: sample(num_draws=20).extend_until(ess=10, max_draws=0), "max_draws"),
    ],
)
def test_rules_that_mean_nothing_are_refused(mistake, said):
    with pytest.raises(RunError) as caught:
        mistake()
    assert said in str(caught.value)


def test_the_command_line_says_why_it_ended_and_what_it_missed(tmp_path, capsys):
    small = ["--target", "paper_bernoulli", "--recipe", "gibbs", "--num-warmup", "10"]

    def call(*words):
        with pytest.raises(SystemExit) as left:
            main([*map(str, words)])
        return left.value.code or 0

    assert call("run", "--out", tmp_path / "a", *small, "--num-draws", 50000, "--until-ess", 100) == 0
    assert "Ended by ESS of U" in capsys.readouterr().out
    assert call("run", "--out", tmp_path / "b", *small, "--num-draws", 50, "--until-ess", 1e6) == 1
    assert "`until` is not met" in capsys.readouterr().err
