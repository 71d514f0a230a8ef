"""A command reads every file of a run once, and computes its summary once."""

from collections import Counter
from unittest import mock

import jax
import pytest

import steppe
from steppe.cli import main
from steppe.diagnostics import mixing
from steppe.run.storage import run_files
from steppe.targets.bernoulli import paper_bernoulli


def sampled(out, **changes):
    request = {"num_chains": 4, "num_warmup": 10, "num_draws": 30, "progress": False, **changes}
    return steppe.sample(paper_bernoulli(), steppe.gibbs(), key=jax.random.key(0), out=out, **request)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of three commits."""
    path = tmp_path_factory.mktemp("runs") / "whole"
    sampled(path)
    for num_draws in (60, 90):
        sampled(path, num_draws=num_draws, resume=True)
    return path


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "shards"
    for index in range(2):
        sampled(path, num_chains=8, shard=(index, 2))
    return path


@pytest.fixture
def reads(monkeypatch):
    """How many bytes of rows were read of each file."""
    counts, read_commits = Counter(), run_files.read_commits

    def counted(path, commits):
        for commit, content in read_commits(path, commits):
            counts[path] += len(content)
            yield commit, content

    monkeypatch.setattr(run_files, "read_commits", counted)
    return counts


def count_reads(reads, *paths):
    """How often the rows of runs were read, each."""
    files = [file for path in paths for file in path.rglob(run_files.ROWS)]
    return [reads[file] / file.stat().st_size for file in files]


def call(*arguments):
    counted = mock.patch.object(mixing, "assess", wraps=mixing.assess)
    with counted as assess, pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    assert stop.value.code in (0, 1)
    return assess.call_count


@pytest.mark.parametrize("verb", ["report", "diagnose", "verify"])
@pytest.mark.parametrize("kind", ["whole", "shards"])
def test_rows_are_read_once(kind, verb, reads, request, tmp_path, capsys):
    path = request.getfixturevalue(kind)
    reads.clear()  # of making the run
    out = ["--out", tmp_path / "page.html"] if verb == "report" else []
    assert call(verb, path, *out) == (verb != "verify")
    assert count_reads(reads, path) == [1] * {"whole": 1, "shards": 2}[kind]
    capsys.readouterr()


def test_merging_reads_the_rows_of_the_shards_and_of_the_whole_once(shards, reads, tmp_path, capsys):
    reads.clear()
    assert call("merge", shards, "--out", tmp_path / "run") == 1
    assert count_reads(reads, shards, tmp_path / "run") == [1, 1, 1]
    capsys.readouterr()


def test_a_run_that_is_opened_keeps_its_rows_on_disk_and_checks_them_when_they_are_read(whole, reads):
    reads.clear()
    run = steppe.open_run(whole)
    assert count_reads(reads, whole) == [0]
    assert run.trace.num_rows == 100
    assert count_reads(reads, whole) == [1]
