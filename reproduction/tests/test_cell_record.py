"""A record goes on from cell to cell, names what made them, and refuses what does not fit."""

import json

import numpy as np
import pytest

import fake_experiment as fake
import steppe
from steppe.errors import DamagedRunError, RunMismatchError
from steppe.run.storage.durable import read_json, write_json
from steppe.targets.binary_network import binary_network
from steppe_edlp import record as records
from steppe_edlp.bnn import chains
from steppe_edlp.engine import carry_out
from steppe_edlp.record import Record
from steppe_edlp.request import Request
from steppe_edlp.work import Checkpoint


@pytest.fixture(autouse=True)
def known(monkeypatch):
    fake.install(monkeypatch.setitem)
    fake.CALLS.clear()


@pytest.fixture
def kept(tmp_path):
    """A record of two cells, and the directory of results."""
    record = Record(tmp_path / "record")
    carry_out(fake.EXPERIMENT, Request(num_seeds=2), tmp_path / "first", record=record)
    return record


def cells_of(record):
    return sorted((record.directory / "sound-quick" / "fake").glob("*.json"))


def test_more_seeds_add_cells_and_make_none_again(kept, tmp_path):
    fake.CALLS.clear()
    carry_out(fake.EXPERIMENT, Request(num_seeds=4), tmp_path / "second", record=kept)
    assert fake.CALLS == ["2", "3"]
    assert [path.stem for path in cells_of(kept)] == [f"part-{n}" for n in range(4)]


def test_a_cell_names_commit_code_and_software(kept):
    made = read_json(cells_of(kept)[0])["made"]
    assert made.keys() == {"commit", "code", "software", "samplers", "started"}
    assert {"jaxlib", "cpu"} <= made["software"].keys()


def test_other_code_is_refused_unless_asked_for(kept, tmp_path, monkeypatch):
    monkeypatch.setattr(records, "digest_code", lambda name: "another")
    with pytest.raises(RunMismatchError, match=r"other code.*`--other-code`"):
        carry_out(fake.EXPERIMENT, Request(num_seeds=3), tmp_path / "second", record=kept)
    fake.CALLS.clear()
    allowed = Record(kept.directory, other_code=True)
    carry_out(fake.EXPERIMENT, Request(num_seeds=3), tmp_path / "third", record=allowed)
    assert fake.CALLS == ["2"]
    assert [read_json(path)["made"]["code"] == "another" for path in cells_of(kept)] == [False, False, True]


def test_a_damaged_cell_is_named(kept, tmp_path):
    path = cells_of(kept)[1]
    path.write_text(path.read_text().replace('"square": 1', '"square": 2'))
    with pytest.raises(DamagedRunError, match="part-1"):
        carry_out(fake.EXPERIMENT, Request(num_seeds=3), tmp_path / "second", record=kept)


@pytest.mark.parametrize(
    ("key", "value", "said"), [("schema", 9, "schema 9"), ("digest", "0", "other sizes")]
)
def test_a_cell_of_another_schema_or_size_is_refused(kept, tmp_path, key, value, said):
    path = cells_of(kept)[0]
    content = json.loads(path.read_text())
    content.pop("sha256")
    write_json(path, {**content, key: value})
    with pytest.raises(RunMismatchError, match=said):
        carry_out(fake.EXPERIMENT, Request(num_seeds=3), tmp_path / "second", record=kept)


def test_draws_of_other_hyper_parameters_have_another_digest():
    first, second = (steppe.dmala(step_size=size) for size in (0.1, 0.2))
    assert records.digest_draws(first) == records.digest_draws(steppe.dmala(step_size=0.1))
    assert records.digest_draws(first) != records.digest_draws(second)


@pytest.mark.slow
def test_chains_go_on_from_their_checkpoint(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 3))
    target = binary_network(x, np.float64(x[:, 0] > 0), 4, preset="published")
    recipe = steppe.edmala(step_size=0.1, center_step_size=0.01, coupling_variance=4.0)
    counts = {"num_chains": 3, "num_points": 6}
    whole = chains.log_chains(target, recipe, x, 3, **counts)
    monkeypatch.setattr(chains, "SEGMENT", 3)
    place = Checkpoint(tmp_path / "c.npz", "digest")
    save = place.save

    def save_and_stop(arrays):
        save(arrays)
        raise KeyboardInterrupt

    monkeypatch.setattr(place, "save", save_and_stop)
    with pytest.raises(KeyboardInterrupt):
        chains.log_chains(target, recipe, x, 3, **counts, checkpoint=place)
    assert Checkpoint(tmp_path / "c.npz", "other").load() is None
    again = chains.log_chains(
        target, recipe, x, 3, **counts, checkpoint=Checkpoint(tmp_path / "c.npz", "digest")
    )
    for one, other in zip(whole, again, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)  # float32 means of the same draws
