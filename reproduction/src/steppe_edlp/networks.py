"""The networks that judge images: a convolutional auto-encoder and LeNet-5, with the paper's layers.

Images go in as rows of grey levels in [0, 1]; a module sees one row, and batches come from `jax.vmap`. Images
of 28 × 28 points get the paper's layers. Smaller ones, of a side that is a multiple of 4, get the same with
fewer inputs to the linear layers, and LeNet smaller windows.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.compiling import jit_by_work, quick_jit
from steppe.errors import RunError
from steppe.optional import require
from steppe.run.progress import count_bar
from steppe.validation import count, positive, random_key

SIDE = 28
NUM_DIGITS = 10
ROWS_AT_A_TIME = 500

Loss = Callable[[Any, Array, Array], Array]


class ImageNetwork(eqx.Module):
    """Convolutions, then linear layers, each with a key of its own in this order."""

    convolutions: list[eqx.nn.Conv2d]
    layers: list[eqx.nn.Linear]
    side: int = eqx.field(static=True)

    def __init__(
        self, key: Array, side: int, convolutions: Sequence[Any], layers: Sequence[Any], padding: int
    ) -> None:
        keys = iter(jax.random.split(key, len(convolutions) + len(layers)))
        self.convolutions = [eqx.nn.Conv2d(*one, padding=padding, key=next(keys)) for one in convolutions]
        self.layers = [eqx.nn.Linear(*one, key=next(keys)) for one in layers]
        self.side = side


class AutoEncoder(ImageNetwork):
    """Two convolutions, a code of 128 numbers, and two linear layers back; 3 284 304 parameters at 28."""

    def __init__(self, key: Array, side: int) -> None:
        wide = 64 * (side // 4) ** 2
        layers = ((wide, 128), (128, wide), (wide, side**2))
        super().__init__(key, side, ((1, 32, 3), (32, 64, 3)), layers, padding=1)

    def __call__(self, row: Array) -> Array:
        """Reconstruct a row of pixels."""
        image = row.reshape(self.side, self.side, 1)
        for convolution in self.convolutions:
            image = jax.nn.relu(_pool(_convolve(convolution, image)))
        code, wide, last = self.layers
        return last(jax.nn.relu(wide(jax.nn.relu(code(_flatten(image))))))


class LeNet(ImageNetwork):
    """LeNet-5 with rectifiers and maximum pooling; inputs are mapped to [−1, 1]."""

    def __init__(self, key: Array, side: int) -> None:
        # Windows of 5 × 5 leave nothing of a small image; there 3 × 3 with a border keeps its size.
        window, border = (5, 0) if side >= SIDE else (3, 1)
        shrunk = window - 1 - 2 * border
        last = ((side - shrunk) // 2 - shrunk) // 2
        layers = ((16 * last**2, 120), (120, 84), (84, NUM_DIGITS))
        super().__init__(key, side, ((1, 6, window), (6, 16, window)), layers, padding=border)

    def __call__(self, row: Array) -> Array:
        """Logits of ten digits from a row of pixels."""
        image = (row.reshape(self.side, self.side, 1) - 0.5) / 0.5
        for convolution in self.convolutions:
            image = _pool(jax.nn.relu(_convolve(convolution, image)))
        hidden = _flatten(image)
        for layer in self.layers[:-1]:
            hidden = jax.nn.relu(layer(hidden))
        return self.layers[-1](hidden)


@cache
def _make(kind: Callable[[Array, int], Any], side: int) -> Callable[[Array], Any]:
    """Makes a module of a key: one program for all weights compiles in half the time of one for each."""
    return quick_jit(lambda key: kind(key, side))


def _convolve(layer: eqx.nn.Conv2d, image: Array) -> Array:
    """Convolution of rows × columns × channels, the layout that trains fastest on a processor."""
    assert layer.bias is not None
    windows, axes = layer.weight.transpose(2, 3, 1, 0), ("NHWC", "HWIO", "NHWC")
    made = jax.lax.conv_general_dilated(image[None], windows, (1, 1), layer.padding, dimension_numbers=axes)
    return made[0] + layer.bias.ravel()


def _pool(image: Array) -> Array:
    """Largest of every 2 × 2 points; a reshape, which is much faster to differentiate than a window."""
    height, width, channels = image.shape
    return image.reshape(height // 2, 2, width // 2, 2, channels).max((1, 3))


def _flatten(image: Array) -> Array:
    """One channel after the other."""
    return image.transpose(2, 0, 1).ravel()


def make_auto_encoder(key: Array, side: int = SIDE) -> AutoEncoder:
    """A convolutional auto-encoder with random weights, for images of a side that is a multiple of 4."""
    return _make(AutoEncoder, side)(random_key("make_auto_encoder", key))


def make_lenet(key: Array, side: int = SIDE) -> LeNet:
    """A LeNet-5 with random weights, for images of a side that is a multiple of 4."""
    return _make(LeNet, side)(random_key("make_lenet", key))


def find_side(num_pixels: int) -> int:
    """Points on a side of a square image that the networks take."""
    side = round(num_pixels**0.5)
    if side < 4 or side % 4 or side**2 != num_pixels:
        raise RunError(
            f"Images must be squares of a side that is a multiple of 4, such as 784 pixels; got {num_pixels}."
        )
    return side


def reconstruction_error(network: Any, x: Array, y: Array) -> Array:
    """Mean squared difference of pixels; `y` is not looked at."""
    return jnp.mean((jax.vmap(network)(x) - x) ** 2)


def cross_entropy(network: Any, x: Array, y: Array) -> Array:
    """Mean negative log-probability of the labels."""
    logits = jax.nn.log_softmax(jax.vmap(network)(x))
    return -jnp.mean(jnp.take_along_axis(logits, y[:, None], axis=1))


def train_auto_encoder(
    images: np.ndarray,
    *,
    key: Array,
    num_epochs: int = 25,
    keeps_last: bool = False,
    progress: bool | None = None,
) -> AutoEncoder:
    """Train an auto-encoder by the paper's protocol: Adam at 0.001, batches of 64, 25 epochs.

    Parameters
    ----------
    images
        Rows of pixels in [0, 1]; binary samples as they are.
    key
        Random key of weights and batches.
    num_epochs
        Passes through the images.
    keeps_last
        Whether the last batch of a pass is used although it is smaller.
    progress
        Show a progress bar; by default when standard error is a terminal.
    """
    key_weights, key = jax.random.split(random_key("train_auto_encoder", key))
    network = make_auto_encoder(key_weights, find_side(np.shape(images)[-1]))
    labels = np.zeros(len(images), np.int32)
    options: dict[str, Any] = {"num_epochs": num_epochs, "keeps_last": keeps_last, "progress": progress}
    return fit(network, reconstruction_error, images, labels, key=key, **options)


def train_lenet(
    images: np.ndarray, labels: np.ndarray, *, key: Array, num_epochs: int = 10, progress: bool | None = None
) -> LeNet:
    """Train LeNet-5 by the paper's protocol: Adam at 0.001, batches of 64, 10 epochs.

    Parameters
    ----------
    images, labels
        Rows of grey levels in [0, 1], and their digits.
    key, num_epochs, progress
        As in `train_auto_encoder`.
    """
    key_weights, key = jax.random.split(random_key("train_lenet", key))
    network = make_lenet(key_weights, find_side(np.shape(images)[-1]))
    return fit(network, cross_entropy, images, labels, key=key, num_epochs=num_epochs, progress=progress)


def fit(
    network: Any,
    loss: Loss,
    x: np.ndarray,
    y: np.ndarray,
    *,
    key: Array,
    num_epochs: int,
    batch_size: int = 64,
    learning_rate: float = 1e-3,
    keeps_last: bool = False,
    progress: bool | None = None,
) -> Any:
    """Minimise a loss by Adam over shuffled batches, the last incomplete one left out unless it is kept.

    Parameters
    ----------
    network
        An equinox module.
    loss
        `loss(network, x, y)` of a batch, to be minimised.
    x, y
        Rows and their labels.
    key
        Random key of the batches.
    num_epochs, batch_size, learning_rate
        Numbers of the protocol.
    keeps_last
        Whether the last batch of a pass is used although it is smaller.
    progress
        Show a progress bar; by default when standard error is a terminal.
    """
    images = _check(x, y)
    num_epochs = count("fit(num_epochs=...)", num_epochs)
    batch_size = min(count("fit(batch_size=...)", batch_size), len(images))
    rate = positive("fit(learning_rate=...)", learning_rate)
    rows, labels = jnp.asarray(images), jnp.asarray(y)
    network = jax.tree.map(jnp.copy, network)  # the memory of what an update is given is used again
    memory = _adam().init(network)
    work = 10 * num_epochs * images.size  # a pixel costs about ten elementary updates
    find_directions, update = _choose_gradient(work), _choose_update(work)
    with count_bar("training", num_epochs, progress) as report:
        for epoch in range(num_epochs):
            order = jax.random.permutation(jax.random.fold_in(key, epoch), len(images))
            whole = len(order) // batch_size * batch_size
            last = len(order) if keeps_last else whole
            for first in range(0, last, batch_size):
                batch = order[first : first + batch_size]
                directions = find_directions(network, rows, labels, batch, loss=loss)
                network, memory = update(network, memory, directions, rate)
            report(epoch + 1)
    return network


def find_accuracy(network: LeNet, x: np.ndarray, y: np.ndarray) -> float:
    """Fraction of rows whose label has the largest logit."""
    return float(np.mean(np.argmax(apply(network, x), axis=1) == y))


def apply(network: ImageNetwork, x: np.ndarray) -> np.ndarray:
    """Outputs of a network on every row, some rows at a time."""
    parts = (x[first : first + ROWS_AT_A_TIME] for first in range(0, len(x), ROWS_AT_A_TIME))
    return np.concatenate([np.asarray(_find_outputs(network, jnp.asarray(part))) for part in parts])


@cache  # one object, so that equal trainings are compiled once
def _adam() -> Any:
    return require("optax", "networks", "Training networks").scale_by_adam()


def _find_directions(network: Any, x: Array, y: Array, batch: Array, *, loss: Loss) -> Any:
    """Gradient on a batch. Inside a loop, XLA's convolutions would be twenty times slower on a processor."""
    return jax.grad(loss)(network, x[batch], y[batch])


def _update(network: Any, memory: Any, directions: Any, rate: Array) -> tuple[Any, Any]:
    """One step of Adam. In one program with the gradient, the products of both take half as long again."""
    directions, memory = _adam().update(directions, memory)
    return jax.tree.map(lambda old, up: old - rate * up, network, directions), memory


_choose_gradient = jit_by_work(_find_directions, static_argnames="loss")
_choose_update = jit_by_work(_update, donate_argnames=("network", "memory"))


@jax.jit
def _find_outputs(network: Any, x: Array) -> Array:
    return jax.vmap(network)(x)


def _check(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    images = np.asarray(x, np.float32)
    if images.ndim != 2 or not len(images):
        raise RunError(f"Images must be rows of pixels; got an array of shape {images.shape}.")
    find_side(images.shape[1])
    if len(y) != len(images):
        raise RunError(f"There are {len(images)} images and {len(y)} labels; give one label per image.")
    if not (images.min() >= 0 and images.max() <= 1):
        raise RunError(
            f"Pixels must lie in [0, 1]; got {images.min():g} to {images.max():g}. Divide grey levels by 255."
        )
    return images
