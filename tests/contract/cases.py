"""The contract table: every recipe, under its own and its published names, on every kind of domain."""

import inspect
import os
from contextlib import ExitStack
from unittest import mock

import jax
import numpy as np

import steppe
from exact_targets import polynomial_target
from steppe.diagnostics import exact
from steppe.kernel.blocks import gibbs, metropolis, site_gibbs
from steppe.samplers import ALL_RECIPES

NUM_CHAINS = 4
NUM_STEPS = 30

# Ten sites, because the published Hamming ball HB-10-1 needs ten.
DOMAINS = {
    "binary": steppe.Binary(10),
    "spin": steppe.Spin(10),
    "ordinal": steppe.Ordinal(10, [-1.0, 0.1, 0.8]),
    "categorical": steppe.Categorical(10, 3),
    "ragged": steppe.Categorical(10, [2, 3] * 5),
    "product": steppe.Product(
        bits=steppe.Binary(3),
        sizes=steppe.Ordinal((2, 2), [-1.0, 0.1, 0.8]),
        kinds=steppe.Categorical(3, [2, 3, 4]),
    ),
}
PUBLISHED_NAMES = {
    "Gibbs-1": steppe.gibbs(num_updates=1),
    "BG-1": steppe.block_gibbs(block_size=1),
    "HB-10-1": steppe.hamming_ball(block_size=10, radius=1),
    "GWG-1": steppe.gwg(num_flips=1),
}
VARIANTS = {
    "GWG-3": steppe.gwg(num_flips=3),
    "BG-2": steppe.block_gibbs(block_size=2),
    "Gibbs-3, systematic": steppe.gibbs(num_updates=3, scan="systematic"),
    "Gibbs-3, random": steppe.gibbs(num_updates=3, scan="random"),
    "edmala, exact coupling": steppe.edmala(coupling_form="exact"),
    "edula_glu, drawn center": steppe.edula_glu(center_start="conditional"),
}
RECIPES = {name: make() for name, make in ALL_RECIPES.items()} | PUBLISHED_NAMES | VARIANTS
# A ladder that is given costs no adaptation before every run.
RECIPES["parallel_tempering"] = steppe.parallel_tempering(inverse_temperatures=(0.0, 0.3, 1.0))

# Test programs run for milliseconds: compiling them seven times faster is worth more than their speed.
# Not every XLA knows all of these flags: without those of `suite`, the first does most of it.
QUICK: dict[str, int | bool] = {"xla_backend_optimization_level": 0}
if os.environ.get("STEPPE_TEST_OPTIMISED") != "1":
    QUICK |= {
        "xla_llvm_disable_expensive_passes": True,
        "xla_cpu_use_fusion_emitters": False,
        "xla_cpu_parallel_codegen_split_count": 1,
    }


def quick_jit(function):
    """`jax.jit` with the shortest compilation."""
    return jax.jit(function, compiler_options=QUICK)


QUICK_MATRICES = {
    metropolis: ("enumerate_moves", quick_jit(inspect.unwrap(metropolis.enumerate_moves))),
    gibbs: ("enumerate_updates", quick_jit(inspect.unwrap(gibbs.enumerate_updates))),
    site_gibbs: ("enumerate_sites", quick_jit(inspect.unwrap(site_gibbs.enumerate_sites))),
}


def transition_matrix(recipe, target, *, center=None) -> np.ndarray:
    """`steppe.diagnostics.exact.transition_matrix`, compiled quickly."""
    with ExitStack() as stack:
        for module, (name, quick) in QUICK_MATRICES.items():
            stack.enter_context(mock.patch.object(module, name, quick))
        return exact.transition_matrix(recipe, target, center=center)


def target_on(domain_name: str) -> steppe.Target:
    return polynomial_target(DOMAINS[domain_name], 1.0)


def chain_keys(seed: int, num_chains: int = NUM_CHAINS) -> jax.Array:
    return jax.random.split(jax.random.key(seed), num_chains)


def starts(domain: steppe.Domain, num_chains: int = NUM_CHAINS) -> jax.Array:
    levels = np.random.default_rng(99).integers(0, domain.num_levels, (num_chains, domain.num_sites))
    return domain.from_levels(levels)


def one_chain(sampler, key, position, num_steps: int = NUM_STEPS):
    """Initial state, and the state and info after every step, of one chain."""
    start = sampler.init(position, key)

    def step(state, step_key):
        state, info = sampler.step(step_key, state)
        return state, (state, info)

    _, (states, infos) = jax.lax.scan(step, start, jax.random.split(key, num_steps))
    return start, states, infos


def are_identical(first, second) -> bool:
    """Bit for bit, leaf by leaf."""
    return jax.tree.all(jax.tree.map(np.array_equal, first, second))


@quick_jit
def run_chains(sampler, keys, positions):
    """Many chains: `jit` of `vmap` of `lax.scan`, with the sampler a traced argument."""
    return jax.vmap(one_chain, (None, 0, 0))(sampler, keys, positions)
