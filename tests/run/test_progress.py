"""The line of progress: what it says, that it fits, and where it is shown."""

import re
import sys
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import steppe
from steppe.run import progress
from steppe.run.plan import Plan
from steppe.run.progress import Clock, count_bar, describe_chunk, join_parts, progress_bar
from steppe.run.stopping import KeptDraws
from steppe.targets import paper_bernoulli

PLAN = Plan(num_chains=4, num_warmup=1_000_000, num_draws=12_345_678, thinning=2, keep="draws", chain_block=4)


def make_chunk(first_row, num_rows=100, seconds=0.5):
    values = np.random.default_rng(first_row).normal(size=(num_rows, 4))
    rows = SimpleNamespace(log_density=values, acceptance_rate=np.full((num_rows, 4), 0.5736))
    return SimpleNamespace(first_row=first_row, num_rows=num_rows, rows=rows, seconds=seconds)


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr("steppe.run.progress.time.monotonic", lambda: now.seconds)
    return now


def test_the_line_says_how_far_it_is_and_fits_eighty_columns(monkeypatch, clock):
    monkeypatch.setenv("COLUMNS", "200")
    watch, draws = Clock(PLAN.num_rows), KeptDraws(PLAN.num_warmup_rows)
    watch.describe(0)
    chunk = make_chunk(6_000_000)
    draws.add(chunk.first_row, chunk.rows.log_density)
    clock.seconds = 3600.0
    line = describe_chunk(PLAN, chunk, watch, draws, {"magnetisation": 0.1234, "another": 1.0})
    # 100 rows of 2 steps of 4 chains in half a second
    assert line.startswith("draws 5500100/12345678  47 %  1:08:27 left  1.6k steps/s  accept 0.57  ESS ")
    assert len(line) < 80


@pytest.mark.parametrize("columns", [20, 40, 79, 80])
def test_what_does_not_fit_is_left_out(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    line = join_parts(["draws 100/1000", "10 %", "1:23 left", "", "123k steps/s", "accept 0.57", "ESS 800"])
    assert line.startswith("draws 100/1000")
    assert len(line) < columns


def test_rows_of_warmup_are_no_draws():
    draws = KeptDraws(num_warmup_rows=150)
    for first in (0, 100, 200):
        draws.add(first, make_chunk(first).rows.log_density)
    assert draws.num_rows == 150


def test_a_long_run_is_thinned_evenly():
    draws = KeptDraws(num_warmup_rows=7, max_rows=64)
    for first in range(0, 1000, 13):
        rows = np.arange(first, first + 13, dtype=float)[:, None]
        draws.add(first, rows)
    kept = np.concatenate(draws._parts)[:, 0]
    assert 32 <= len(kept) <= 64
    assert kept[0] == 7
    assert set(np.diff(kept)) == {16.0}


def test_effective_draws_are_those_of_all_rows():
    values = np.random.default_rng(1).normal(size=(4000, 4))
    draws = KeptDraws(0)
    for first in range(0, 4000, 100):
        draws.add(first, values[first : first + 100])
    ess, rhat = draws.measure()
    assert 13_000 < ess < 19_000  # of 16 000 independent draws
    assert rhat < 1.01


def test_a_log_gets_a_line_every_half_minute_and_none_of_short_runs(clock, capfd):
    with progress_bar(PLAN, None) as report:
        for second in range(100):
            clock.seconds = float(second)
            report(make_chunk(100 * second))
    lines = capfd.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "warm-up 3100/500000",
        "warm-up 6100/500000",
        "warm-up 9100/500000",
    ]


def test_a_terminal_has_one_line_that_is_renewed_and_cleared(clock, monkeypatch, capfd):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with count_bar("tuning", 4, None) as report:
        for done in range(1, 5):
            clock.seconds = float(done)
            report(done, "step_size")
    said = capfd.readouterr().err
    assert "\n" not in said
    assert "tuning  50 %  0:02 left  step_size" in said
    assert said.endswith(progress.CLEAR)


def test_a_notebook_has_text_that_is_renewed_and_stays(clock, monkeypatch):
    shown = []

    class Handle:
        def update(self, content, raw):
            shown.append(content["text/plain"])

    shell = type("ZMQInteractiveShell", (), {})()
    notebook = SimpleNamespace(get_ipython=lambda: shell)

    def show(content, raw, display_id):
        handle = Handle()
        handle.update(content, raw)
        return handle

    display = SimpleNamespace(display=show)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    with count_bar("annealing", 2, None) as report:
        report(0)  # too early: a short run leaves nothing behind
        clock.seconds = 2.0
        report(0.5)
        clock.seconds = 3.0
        report(1)
        report(2)
    assert shown == ["annealing  25 %", "annealing  50 %  0:02 left", "annealing  100 %  0:00 left"]


def test_nothing_is_shown_unless_it_is_wanted(monkeypatch, capfd):
    with count_bar("tuning", 4, False) as report:
        report(1)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("STEPPE_PROGRESS", "off")
    with count_bar("tuning", 4, None) as report:
        report(1)
    assert capfd.readouterr().err == ""


def test_a_run_shows_its_line(capfd):
    steppe.sample(
        paper_bernoulli(), steppe.gibbs(), key=jax.random.key(0), num_warmup=0, num_draws=50, progress=True
    )
    assert re.match(r"draws \d+/50  \d+ %  ", capfd.readouterr().err)
