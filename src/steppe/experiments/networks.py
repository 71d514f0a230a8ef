"""The networks that judge images: a convolutional auto-encoder and LeNet-5, with the paper's layers.

Both are equinox modules. Images go in as rows of 784 grey levels in [0, 1]; a module sees one row, and
batches come from `jax.vmap`.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.arguments import count, positive, random_key
from steppe.errors import RunError
from steppe.optional import needed
from steppe.run.progress import count_bar

SHAPE = (1, 28, 28)
NUM_PIXELS = 784
NUM_DIGITS = 10
ROWS_AT_A_TIME = 500

Loss = Callable[[Any, Array, Array], Array]


@cache  # the classes derive from an optional package, so they are made when first asked for
def _modules() -> tuple[Any, Any]:
    eqx: Any = needed("equinox", "networks", "The evaluation networks")

    def stacks(
        key: Array, convolutions: tuple[Any, ...], layers: tuple[Any, ...], padding: int = 0
    ) -> tuple[list[Any], list[Any]]:
        """Convolutions, then linear layers, each with a key of its own in this order."""
        keys = iter(jax.random.split(key, len(convolutions) + len(layers)))
        return (
            [eqx.nn.Conv2d(*size, padding=padding, key=next(keys)) for size in convolutions],
            [eqx.nn.Linear(*size, key=next(keys)) for size in layers],
        )

    class ConvolutionalAutoEncoder(eqx.Module):
        """Two convolutions, a code of 128 numbers, and two linear layers back; 3 284 304 parameters."""

        convolutions: list[Any]
        layers: list[Any]

        def __init__(self, key: Array) -> None:
            sizes = ((3136, 128), (128, 3136), (3136, NUM_PIXELS))
            self.convolutions, self.layers = stacks(key, ((1, 32, 3), (32, 64, 3)), sizes, padding=1)

        def __call__(self, row: Array) -> Array:
            image = row.reshape(SHAPE)
            for convolution in self.convolutions:
                image = jax.nn.relu(_max_pool(convolution(image)))
            code, wide, last = self.layers
            return last(jax.nn.relu(wide(jax.nn.relu(code(image.ravel())))))

    class LeNet(eqx.Module):
        """LeNet-5 with rectifiers and maximum pooling; inputs are mapped to [−1, 1]."""

        convolutions: list[Any]
        layers: list[Any]

        def __init__(self, key: Array) -> None:
            sizes = ((256, 120), (120, 84), (84, NUM_DIGITS))
            self.convolutions, self.layers = stacks(key, ((1, 6, 5), (6, 16, 5)), sizes)

        def __call__(self, row: Array) -> Array:
            image = (row.reshape(SHAPE) - 0.5) / 0.5
            for convolution in self.convolutions:
                image = _max_pool(jax.nn.relu(convolution(image)))
            hidden = image.ravel()
            for layer in self.layers[:-1]:
                hidden = jax.nn.relu(layer(hidden))
            return self.layers[-1](hidden)

    return ConvolutionalAutoEncoder, LeNet


def _max_pool(image: Array) -> Array:
    """Largest of every 2 × 2 points; a reshape, which is much faster to differentiate than a window."""
    channels, height, width = image.shape
    return image.reshape(channels, height // 2, 2, width // 2, 2).max((2, 4))


def auto_encoder(key: Array) -> Any:
    """A convolutional auto-encoder with random weights: a function from a row of pixels to one.

    Parameters
    ----------
    key
        Random key of the weights.
    """
    return _modules()[0](random_key("auto_encoder", key))


def lenet(key: Array) -> Any:
    """A LeNet-5 with random weights: a function from a row of pixels to the logits of ten digits.

    Parameters
    ----------
    key
        Random key of the weights.
    """
    return _modules()[1](random_key("lenet", key))


def reconstruction_error(network: Any, x: Array, y: Array) -> Array:
    """Mean squared difference of pixels; `y` is not looked at."""
    return jnp.mean((jax.vmap(network)(x) - x) ** 2)


def cross_entropy(network: Any, x: Array, y: Array) -> Array:
    """Mean negative log-probability of the labels."""
    logits = jax.nn.log_softmax(jax.vmap(network)(x))
    return -jnp.mean(jnp.take_along_axis(logits, y[:, None], axis=1))


def train_auto_encoder(
    images: np.ndarray, *, key: Array, num_epochs: int = 25, progress: bool | None = None
) -> Any:
    """Train an auto-encoder by the paper's protocol: Adam at 0.001, batches of 64, 25 epochs.

    Parameters
    ----------
    images
        Rows of 784 numbers in [0, 1]; binary samples as they are.
    key
        Random key of weights and batches.
    num_epochs
        Passes through the images.
    progress
        Show a progress bar; by default when standard error is a terminal.
    """
    key_weights, key_batches = jax.random.split(random_key("train_auto_encoder", key))
    labels = np.zeros(len(images), np.int32)
    network = auto_encoder(key_weights)
    return fit(
        network,
        reconstruction_error,
        images,
        labels,
        key=key_batches,
        num_epochs=num_epochs,
        progress=progress,
    )


def train_lenet(
    images: np.ndarray, labels: np.ndarray, *, key: Array, num_epochs: int = 10, progress: bool | None = None
) -> Any:
    """Train LeNet-5 by the paper's protocol: Adam at 0.001, batches of 64, 10 epochs.

    Parameters
    ----------
    images
        Rows of 784 grey levels in [0, 1].
    labels
        Digits.
    key
        Random key of weights and batches.
    num_epochs
        Passes through the images.
    progress
        Show a progress bar; by default when standard error is a terminal.
    """
    key_weights, key_batches = jax.random.split(random_key("train_lenet", key))
    return fit(
        lenet(key_weights),
        cross_entropy,
        images,
        labels,
        key=key_batches,
        num_epochs=num_epochs,
        progress=progress,
    )


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
    progress: bool | None = None,
) -> Any:
    """Minimise a loss by Adam over shuffled batches, the last incomplete one left out.

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
    progress
        Show a progress bar; by default when standard error is a terminal.
    """
    images = _checked(x, y)
    num_epochs = count("fit", "num_epochs", num_epochs)
    batch_size = min(count("fit", "batch_size", batch_size), len(images))
    rate = positive("fit", "learning_rate", learning_rate)
    rows, labels = jnp.asarray(images), jnp.asarray(y)
    memory = _adam().init(_arrays(network))
    with count_bar("training", num_epochs, progress) as report:
        for epoch in range(num_epochs):
            order = jax.random.permutation(jax.random.fold_in(key, epoch), len(images))
            batches = order[: len(order) // batch_size * batch_size].reshape(-1, batch_size)
            network, memory = _epoch(network, memory, rows, labels, batches, rate, loss=loss)
            report(epoch + 1)
    return network


def accuracy(network: Any, x: np.ndarray, y: np.ndarray) -> float:
    """Share of rows whose label has the largest logit.

    Parameters
    ----------
    network
        A trained `lenet`.
    x, y
        Rows and their labels.
    """
    return float(np.mean(np.argmax(apply(network, x), axis=1) == y))


def apply(network: Any, x: np.ndarray) -> np.ndarray:
    """Outputs of a network on every row, some rows at a time.

    Parameters
    ----------
    network
        A module made here.
    x
        Rows.
    """
    parts = (x[first : first + ROWS_AT_A_TIME] for first in range(0, len(x), ROWS_AT_A_TIME))
    return np.concatenate([np.asarray(_outputs(network, jnp.asarray(part))) for part in parts])


@cache  # one object, so that equal trainings are compiled once
def _adam() -> Any:
    return needed("optax", "networks", "Training networks").scale_by_adam()


def _arrays(network: Any) -> Any:
    return needed("equinox", "networks", "Training networks").filter(network, _is_array)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array)


@partial(jax.jit, static_argnames="loss")
def _epoch(
    network: Any, memory: Any, x: Array, y: Array, batches: Array, rate: Array, *, loss: Loss
) -> tuple[Any, Any]:
    def update(carry: tuple[Any, Any], rows: Array) -> tuple[tuple[Any, Any], None]:
        network, memory = carry
        slopes = jax.grad(loss)(network, x[rows], y[rows])
        directions, memory = _adam().update(slopes, memory)
        network = jax.tree.map(lambda old, up: old - rate * up, network, directions)
        return (network, memory), None

    return jax.lax.scan(update, (network, memory), batches)[0]


@jax.jit
def _outputs(network: Any, x: Array) -> Array:
    return jax.vmap(network)(x)


def _checked(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    images = np.asarray(x, np.float32)
    if images.ndim != 2 or images.shape[1] != NUM_PIXELS or not len(images):
        raise RunError(f"Images must be rows of {NUM_PIXELS} pixels; got an array of shape {images.shape}.")
    if len(y) != len(images):
        raise RunError(f"There are {len(images)} images and {len(y)} labels; give one label per image.")
    if not (images.min() >= 0 and images.max() <= 1):
        raise RunError(
            f"Pixels must lie in [0, 1]; got {images.min():g} to {images.max():g}. Divide grey levels by 255."
        )
    return images
