"""A command reads every file of a run once, and computes its summary once."""

from collections import Counter
from pathlib import Path
from unittest import mock

import jax
import pytest

import steppe
from steppe.cli import main
from steppe.diagnostics import mixing
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
    """How often each array file was read."""
    counts, read_bytes = Counter(), Path.read_bytes

    def counted(path):
        counts[path] += path.suffix == ".npz"
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", counted)
    return counts


def call(*arguments):
    counted = mock.patch.object(mixing, "assess", wraps=mixing.assess)
    with counted as assess, pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    assert stop.value.code in (0, 1)
    return assess.call_count


@pytest.mark.parametrize("verb", ["report", "diagnose", "verify"])
@pytest.mark.parametrize("kind", ["whole", "shards"])
def test_every_segment_is_read_once(kind, verb, reads, request, tmp_path, capsys):
    path = request.getfixturevalue(kind)
    reads.clear()  # of making the run
    out = ["--out", tmp_path / "page.html"] if verb == "report" else []
    assert call(verb, path, *out) == (verb != "verify")
    segments = set(path.rglob("segments/*.npz"))
    assert len(segments) == {"whole": 3, "shards": 2}[kind]
    assert {segment: reads[segment] for segment in segments} == dict.fromkeys(segments, 1)
    capsys.readouterr()


def test_merging_reads_every_segment_of_the_shards_and_of_the_whole_once(shards, reads, tmp_path, capsys):
    assert call("merge", shards, "--out", tmp_path / "run") == 1
    segments = {*shards.rglob("segments/*.npz"), *(tmp_path / "run").rglob("segments/*.npz")}
    assert {segment: reads[segment] for segment in segments} == dict.fromkeys(segments, 1)
    capsys.readouterr()


def test_a_run_that_is_opened_is_verified_and_keeps_its_rows_on_disk(whole, reads):
    run = steppe.open_run(whole)
    segments = set(whole.rglob("segments/*.npz"))
    assert {segment: reads[segment] for segment in segments} == dict.fromkeys(segments, 1)
    assert run.trace.num_rows == 100
    assert {segment: reads[segment] for segment in segments} == dict.fromkeys(segments, 2)
