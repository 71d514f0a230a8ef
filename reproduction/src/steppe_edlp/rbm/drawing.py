"""Images drawn from an RBM: how long, and from where."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.compiling import jit_by_work
from steppe.kernel.compose import Recipe
from steppe.kernel.sampler import Sampler
from steppe.kernel.types import SamplerState, StepInfo
from steppe.run.simulate import Count, simulate
from steppe.targets.rbm import Rbm, layerwise_gibbs

LEAST_MEAN = 0.01

# Steps worth one evaluation of U and its gradient, in processor time on the RBM of 784 × 500 units: such
# samplers look at one site or at ten at a time.
STEPS_PER_EVALUATION = {"hamming_ball": 2, "block_gibbs": 16}


class Length(NamedTuple):
    """How long chains run: chains, iterations before the first image and between images, images per chain."""

    num_chains: int
    num_warmup: int
    thinning: int
    num_draws: int

    @property
    def num_images(self) -> int:
        """Images of all chains."""
        return self.num_chains * self.num_draws

    @property
    def num_steps(self) -> int:
        """Iterations of one chain."""
        return self.num_warmup + self.thinning * self.num_draws


class Drawn(NamedTuple):
    """Images, rows of bits in the order of chains within draws, and their log-densities."""

    images: np.ndarray
    log_density: np.ndarray


def draw_images(
    target: Rbm, recipe: Recipe, mean_image: np.ndarray, seed: int, length: Length, *, equal_budget: bool
) -> Drawn:
    """Draw images with one sampler and one seed.

    Parameters
    ----------
    target
        What is sampled.
    recipe
        How.
    mean_image
        Chains start at independent bits with these means.
    seed
        Of starts and steps.
    length
        How long.
    equal_budget
        Whether samplers get equal numbers of evaluations: more steps where a step costs less, and fewer
        ensembles where one has several replicas. Else all get the same number of steps.
    """
    replicas = recipe.coupling.replicas or 1
    num_chains = max(1, length.num_chains // replicas)
    speed = STEPS_PER_EVALUATION.get(recipe.name, 1) if equal_budget else 1
    key_start, key = jax.random.split(jax.random.key(seed))
    means = np.clip(mean_image, LEAST_MEAN, 1 - LEAST_MEAN)
    starts = jax.random.uniform(key_start, (num_chains, len(means))) < means
    sampler = recipe.build(target, audit=False)
    work = length.num_steps * speed * num_chains * len(means)
    bits, log_density = _choose(work)(
        sampler,
        starts.astype(jnp.result_type(float)),
        key,
        length.num_warmup * speed,
        length.thinning * speed,
        length.num_draws,
    )
    return Drawn(np.asarray(bits).reshape(-1, len(means)), np.asarray(log_density, float).ravel())


def draw_reference(target: Rbm, mean_image: np.ndarray, seed: int, num_images: int, num_steps: int) -> Drawn:
    """Images by layer-wise Gibbs, one per chain: the distribution the others should have."""
    length = Length(num_images, num_steps - 1, 1, 1)
    return draw_images(target, layerwise_gibbs(), mean_image, seed, length, equal_budget=False)


def _run(
    sampler: Sampler, starts: Array, key: Array, num_warmup: Count, thinning: Count, num_draws: int
) -> tuple[Array, Array]:
    """Bits and log-densities, draw × chain × (replica)."""

    def look(_: Sampler, state: SamplerState, __: StepInfo) -> tuple[Array, Array]:
        return state.position.astype(jnp.uint8), state.log_density

    warm = simulate(sampler, key, jax.vmap(sampler.init)(starts), num_warmup).state
    steps = {"first_step": num_warmup, "every": thinning, "capacity": num_draws}
    return simulate(sampler, key, warm, thinning * num_draws, **steps, observe=look).observed


_choose = jit_by_work(_run, static_argnames="num_draws")
