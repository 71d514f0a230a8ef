"""The networks that judge images: the paper's layers, learning, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steppe.errors import RunError
from steppe_edlp import networks

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
# Ten classes of images: a bright bar in one of ten places, over noise.
LABELS = RNG.integers(0, 10, 640).astype(np.int32)
IMAGES = RNG.uniform(0, 0.3, (640, 28, 28)).astype(np.float32)
IMAGES[np.arange(640), 2 * LABELS + 4] += 0.6
IMAGES = IMAGES.reshape(640, 784)


def num_parameters(network):
    return sum(leaf.size for leaf in jax.tree.leaves(network))


def slow_convolution(image, weight, bias, padding):
    """Cross-correlation, place by place."""
    padded = np.pad(image, ((0, 0), (padding, padding), (padding, padding)))
    size = weight.shape[-1]
    height = padded.shape[1] - size + 1
    out = np.empty((len(weight), height, height))
    for i in range(height):
        for j in range(height):
            out[:, i, j] = (weight * padded[:, i : i + size, j : j + size]).sum((1, 2, 3))
    return out + bias


def pooled(image):
    return image.reshape(len(image), image.shape[1] // 2, 2, -1, 2).max((2, 4))


def arrays(layer):
    return np.asarray(layer.weight, float), np.asarray(layer.bias, float)


def test_the_auto_encoder_has_the_published_layers():
    network = networks.make_auto_encoder(KEY)
    assert num_parameters(network) == 3_284_304
    image = IMAGES[0].reshape(1, 28, 28).astype(float)
    for layer in network.convolutions:
        image = np.maximum(pooled(slow_convolution(image, *arrays(layer), padding=1)), 0)
    hidden = image.ravel()
    for layer in network.layers[:2]:
        weight, bias = arrays(layer)
        hidden = np.maximum(weight @ hidden + bias, 0)
    weight, bias = arrays(network.layers[2])
    np.testing.assert_allclose(network(jnp.asarray(IMAGES[0])), weight @ hidden + bias, atol=1e-5)


def test_lenet_has_the_published_layers():
    network = networks.make_lenet(KEY)
    assert num_parameters(network) == 44_426
    image = IMAGES[0].reshape(1, 28, 28) * 2.0 - 1
    for layer in network.convolutions:
        image = pooled(np.maximum(slow_convolution(image, *arrays(layer), padding=0), 0))
    hidden = image.ravel()
    for layer in network.layers[:2]:
        weight, bias = arrays(layer)
        hidden = np.maximum(weight @ hidden + bias, 0)
    weight, bias = arrays(network.layers[2])
    np.testing.assert_allclose(network(jnp.asarray(IMAGES[0])), weight @ hidden + bias, atol=1e-5)


@pytest.mark.slow
def test_lenet_learns_to_tell_bars_apart():
    # A guess is right one time in ten; 100 unseen images, so 50 right by chance has probability 1e-23.
    network = networks.train_lenet(IMAGES[:540], LABELS[:540], key=KEY, num_epochs=6)
    assert networks.find_accuracy(network, IMAGES[540:], LABELS[540:]) > 0.5


@pytest.mark.slow
def test_the_auto_encoder_learns_to_reconstruct():
    before = networks.reconstruction_error(networks.make_auto_encoder(KEY), jnp.asarray(IMAGES[:64]), None)
    network = networks.train_auto_encoder(IMAGES[:128], key=KEY, num_epochs=4)
    after = np.mean((networks.apply(network, IMAGES[:64]) - IMAGES[:64]) ** 2)
    assert after < 0.5 * before


@pytest.mark.slow
def test_the_same_key_gives_the_same_network():
    pair = [networks.train_lenet(IMAGES[:128], LABELS[:128], key=KEY, num_epochs=1) for _ in range(2)]
    for first, second in zip(*map(jax.tree.leaves, pair), strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("images", "labels", "complaint"),
    [
        (IMAGES[:, :100], LABELS, "multiple of 4, such as 784 pixels; got 100"),
        (IMAGES * 255, LABELS, "Divide grey levels by 255"),
        (IMAGES, LABELS[1:], "640 images and 639 labels"),
    ],
)
def test_bad_images_are_refused(images, labels, complaint):
    with pytest.raises(RunError, match=complaint):
        networks.train_lenet(images, labels, key=KEY)
