"""The networks that judge images: a convolutional auto-encoder and LeNet-5, with the paper's layers.

Both are equinox modules, made in `network_layers`. Images go in as rows of grey levels in [0, 1]; a module
sees one row, and batches come from `jax.vmap`.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.compiling import quick_jit
from steppe.errors import RunError
from steppe.optional import needed
from steppe.run.progress import count_bar
from steppe.validation import count, positive, random_key
from steppe_edlp.network_layers import auto_encoder, lenet, side_of

ROWS_AT_A_TIME = 500
# Pixels seen in all below which compiling takes longer than training.
SHORT_WORK = 1e7

Loss = Callable[[Any, Array, Array], Array]


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
        Rows of pixels in [0, 1]; binary samples as they are.
    key
        Random key of weights and batches.
    num_epochs
        Passes through the images.
    progress
        Show a progress bar; by default when standard error is a terminal.
    """
    key_weights, key_batches = jax.random.split(random_key("train_auto_encoder", key))
    labels = np.zeros(len(images), np.int32)
    network = auto_encoder(key_weights, side_of(np.shape(images)[-1]))
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
        Rows of grey levels in [0, 1].
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
        lenet(key_weights, side_of(np.shape(images)[-1])),
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
    num_epochs = count("fit(num_epochs=...)", num_epochs)
    batch_size = min(count("fit(batch_size=...)", batch_size), len(images))
    rate = positive("fit(learning_rate=...)", learning_rate)
    rows, labels = jnp.asarray(images), jnp.asarray(y)
    memory = _adam().init(_arrays(network))
    epoch_of = _epoch_soon if num_epochs * images.size < SHORT_WORK else _epoch_fast
    with count_bar("training", num_epochs, progress) as report:
        for epoch in range(num_epochs):
            order = jax.random.permutation(jax.random.fold_in(key, epoch), len(images))
            batches = order[: len(order) // batch_size * batch_size].reshape(-1, batch_size)
            network, memory = epoch_of(network, memory, rows, labels, batches, rate, loss=loss)
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


_epoch_fast = partial(jax.jit, static_argnames="loss")(_epoch)
_epoch_soon = partial(quick_jit, static_argnames="loss")(_epoch)


@jax.jit
def _outputs(network: Any, x: Array) -> Array:
    return jax.vmap(network)(x)


def _checked(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    images = np.asarray(x, np.float32)
    if images.ndim != 2 or not len(images):
        raise RunError(f"Images must be rows of pixels; got an array of shape {images.shape}.")
    side_of(images.shape[1])
    if len(y) != len(images):
        raise RunError(f"There are {len(images)} images and {len(y)} labels; give one label per image.")
    if not (images.min() >= 0 and images.max() <= 1):
        raise RunError(
            f"Pixels must lie in [0, 1]; got {images.min():g} to {images.max():g}. Divide grey levels by 255."
        )
    return images
