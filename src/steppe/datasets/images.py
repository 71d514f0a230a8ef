"""Images of 28 × 28 points, one per row: digits, characters, silhouettes."""

import io
import zlib

import numpy as np

from steppe.datasets.card import CardFields, Dataset, Split, describe_size
from steppe.datasets.download import File
from steppe.datasets.files import Found, Lookup, contents
from steppe.errors import DataError

SHAPE = (28, 28)
MNIST_URL = "https://ossci-datasets.s3.amazonaws.com/mnist"
MNIST_DIGESTS = {  # and bytes
    "train-images-idx3-ubyte": (
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        9_912_422,
    ),
    "train-labels-idx1-ubyte": ("3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", 28_881),
    "t10k-images-idx3-ubyte": ("8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", 1_648_877),
    "t10k-labels-idx1-ubyte": ("f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", 4_542),
}
MNIST_FILES = {
    name: File(f"mnist/{name}.gz", digest, size, f"{MNIST_URL}/{name}.gz")
    for name, (digest, size) in MNIST_DIGESTS.items()
}
BINARIZED_FILES = {
    split: File(f"mnist_binarized/binarized_mnist_{split}.mat", digest)
    for split, digest in (
        ("train", "79a0312c7389d855cfc97e3812de3998417c5829d8a51543b56a90a91252ae7e"),
        ("valid", "7436afc856959075c7787025bb8a4ba2b520b9230ee39667c66aa7dd2819dd68"),
        ("test", "5bc30222e1e7896cbccd1e1db6b28540cc1230f4d2d5473841a5f6cc54be8d38"),
    )
}
CALTECH_FILE = File(
    "caltech101_silhouettes/caltech101_silhouettes_28_split1.mat",
    "eb6735e8d84b1850fabc5590124aab1755e90c9fd28123585324398405e1e42a",
    872_124,
    "https://people.cs.umass.edu/~marlin/data/caltech101_silhouettes_28_split1.mat",
)
OMNIGLOT_FILE = File(
    "omniglot/omniglot_28x28_binary_full.npz",
    "f3c659e2c975a48ff879657a938bcb8e140460fc8d4fa8a1ca0ed35c6aa9ad4c",
)
OMNIGLOT_ADVICE = (
    "Resize the images of github.com/brendenlake/omniglot to 28 × 28 bits, pack them with `numpy.packbits` "
    "into an array `packed` with `char_id` and `is_evaluation` beside it"
)


def load_mnist(lookup: Lookup) -> Dataset:
    """Handwritten digits, grey in [0, 1]."""
    found = {name: lookup.find("mnist", (file,)) for name, file in MNIST_FILES.items()}
    return _images(
        "mnist",
        _read_parts("mnist", found, ("train", "t10k")),
        "LeCun, Cortes and Burges, yann.lecun.com/exdb/mnist",
        "none by the authors; commonly cited as CC BY-SA 3.0",
        tuple(found.values()),
        "grey levels divided by 255; y is the digit",
    )


def load_fashion_mnist(lookup: Lookup) -> Dataset:
    """Pictures of clothes in ten classes, grey in [0, 1], in the files of MNIST."""
    return _load_relative(
        lookup, "fashion-mnist", "Fashion-MNIST, Xiao, Rasul and Vollgraf 2017", "MIT", "y is the class"
    )


def load_kmnist(lookup: Lookup) -> Dataset:
    """Handwritten characters of classical Japanese in ten classes, grey in [0, 1], in the files of MNIST."""
    return _load_relative(
        lookup, "kmnist", "Kuzushiji-MNIST, Clanuwat et al. 2018", "CC BY-SA 4.0", "y is the class"
    )


def load_emnist(lookup: Lookup) -> Dataset:
    """Handwritten letters, `emnist-letters` of EMNIST, grey in [0, 1], turned upright."""
    found = _find_relative(lookup, "emnist", ("emnist-letters-train", "emnist-letters-test"))
    parts = _read_parts("emnist", found, ("emnist-letters-train", "emnist-letters-test"))
    upright = tuple(
        Split(split.x.reshape(-1, *SHAPE).transpose(0, 2, 1).reshape(-1, 784), split.y) for split in parts
    )
    return _images(
        "emnist",
        upright,
        "EMNIST, Cohen, Afshar, Tapson and van Schaik 2017, split `letters`",
        "none stated; derived from NIST Special Database 19",
        tuple(found.values()),
        "grey levels divided by 255, rows and columns exchanged; y is the letter, from 1",
    )


def _load_relative(lookup: Lookup, name: str, source: str, licence: str, labels: str) -> Dataset:
    """Read a data set that comes in files of the names and format of MNIST's."""
    found = _find_relative(lookup, name, ("train", "t10k"))
    parts = _read_parts(name, found, ("train", "t10k"))
    return _images(
        name, parts, source, licence, tuple(found.values()), f"grey levels divided by 255; {labels}"
    )


