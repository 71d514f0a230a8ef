"""Langevin proposals decided patch by patch, beside overrelaxed chromatic sweeps, on one Ising lattice.

    taskset -c 0 python benchmarks/langevin_patches.py

Squares of `b × b` sites with one row between them do not interact, so each may take a Metropolis decision of
its own on a Langevin proposal (`dmala`) of its sites, and the step is exact; the grid of squares is shifted
at random before every step, so that all sites move. Effective draws of the energy and of the squared
magnetisation per 1000 site updates, at the best step size of a small grid, beside sweeps of
`chromatic_gibbs` and `dmala` of the whole lattice: what a site update costs is left out, in favour of
patches, which need a gradient, two exponentials and the sums of a ratio where a sweep compares one number.
"""

import argparse
import json
import sys
from functools import partial
from pathlib import Path

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np

import steppe
from steppe.targets import ising_lattice

LENGTH, NUM_CHAINS, NUM_WARMUP, NUM_STEPS = 32, 20, 300, 1500
SIDES = (1, 3, 7)
STEP_SIZES = (0.5, 1.0, 2.0, 4.0, 8.0)
TEMPERATURE = 3.0


def neighbours(spins: jax.Array) -> jax.Array:
    return sum(jnp.roll(spins, shift, axis) for shift in (1, -1) for axis in (0, 1))


def sum_patches(terms: jax.Array, period: int) -> jax.Array:
    """Sum over the squares of a grid, repeated at their sites."""
    number = LENGTH // period
    sums = terms.reshape(number, period, number, period).sum((1, 3), keepdims=True)
    return jnp.broadcast_to(sums, (number, period, number, period)).reshape(LENGTH, LENGTH)


def step(key: jax.Array, spins: jax.Array, step_size: float, side: int) -> jax.Array:
    """One proposal for every patch, each with its own decision."""
    key_shift, key_flip, key_accept = jax.random.split(key, 3)
    period, place = side + 1, jnp.arange(LENGTH)
    shift = jax.random.randint(key_shift, (2,), 0, period)
    spins = jnp.roll(spins, shift, (0, 1))
    is_inside = place % period < side
    is_active = is_inside[:, None] & is_inside
    coupling = 1 / TEMPERATURE

    def log_odds(spins: jax.Array) -> jax.Array:
        return -spins * coupling * neighbours(spins) - 2 / step_size

    def log_terms(flips: jax.Array, odds: jax.Array) -> jax.Array:
        return jnp.where(is_active, -jax.nn.softplus(jnp.where(flips, -odds, odds)), 0)

    def local(spins: jax.Array) -> jax.Array:
        """Bonds within a patch count once, bonds across its border too."""
        within = jnp.where(is_active, spins, 0)
        both = within * neighbours(within)
        return coupling * (within * neighbours(spins) - 0.5 * both)

    odds = log_odds(spins)
    flips = is_active & (jax.random.uniform(key_flip, spins.shape) < jax.nn.sigmoid(odds))
    moved = jnp.where(flips, -spins, spins)
    terms = local(moved) - local(spins) + log_terms(flips, log_odds(moved)) - log_terms(flips, odds)
    # One uniform per patch: that of its first site.
    uniforms = jax.random.uniform(key_accept, (LENGTH // period, LENGTH // period))
    uniforms = jnp.repeat(jnp.repeat(uniforms, period, 0), period, 1)
    is_accepted = jnp.log(uniforms) < sum_patches(terms, period)
    return jnp.roll(jnp.where(is_accepted, moved, spins), -shift, (0, 1))


@partial(jax.jit, static_argnames="side")
def simulate(step_size: float, side: int) -> jax.Array:
    """Spins after every step, chain × step × site."""

    def chain(key: jax.Array) -> jax.Array:
        def advance(spins: jax.Array, index: jax.Array) -> tuple[jax.Array, jax.Array]:
            spins = step(jax.random.fold_in(key, index), spins, step_size, side)
            return spins, spins > 0

        start = jnp.where(jax.random.bernoulli(key, 0.5, (LENGTH, LENGTH)), 1.0, -1.0)
        return jax.lax.scan(advance, start, jnp.arange(NUM_WARMUP + NUM_STEPS))[1][NUM_WARMUP:]

    return jax.vmap(chain)(jax.random.split(jax.random.key(0), NUM_CHAINS))


def measure(is_up: np.ndarray, updates_per_step: float) -> dict[str, float]:
    """Mean energy, and effective draws per 1000 site updates of energy and squared magnetisation."""
    spins = 2 * is_up.reshape(*is_up.shape[:2], LENGTH, LENGTH).astype(np.int8) - 1
    bonds = sum((spins * np.roll(spins, 1, axis)).sum((-1, -2), dtype=int) for axis in (-1, -2))
    squares = spins.sum((-1, -2), dtype=int) ** 2.0
    energy = bonds / TEMPERATURE
    number = energy.size * updates_per_step / 1000
    effective = [
        float(arviz_stats.ess(np.asarray(values, float), method="mean")) for values in (energy, squares)
    ]
    return {
        "mean": float(energy.mean()),
        "error": float(energy.std() / effective[0] ** 0.5),
        "energy": effective[0] / number,
        "square": effective[1] / number,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    target, found = ising_lattice((LENGTH, LENGTH), 1 / TEMPERATURE), {}
    for name, recipe in {"chromatic_gibbs": steppe.chromatic_gibbs(), "dmala": steppe.dmala()}.items():
        run = steppe.sample(
            target, recipe, key=jax.random.key(0), num_chains=NUM_CHAINS, num_warmup=NUM_WARMUP,
            num_draws=NUM_STEPS, progress=False,
        )  # fmt: skip
        found[name] = measure(np.asarray(run.levels) > 0, LENGTH**2)
    for side in SIDES:
        updates = LENGTH**2 * (side / (side + 1)) ** 2
        tried = {size: measure(np.asarray(simulate(size, side)), updates) for size in STEP_SIZES}
        best = max(tried, key=lambda size: min(tried[size]["energy"], tried[size]["square"]))
        found[f"patches of {side}×{side}, step size {best}"] = tried[best]
    for name, row in found.items():
        sys.stdout.write(f"{name}: {json.dumps(row)}\n")
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
