"""The layers of the networks that judge images, as equinox modules: an auto-encoder and LeNet-5.

Images of 28 × 28 points get the paper's layers. Smaller ones, of a side that is a multiple of 4, get the same
with fewer inputs to the linear layers, and LeNet smaller windows.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from steppe.compiling import quick_jit
from steppe.errors import RunError
from steppe.optional import needed
from steppe.validation import random_key

SIDE = 28
NUM_DIGITS = 10


@cache  # the classes derive from an optional package, so they are made when first asked for
def _modules() -> tuple[Any, Any]:
    eqx: Any = needed("equinox", "networks", "The evaluation networks")

    def stacks(
        key: Array, convolutions: tuple[Any, ...], layers: tuple[Any, ...], padding: int
    ) -> tuple[list[Any], list[Any]]:
        """Convolutions, then linear layers, each with a key of its own in this order."""
        keys = iter(jax.random.split(key, len(convolutions) + len(layers)))
        return (
            [eqx.nn.Conv2d(*size, padding=padding, key=next(keys)) for size in convolutions],
            [eqx.nn.Linear(*size, key=next(keys)) for size in layers],
        )

    class ConvolutionalAutoEncoder(eqx.Module):
        """Two convolutions, a code of 128 numbers, and two linear layers back; 3 284 304 parameters at 28."""

        convolutions: list[Any]
        layers: list[Any]
        side: int = eqx.field(static=True)

        def __init__(self, key: Array, side: int) -> None:
            wide = 64 * (side // 4) ** 2
            sizes = ((wide, 128), (128, wide), (wide, side**2))
            self.convolutions, self.layers = stacks(key, ((1, 32, 3), (32, 64, 3)), sizes, padding=1)
            self.side = side

        def __call__(self, row: Array) -> Array:
            image = row.reshape(1, self.side, self.side)
            for convolution in self.convolutions:
                image = jax.nn.relu(_max_pool(_convolved(convolution, image)))
            code, wide, last = self.layers
            return last(jax.nn.relu(wide(jax.nn.relu(code(image.ravel())))))

    class LeNet(eqx.Module):
        """LeNet-5 with rectifiers and maximum pooling; inputs are mapped to [−1, 1]."""

        convolutions: list[Any]
        layers: list[Any]
        side: int = eqx.field(static=True)

        def __init__(self, key: Array, side: int) -> None:
            # Windows of 5 × 5 leave nothing of a small image; there 3 × 3 with a border keeps its size.
            window, border = (5, 0) if side >= SIDE else (3, 1)
            shrunk = window - 1 - 2 * border
            last = ((side - shrunk) // 2 - shrunk) // 2
            sizes = ((16 * last**2, 120), (120, 84), (84, NUM_DIGITS))
            windows = ((1, 6, window), (6, 16, window))
            self.convolutions, self.layers = stacks(key, windows, sizes, padding=border)
            self.side = side

        def __call__(self, row: Array) -> Array:
            image = (row.reshape(1, self.side, self.side) - 0.5) / 0.5
            for convolution in self.convolutions:
                image = _max_pool(jax.nn.relu(_convolved(convolution, image)))
            hidden = image.ravel()
            for layer in self.layers[:-1]:
                hidden = jax.nn.relu(layer(hidden))
            return self.layers[-1](hidden)

    return ConvolutionalAutoEncoder, LeNet


@cache
def _made(place: int, side: int) -> Callable[[Array], Any]:
    """Makes a module of a key: one program for all weights compiles in half the time of one for each."""
    return quick_jit(lambda key: _modules()[place](key, side))


def _convolved(layer: Any, image: Array) -> Array:
    """Convolution as one matrix product over patches, which trains several times faster on a processor."""
    num_out, num_in, window, _ = layer.weight.shape
    border = layer.padding[0][0]
    padded = jnp.pad(image, ((0, 0), (border, border), (border, border)))
    size = padded.shape[-1] - window + 1
    shifts = [padded[:, i : i + size, j : j + size] for i in range(window) for j in range(window)]
    patches = jnp.stack(shifts, axis=1).reshape(num_in * window**2, size**2)
    return (layer.weight.reshape(num_out, -1) @ patches).reshape(num_out, size, size) + layer.bias


def _max_pool(image: Array) -> Array:
    """Largest of every 2 × 2 points; a reshape, which is much faster to differentiate than a window."""
    channels, height, width = image.shape
    return image.reshape(channels, height // 2, 2, width // 2, 2).max((2, 4))


def auto_encoder(key: Array, side: int = SIDE) -> Any:
    """A convolutional auto-encoder with random weights: a function from a row of pixels to one.

    Parameters
    ----------
    key
        Random key of the weights.
    side
        Points on a side of an image, a multiple of 4.
    """
    return _made(0, side)(random_key("auto_encoder", key))


def lenet(key: Array, side: int = SIDE) -> Any:
    """A LeNet-5 with random weights: a function from a row of pixels to the logits of ten digits.

    Parameters
    ----------
    key
        Random key of the weights.
    side
        Points on a side of an image, a multiple of 4.
    """
    return _made(1, side)(random_key("lenet", key))


def side_of(num_pixels: int) -> int:
    """Points on a side of a square image that the networks take."""
    side = round(num_pixels**0.5)
    if side < 4 or side % 4 or side**2 != num_pixels:
        raise RunError(
            f"Images must be squares of a side that is a multiple of 4, such as 784 pixels; got {num_pixels}."
        )
    return side
