"""`steppe report` and `steppe watch`: what they print, their exit codes, and that a writer never notices."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from page_examples import digits, write_examples
from steppe.cli import main
from steppe.run.storage.directory import RunDirectory
from steppe.run.storage.glance import glance

SMALL = ["--target", "paper_bernoulli", "--recipe", "gibbs", "--num-draws", "30", "--num-warmup", "10"]


def call(*arguments: object) -> int:
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "run"
    assert call("run", "--out", path, *SMALL) == 0
    return path


def test_report_prints_the_path_of_the_page_and_what_it_does_not_show(tmp_path, capsys):
    write_examples(tmp_path)
    assert call("report", tmp_path) == 0
    said = capsys.readouterr()
    assert said.out.strip() == str(tmp_path / "report.html")
    assert "tsp/results.json" in said.err
    assert call("report", tmp_path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["page"] == str(tmp_path / "report.html")


def test_report_writes_where_it_is_told(finished, tmp_path, capsys):
    assert call("report", finished, "--out", tmp_path / "page.html") == 0
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert not (finished / "report.html").exists()
    capsys.readouterr()


@pytest.mark.parametrize("verb", ["report", "watch"])
@pytest.mark.parametrize("name", ["nowhere", "a" * 5000, "[red]\x1b[31mx", "empty", "file"])
def test_what_is_no_directory_of_results_is_a_bad_request(tmp_path, capsys, monkeypatch, verb, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    assert call(verb, name) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "\x1b" not in said.err
    assert "Traceback" not in said.err
    assert not list((tmp_path / "empty").iterdir())


def test_a_future_schema_is_a_bad_request_and_an_unwritable_page_a_storage_failure(tmp_path, capsys):
    path = digits().save(tmp_path)
    assert call("report", tmp_path, "--out", tmp_path / "no" / "page.html") == 3
    path.write_text(path.read_text().replace('"schema_version": 1', '"schema_version": 9'))
    assert call("report", tmp_path) == 2
    assert "schema 9" in capsys.readouterr().err


def test_a_device_is_not_replaced_by_a_page(finished, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    assert call("report", finished, "--out", tmp_path / "pipe") == 3
    assert "it is no regular file" in capsys.readouterr().err
    assert (tmp_path / "pipe").is_fifo()


def test_watch_ends_at_once_when_the_run_is_complete(finished, capsys):
    assert call("watch", finished) == 0
    shown = capsys.readouterr().out
    assert "40 of 40 steps" in shown
    assert "complete" in shown
    assert "not converged, 0 constant, of 4" in shown
    assert re.search(r"U so far +R-hat 1\.\d{3}, ESS \d+", shown)


@pytest.mark.parametrize("every", ["0", "-1", "nan", "x"])
def test_watch_wants_a_positive_wait(finished, capsys, every):
    assert call("watch", finished, "--every", every) == 2
    assert "every" in capsys.readouterr().err


def test_watch_reads_only_and_takes_no_lock(finished):
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*")}
    writer = RunDirectory(finished)
    writer.lock()
    try:
        assert glance(finished).is_complete
    finally:
        writer.release()
    assert {path: path.stat().st_mtime_ns for path in finished.rglob("*")} == before


def test_watch_names_damage(finished, tmp_path, capsys):
    copy = shutil.copytree(finished, tmp_path / "copy")
    content = bytearray((copy / "rows.bin").read_bytes())
    content[-1] ^= 1
    (copy / "rows.bin").write_bytes(content)
    assert call("watch", copy, "--once") == 0
    assert "the newest do not match their digest: see `steppe verify`" in capsys.readouterr().out
    (copy / "rows.bin").write_bytes(content[:-1])
    assert call("watch", copy, "--once") == 0
    assert f"damaged: rows.bin has {len(content) - 1} bytes" in capsys.readouterr().out


def test_watch_of_a_run_that_was_made_longer_says_what_was_asked_for_at_first(finished, tmp_path, capsys):
    copy = shutil.copytree(finished, tmp_path / "copy")
    assert call("resume", copy, "--num-draws", "50") == 0
    capsys.readouterr()
    assert call("watch", copy) == 0
    shown = capsys.readouterr().out
    assert re.search(r"\d+ of first asked for 40 steps per chain \(draws\)", shown)
    assert "damaged" not in shown


def test_a_look_skips_a_line_that_the_writer_has_not_finished(finished, tmp_path):
    copy = shutil.copytree(finished, tmp_path / "copy")
    with (copy / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"sha256":"')
    assert glance(copy).num_rows == 40


def test_a_run_before_its_first_commit_can_be_watched(finished, tmp_path, capsys):
    copy = shutil.copytree(finished, tmp_path / "copy")
    (copy / "acknowledged.json").unlink()
    (copy / "journal.jsonl").write_bytes(b"")
    assert call("watch", copy, "--once") == 0
    assert "nothing is committed yet" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_watch_follows_a_growing_run_and_ctrl_c_leaves_with_130(tmp_path):
    environment = {**os.environ, "COLUMNS": "100"}
    endless = [
        "--target",
        "paper_bernoulli",
        "--recipe",
        "gibbs",
        "--num-draws",
        "4000000000",
        "--num-warmup",
        "0",
    ]
    out = tmp_path / "run"
    steppe = [sys.executable, "-m", "steppe"]
    writer = subprocess.Popen([*steppe, "run", "--out", str(out), *endless], env=environment)
    try:
        while not (out / "acknowledged.json").exists():
            assert writer.poll() is None
            time.sleep(0.1)
        watcher = subprocess.Popen(
            [*steppe, "watch", str(out), "--every", "0.2"], stdout=subprocess.PIPE, text=True, env=environment
        )
        try:
            time.sleep(30.0)  # a commit every ten seconds, and a busy processor takes as long to start
            watcher.send_signal(signal.SIGINT)
            shown, _ = watcher.communicate(timeout=60)
        finally:
            watcher.kill()
        assert watcher.returncode == 130
        assert "last commit" in shown
        assert "time left" in shown
        assert writer.poll() is None
    finally:
        writer.send_signal(signal.SIGINT)
        assert writer.wait(timeout=60) == 130
    assert RunDirectory(out).problems() == []
