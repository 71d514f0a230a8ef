"""Cases of steppe, all through `recipe.build(target)`, and the floors beside them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import steppe
from speed.harness import Case
from steppe.kernel.compose import Recipe
from steppe.targets import binary_network, ising_lattice, paper_bernoulli, rbm, tsp

KEY = jax.random.key(0)
ALPHA, CENTER_ALPHA, ETA = 0.1, 0.1, 0.5

LANGEVIN: dict[str, Recipe] = {
    "dula": steppe.dula(step_size=ALPHA),
    "dmala": steppe.dmala(step_size=ALPHA),
    "edula": steppe.edula(step_size=ALPHA, center_step_size=CENTER_ALPHA, coupling_variance=ETA),
    "edmala": steppe.edmala(step_size=ALPHA, center_step_size=CENTER_ALPHA, coupling_variance=ETA),
    "edula_glu": steppe.edula_glu(step_size=ALPHA, coupling_variance=ETA),
    "edmala_glu": steppe.edmala_glu(step_size=ALPHA, coupling_variance=ETA),
    "gwg-1": steppe.gwg(num_flips=1),
    "robust_ensemble-5": steppe.robust_ensemble(replicas=5, coupling_variance=ETA, step_size=ALPHA),
    "roughness_tilted": steppe.roughness_tilted(strength=1.0, step_size=ALPHA),
}
SITE_WISE: dict[str, Recipe] = {
    "gibbs-1": steppe.gibbs(num_updates=1),
    "bg-1": steppe.block_gibbs(block_size=1),
    "hb-10-1": steppe.hamming_ball(block_size=10, radius=1),
}


@partial(jax.jit, static_argnames="num_steps")
def scan(sampler, states, key, num_steps: int):
    """The bare loop: one `lax.scan` of vectorised steps, nothing kept."""
    keys = jax.random.split(key, (num_steps, states.log_density.shape[0]))

    def step(states, keys):
        states, info = jax.vmap(sampler.step)(keys, states)
        return states, info.acceptance_rate.mean()

    return jax.lax.scan(step, states, keys)


def case(cell: str, name: str, recipe: Recipe, target, num_chains: int, num_steps: int) -> Case:
    """A recipe on a target, ready to time."""
    sampler = recipe.build(target, audit=False)
    starts = target.domain.draw(KEY, (num_chains,))
    states = jax.jit(jax.vmap(sampler.init))(starts, jax.random.split(KEY, num_chains))
    run = lambda: jax.block_until_ready(scan(sampler, states, KEY, num_steps))  # noqa: E731
    return Case(cell, name, run, num_steps, sampler.evaluations_per_step)


def random_rbm():
    """784 visible and 500 hidden bits, weights of scale .05."""
    shapes = [(500, 784), (500,), (784,)]
    return rbm(*(0.05 * jax.random.normal(jax.random.fold_in(KEY, i), s) for i, s in enumerate(shapes)))


def bernoulli_cases(names, num_steps: int = 20_000) -> list[Case]:
    return [case("bernoulli ×4", n, LANGEVIN[n], paper_bernoulli(), 4, num_steps) for n in names]


def rbm_cases(num_chains: int, names, num_steps: int) -> list[Case]:
    target, cell = random_rbm(), f"rbm ×{num_chains}"
    recipes = LANGEVIN | SITE_WISE
    # A step of one site is short: with few of them, the call itself would be timed.
    steps = {name: num_steps * (20 if name in SITE_WISE else 1) for name in names}
    cases = [case(cell, n, recipes[n], target, num_chains, steps[n]) for n in names]
    return [*cases, gemm_pair(cell, target.weights, num_chains, num_steps)]


def gemm_pair(cell: str, weights, num_chains: int, num_steps: int) -> Case:
    """The floor of a step on the machine: its two matrix products."""

    @jax.jit
    def products(x):
        return jax.lax.fori_loop(0, num_steps, lambda _, x: ((x @ weights.T) @ weights) * 1e-3, x)

    x = jax.random.normal(KEY, (num_chains, weights.shape[1]))
    return Case(cell, "floor: matrix products", lambda: products(x).block_until_ready(), num_steps)


def ising_cases(length: int, num_chains: int, names, num_steps: int) -> list[Case]:
    target, cell = ising_lattice((length, length), 0.3), f"ising {length}×{length} ×{num_chains}"
    cases = [case(cell, n, LANGEVIN[n], target, num_chains, num_steps) for n in names]
    return [*cases, noise_alone(cell, length * length, num_chains, num_steps)]


def noise_alone(cell: str, num_sites: int, num_chains: int, num_steps: int) -> Case:
    """The floor of a step on a lattice: one uniform and one normal per site."""
    from steppe.random import draws

    @jax.jit
    def draw(keys):
        def add(index, total):
            own = jax.vmap(lambda key: jax.random.fold_in(key, index))(keys)
            one = lambda key: draws.uniform(key, (num_sites,)) + draws.normal(key, (num_sites,))  # noqa: E731
            return total + jax.vmap(one)(own)

        return jax.lax.fori_loop(0, num_steps, add, jnp.zeros((num_chains, num_sites)))

    keys = jax.random.split(KEY, num_chains)
    return Case(cell, "floor: random numbers", lambda: draw(keys).block_until_ready(), num_steps)


def network_cases(cell: str, num_rows: int, num_columns: int, names, num_steps: int) -> list[Case]:
    """Fifty networks of 500 hidden units on random data of a table's shape."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((num_rows, num_columns)).astype(np.float32)
    y = rng.uniform(size=num_rows).astype(np.float32)
    target = binary_network(x, y, 500, preset="published")
    cases = [case(cell, n, LANGEVIN[n], target, 50, num_steps) for n in names]
    return [*cases, network_floor(cell, x, 50, num_steps)]


def network_floor(cell: str, x, num_networks: int, num_steps: int, rows: int = 256) -> Case:
    """The two products of value and gradient and the tanh, in blocks of rows that fit the cache."""
    blocks = jnp.asarray(x[: len(x) // rows * rows].reshape(-1, rows, x.shape[1]))

    @jax.jit
    def evaluate(weights):
        def network(w):
            def block(total, part):
                hidden = jnp.tanh(part @ w)
                return total + part.T @ hidden, None

            return jax.lax.scan(block, jnp.zeros_like(w), blocks)[0] * 1e-6

        return jax.lax.fori_loop(0, num_steps, lambda _, w: jax.lax.map(network, w), weights)

    weights = jnp.ones((num_networks, x.shape[1], 500)) * 0.01
    return Case(cell, "floor: products and tanh", lambda: evaluate(weights).block_until_ready(), num_steps)


def tour_cases(num_cities: int, num_steps: int) -> list[Case]:
    places = np.random.default_rng(num_cities).uniform(size=(num_cities, 2))
    recipe = steppe.informed_permutation()
    return [
        case(f"tsp {num_cities} ×4", "informed_permutation", recipe, tsp(coordinates=places), 4, num_steps)
    ]
