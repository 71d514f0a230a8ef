"""Small targets on which theory is computed: the paper's, quadratics, and single bits."""

import math

import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

import steppe
from steppe.targets.bernoulli import paper_bernoulli

BERNOULLI = paper_bernoulli()
PAPER_BOX = (-0.5, 1.5)


def quadratic(matrix, field, position):
    x = position.ravel()
    return 0.5 * x @ matrix @ x + field @ x


def quadratic_target(domain, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    size = math.prod(domain.shape)
    matrix = scale * rng.normal(size=(size, size))
    arrays = ((matrix + matrix.T) / 2, rng.normal(size=size))
    return steppe.Target(Partial(quadratic, *(a.astype(np.float32) for a in arrays)), domain), arrays[0]


def ring(field, position):
    return field @ position + jnp.sum(position * jnp.roll(position, 1))


def parabola(height, position):
    return jnp.sum(height * position**2 / 2 - height * position / 2)


FLAT_BIT = steppe.Target(Partial(parabola, 0.0), steppe.Binary(1))
CONCAVE_BIT = steppe.Target(Partial(parabola, -1.0), steppe.Binary(1))


def hidden_unit(position):
    return jnp.sum(jnp.logaddexp(0.0, 6 * position - 5))


HIDDEN_UNIT = steppe.Target(hidden_unit, steppe.Binary(1))


def next_square(centers, states, ratio, variance=0.7):
    """`E|a'|²` after one step of `edula`, closed form."""
    means = centers + ratio / 2 * (states - centers)
    return (means**2).sum(axis=1) + ratio * variance * centers.shape[1]
