"""Rows come back from a commit bit for bit, whatever is kept once."""

import numpy as np
import pytest
from small_runs import small_run

from steppe.errors import DamagedRunError
from steppe.run import driver, engine
from steppe.run.driver import Waiting
from steppe.run.storage.directory import RunDirectory
from steppe.run.storage.durable import (
    describe_columns,
    digest,
    read_arrays,
    read_json,
    seal_json,
    write_arrays,
)
from steppe.run.storage.journal import MARK_BYTES, ROWS_COMPARED, RowLayout, pack_rows, read_journal
from steppe.run.storage.record import Commit

CHAINS, ROWS = 3, 50


def rows() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    frozen = np.repeat(rng.random((1, CHAINS), np.float32), ROWS, axis=0)
    signed_zeros = np.zeros((ROWS, CHAINS), np.float32)
    signed_zeros[20, 1] = -0.0
    return {
        "levels": rng.integers(0, 255, (ROWS, CHAINS, 2), np.uint8),
        "log_density": rng.normal(size=(ROWS, CHAINS)),
        "step_size": frozen,
        "defects": np.zeros((ROWS, CHAINS), np.int32),
        "undefined": np.full((ROWS, CHAINS), np.nan, np.float32),
        "signed_zeros": signed_zeros,
        "all_but_one": np.eye(1, ROWS, 20, np.int32).T.repeat(CHAINS, axis=1),
        "copies": np.ones((ROWS, CHAINS, 4), bool),
    }


def there_and_back(written, num_rows=None) -> tuple[dict[str, np.ndarray], Commit]:
    """Pack rows and unpack them, from a commit that says what was packed."""
    constant, pieces = pack_rows(written, index=7)
    content = b"".join(pieces)
    commit = Commit(
        sha256="0" * 64,
        previous="0" * 64,
        index=7,
        first_row=0,
        num_rows=len(written["log_density"]) if num_rows is None else num_rows,
        seconds=0.0,
        offset=0,
        bytes=len(content),
        constant=constant,
        rows=digest(pieces),
        chains=None,
        software=None,
    )
    layout = RowLayout(describe_columns(written, 1), "draws" if commit.bytes > MARK_BYTES else "none")
    assert layout.count_bytes(commit.num_rows, commit.constant) == commit.bytes
    return layout.unpack(content, commit), commit


def test_rows_come_back_bit_for_bit():
    written = rows()
    read, _ = there_and_back(written)
    assert read.keys() == written.keys()
    for name, array in written.items():
        assert read[name].dtype == array.dtype
        assert read[name].shape == array.shape
        assert read[name].tobytes() == array.tobytes(), name


def test_what_never_changes_is_kept_once():
    _, commit = there_and_back(rows())
    assert set(commit.constant) == {"step_size", "defects", "undefined", "copies"}


@pytest.mark.parametrize("num_rows", [0, 1, 2])
def test_few_rows_are_no_special_case(num_rows):
    written = {name: array[:num_rows] for name, array in rows().items()}
    read, _ = there_and_back(written)
    assert all(read[name].tobytes() == array.tobytes() for name, array in written.items())


@pytest.mark.parametrize("changed", [ROWS_COMPARED - 1, ROWS_COMPARED, 2 * ROWS_COMPARED])
def test_a_column_that_changes_late_is_kept_whole(changed):
    late = np.zeros((2 * ROWS_COMPARED + 1, 2), np.int32)
    late[changed, 1] = 1
    read, commit = there_and_back({"log_density": np.zeros(late.shape), "late": late})
    assert commit.constant == []
    assert read["late"].tobytes() == late.tobytes()


def test_rows_that_are_not_kept_stay_absent():
    written = {name: array[:0] for name, array in rows().items()}
    read, commit = there_and_back(written, num_rows=ROWS)
    assert commit.bytes == MARK_BYTES
    assert all(len(array) == 0 for array in read.values())


def test_rows_wait_in_order_and_memory_is_used_again():
    written, waiting = rows(), Waiting(most_bytes=2_000)
    for _ in range(3):
        for first, last in [(0, 1), (1, 8), (8, 30), (30, ROWS)]:
            waiting.add({name: array[first:last] for name, array in written.items()})
        assert waiting.num_rows == ROWS
        assert all(array.tobytes() == written[name].tobytes() for name, array in waiting.rows.items())
        memory = {name: array.__array_interface__["data"] for name, array in waiting.rows.items()}
        waiting.clear()
    assert memory == {name: array.__array_interface__["data"] for name, array in waiting.rows.items()}


def test_rows_wait_until_they_fill_what_is_given():
    one = {"log_density": np.zeros((100, 1))}
    waiting = Waiting(most_bytes=2_000)
    filled = []
    for _ in range(4):
        waiting.add(one)
        filled.append(waiting.is_full)
    assert filled == [False, False, True, True]
    waiting.clear()
    assert not waiting.is_full


def test_arrays_of_every_shape_and_order_come_back_as_they_were(tmp_path):
    written = {
        "scalar": np.float32(3.5),
        "empty": np.zeros((2, 0, 3)),
        "columns_first": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        "every_other": np.arange(10)[::2],
        "booleans": np.array([True, False]),
        "big_end_first": np.arange(3, dtype=">i4"),
    }
    record = write_arrays(tmp_path / "000001.bin", written)
    read = read_arrays(tmp_path / "000001.bin", record)
    for name, array in written.items():
        assert read[name].dtype == array.dtype
        assert read[name].shape == array.shape
        np.testing.assert_array_equal(read[name], array)


@pytest.mark.parametrize("change", [lambda content: content[:-1], lambda content: b"x" + content[1:]])
def test_a_file_that_does_not_fit_its_record_is_damaged(tmp_path, change):
    record = write_arrays(tmp_path / "000001.bin", rows())
    (tmp_path / "000001.bin").write_bytes(change((tmp_path / "000001.bin").read_bytes()))
    with pytest.raises(DamagedRunError, match=r"000001\.bin"):
        read_arrays(tmp_path / "000001.bin", record)


def test_of_a_long_journal_so_many_of_the_newest_commits_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "COMMIT_SECONDS", 0.0)
    monkeypatch.setattr(engine, "CHUNK_SECONDS", 1e9)
    monkeypatch.setattr(engine, "FIRST_CHUNK_ROWS", 50)
    monkeypatch.setattr(engine, "MAX_CAPACITY", 50)
    small_run(out=tmp_path)
    directory = RunDirectory(tmp_path)
    content, config = (tmp_path / "journal.jsonl").read_bytes(), seal_json(read_json(tmp_path / "run.json"))
    for most, found in ((None, [1, 2, 3, 4]), (3, [2, 3, 4]), (1, [4]), (9, [1, 2, 3, 4])):
        journal = read_journal(content, directory.record(), config, most)
        assert [commit.index for commit in journal.commits] == found
        assert (journal.num_before, journal.num_commits) == (4 - len(found), 4)