def _find_relative(lookup: Lookup, name: str, parts: tuple[str, str]) -> dict[str, Found]:
    """Find four IDX files below the directory of that name, packed or not."""
    advice = f"Obtain the four IDX files of {name} from its authors"
    wanted = [f"{part}-{kind}" for part in parts for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")]
    folder = name.replace("-", "_")
    return {
        file: lookup.find(name, (File(f"{folder}/{file}.gz", None), File(f"{folder}/{file}", None)), advice)
        for file in wanted
    }


def _read_parts(name: str, found: dict[str, Found], parts: tuple[str, str]) -> tuple[Split, Split, Split]:
    """Training and test images with their labels; nothing is left for validation."""
    train, test = (
        Split(
            _grey(_idx(name, found[f"{part}-images-idx3-ubyte"], SHAPE)),
            _idx(name, found[f"{part}-labels-idx1-ubyte"], ()).astype(np.int32),
        )
        for part in parts
    )
    for split in (train, test):
        if len(split.x) != len(split.y):
            raise DataError(f"{name!r} has {len(split.x)} images and {len(split.y)} labels in one part.")
    return train, _nothing(), test


def load_binarized_mnist(lookup: Lookup) -> Dataset:
    """Handwritten digits as bits, drawn once and fixed, for likelihoods that can be compared."""
    advice = "Obtain the fixed binarisation of MNIST as MATLAB files with one array `X`"
    found = [lookup.find("mnist-binarized", (file,), advice) for file in BINARIZED_FILES.values()]
    bits = [_matlab("mnist-binarized", part)["X"].astype(np.float32) for part in found]
    return _images(
        "mnist-binarized",
        tuple(Split(x, np.full(len(x), -1, np.int32)) for x in bits),
        "fixed binarisation of Salakhutdinov and Murray 2008 (Larochelle)",
        "as MNIST",
        tuple(found),
        "none; no labels were published (y is −1)",
    )


def load_caltech(lookup: Lookup) -> Dataset:
    """Silhouettes of objects as bits, 101 classes."""
    found = lookup.find("caltech", (CALTECH_FILE,))
    table = _matlab("caltech", found)
    splits = tuple(
        Split(table[f"{part}_data"].astype(np.float32), table[f"{part}_labels"].ravel().astype(np.int32))
        for part in ("train", "val", "test")
    )
    return _images(
        "caltech",
        splits,
        "Caltech-101 Silhouettes, Marlin, Swersky, Chen and de Freitas 2010",
        "none stated",
        (found,),
        "none; y is the class, from 1",
    )


def load_omniglot(lookup: Lookup) -> Dataset:
    """Handwritten characters of 50 alphabets as bits; test rows are the evaluation alphabets."""
    found = lookup.find("omniglot", (OMNIGLOT_FILE,), OMNIGLOT_ADVICE)
    try:
        with np.load(io.BytesIO(contents("omniglot", found)), allow_pickle=False) as archive:
            bits = np.unpackbits(archive["packed"], axis=1).astype(np.float32)
            labels, is_test = archive["char_id"].astype(np.int32), archive["is_evaluation"]
    except (ValueError, KeyError, OSError) as error:
        raise DataError(f"'omniglot': {found.path} does not hold the packed characters: {error}.") from error
    return _images(
        "omniglot",
        (Split(bits[~is_test], labels[~is_test]), _nothing(), Split(bits[is_test], labels[is_test])),
        "Omniglot, Lake, Salakhutdinov and Tenenbaum 2015",
        "MIT",
        (found,),
        "ink is 1; y is the character",
    )


def _images(
    name: str,
    splits: tuple[Split, ...],
    source: str,
    licence: str,
    found: tuple[Found, ...],
    preprocessing: str,
) -> Dataset:
    card: CardFields = {
        "name": name,
        "source": source,
        "licence": licence,
        "sha256": {part.path.name: part.sha256 for part in found},
        "preprocessing": preprocessing,
        "is_verified": all(part.is_verified for part in found),
    }
    return Dataset(*splits, card=describe_size(splits, card), image_shape=SHAPE)


def _nothing() -> Split:
    return Split(np.zeros((0, 784), np.float32), np.zeros(0, np.int32))


def _grey(levels: np.ndarray) -> np.ndarray:
    return levels.reshape(len(levels), -1).astype(np.float32) / 255


def _idx(name: str, found: Found, shape: tuple[int, ...]) -> np.ndarray:
    """Read the IDX format: a magic number, the sizes, then bytes."""
    content = contents(name, found)
    num_axes = 1 + len(shape)
    start = 4 * (1 + num_axes)
    sizes = np.frombuffer(content[4:start], ">i4")
    is_sound = content[:4] == bytes((0, 0, 8, num_axes)) and tuple(sizes[1:]) == shape
    if not is_sound or len(content) != start + sizes.prod():
        raise DataError(f"{name!r}: {found.path} is not an IDX file of {num_axes} axes.")
    return np.frombuffer(content, np.uint8, offset=start).reshape(sizes)


def _matlab(what: str, found: Found) -> dict[str, np.ndarray]:
    from scipy.io import loadmat

    try:
        return loadmat(io.BytesIO(contents(what, found)))
    except (ValueError, TypeError, NotImplementedError, zlib.error) as error:
        raise DataError(f"{what!r}: {found.path} is not a MATLAB file: {error}.") from error
