"""Rows come back from a segment bit for bit, whatever is kept once."""

import numpy as np
import pytest

from steppe.errors import DamagedRunError
from steppe.run.storage.durable import read_arrays, write_arrays
from steppe.run.storage.segments import read_rows, write_rows
from steppe.run.storage.waiting import Waiting

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


def test_rows_come_back_bit_for_bit(tmp_path):
    written = rows()
    record = write_rows(tmp_path / "000001.npz", written, 0, ROWS)
    read = read_rows(tmp_path / "000001.npz", record)
    assert read.keys() == written.keys()
    for name, array in written.items():
        assert read[name].dtype == array.dtype
        assert read[name].shape == array.shape
        assert read[name].tobytes() == array.tobytes(), name


def test_what_never_changes_is_kept_once(tmp_path):
    write_rows(tmp_path / "000001.npz", rows(), 0, ROWS)
    with np.load(tmp_path / "000001.npz", allow_pickle=False) as archive:
        once = {name for name in archive.files if len(archive[name]) == 1}
    assert once == {"step_size", "defects", "undefined", "copies"}


@pytest.mark.parametrize("num_rows", [0, 1])
def test_few_rows_are_no_special_case(tmp_path, num_rows):
    written = {name: array[:num_rows] for name, array in rows().items()}
    record = write_rows(tmp_path / "000001.npz", written, 7, num_rows)
    read = read_rows(tmp_path / "000001.npz", record)
    assert all(read[name].tobytes() == array.tobytes() for name, array in written.items())


def test_rows_that_are_not_kept_stay_absent(tmp_path):
    written = {name: array[:0] for name, array in rows().items()}
    record = write_rows(tmp_path / "000001.npz", written, 0, ROWS)
    assert all(len(array) == 0 for array in read_rows(tmp_path / "000001.npz", record).values())


def test_a_file_that_does_not_fit_its_record_is_damaged(tmp_path):
    record = write_rows(tmp_path / "000001.npz", rows(), 0, ROWS)
    with pytest.raises(DamagedRunError, match="for 49 rows"):
        read_rows(tmp_path / "000001.npz", record.model_copy(update={"num_rows": ROWS - 1}))


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
        "columns first": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        "every other": np.arange(10)[::2],
        "booleans": np.array([True, False]),
        "big end first": np.arange(3, dtype=">i4"),
    }
    record = write_arrays(tmp_path / "000001.npz", written)
    read = read_arrays(tmp_path / "000001.npz", record)
    for name, array in written.items():
        assert read[name].dtype == array.dtype
        assert read[name].shape == array.shape
        np.testing.assert_array_equal(read[name], array)
