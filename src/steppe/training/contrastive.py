"""Updates by contrastive divergence: samples, the gradient they give, a step of Adam.

The gradient of the log-likelihood is `mean ∇U(data) − mean ∇U(samples)`. Contrastive divergence (CD) draws
the samples by a few steps from the data; persistent CD (PCD) continues the same chains from update to
update, so that they stay close to the distribution of the RBM.
"""

from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree

from steppe.kernel.compose import Recipe
from steppe.optional import require
from steppe.run.simulate import simulate
from steppe.targets.rbm import rbm
from steppe.training.protocol import Protocol

if TYPE_CHECKING:
    from optax import GradientTransformation

MIN_MEAN = 0.01  # of a bit, where its bias starts


class Parameters(NamedTuple):
    """What is trained: weights hidden × visible, and biases."""

    weights: Array
    hidden_bias: Array
    visible_bias: Array


class Progress(NamedTuple):
    """Everything an update needs to know of the ones before."""

    parameters: Parameters
    optimizer: PyTree
    samples: Array


# The progress, the order of the rows in this epoch, and the sum of the differences so far.
Carry = tuple[Progress, Array, Array]


@cache  # one object for all trainings, so that equal ones are compiled once
def adam() -> "GradientTransformation":
    """The direction of Adam, without a learning rate."""
    return require("optax", "networks", "`train_rbm`").scale_by_adam()


def start(key: Array, bits: np.ndarray, num_hidden: int, batch_size: int) -> Progress:
    """Weights uniform within ±1/√visible, visible biases that give every bit its mean in the data."""
    num_visible, dtype = bits.shape[1], jnp.result_type(float)
    mean = np.clip(bits.mean(0), MIN_MEAN, 1 - MIN_MEAN)
    bound = 1 / np.sqrt(num_visible)
    parameters = Parameters(
        jax.random.uniform(key, (num_hidden, num_visible), dtype, -bound, bound),
        jnp.zeros(num_hidden, dtype),
        jnp.asarray(np.log(mean / (1 - mean)), dtype),
    )
    return Progress(parameters, adam().init(parameters), jnp.asarray(bits[:batch_size], dtype))


@partial(jax.jit, static_argnames="protocol", donate_argnames="state")
def advance(
    recipe: Recipe,
    protocol: Protocol,
    state: Progress,
    bits: Array,
    key: Array,
    first: Array,
    last: Array,
) -> tuple[Progress, Array]:
    """Make the updates `first … last − 1`; also the mean gap between data and samples over them."""
    batch_size = protocol.batch_size
    batches_per_epoch = len(bits) // batch_size
    shuffling, sampling = jax.random.split(key)

    def order_of(epoch: Array) -> Array:
        return jax.random.permutation(jax.random.fold_in(shuffling, epoch), len(bits))

    def body(update: Array, carry: Carry) -> Carry:
        (parameters, memory, samples), order, total = carry
        epoch, place = update // batches_per_epoch, update % batches_per_epoch
        order = jax.lax.cond(place == 0, order_of, lambda _: order, epoch)
        batch = bits[jax.lax.dynamic_slice_in_dim(order, place * batch_size, batch_size)]
        batch = batch.astype(samples.dtype)
        origin = batch if protocol.method == "cd" else samples
        samples = _move_samples(recipe, parameters, origin, protocol.k, jax.random.fold_in(sampling, update))
        gap, slopes = jax.value_and_grad(_gap)(parameters, batch, samples)
        directions, memory = adam().update(slopes, memory)
        rate = _learning_rate(protocol, update)
        parameters = jax.tree.map(lambda old, up: old + rate * up, parameters, directions)
        return Progress(parameters, memory, samples), order, total + gap

    carry = (state, order_of(first // batches_per_epoch), jnp.zeros((), state.samples.dtype))
    state, _, total = jax.lax.fori_loop(first, last, body, carry)
    return state, total / (last - first)


def _learning_rate(protocol: Protocol, update: Array) -> Array | float:
    if not protocol.is_decayed:
        return protocol.learning_rate
    return protocol.learning_rate * (1 - update / protocol.num_updates)


def _move_samples(recipe: Recipe, parameters: Parameters, start: Array, k: int, key: Array) -> Array:
    """Samples after `k` steps; extra variables of the sampler begin anew at every update."""
    sampler = recipe.build(rbm(*parameters), audit=False)
    key_start, key_steps = jax.random.split(key)
    states = jax.vmap(sampler.init)(start, jax.random.split(key_start, len(start)))
    return simulate(sampler, key_steps, states, k).state.position


def _gap(parameters: Parameters, batch: Array, samples: Array) -> Array:
    """Mean log-density of the data minus that of the samples; its gradient is that of the likelihood."""
    model = rbm(*parameters)
    # The formula itself for all rows at once, as one product: it is differentiated in the weights here.
    return jnp.mean(model.log_density(batch)) - jnp.mean(model.log_density(samples))
