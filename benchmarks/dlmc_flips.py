"""Accepted flips per step of `dlmc` and `dmala` on a ring of 256 bits, each at its best step size.

`python benchmarks/dlmc_flips.py` prints a table: mean over chains and kept steps of flips that were accepted,
with a standard error over chains, for three strengths of coupling and field. Both samplers cost one
evaluation per step, so flips per step are flips per evaluation.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

import steppe
from steppe.kernel.sampler import Sampler

NUM_SITES, NUM_CHAINS, NUM_STEPS, NUM_DISCARDED = 256, 24, 400, 200
RINGS = ((0.5, 0.7), (1.5, 0.7), (0.5, 2.0))
STEP_SIZES = {
    "dmala": (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.6, 1.0, 2.0),
    "dlmc": (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.5),
}
RECIPES = {"dmala": steppe.dmala, "dlmc": steppe.dlmc}


def ring_log_density(coupling, field, bits):
    """`b·x + J Σ x_i x_{i+1}` on a ring."""
    return field @ bits + coupling * bits @ jnp.roll(bits, 1)


def ring(coupling: float, field_scale: float) -> steppe.Target:
    """Bits in random fields, coupled to their neighbours."""
    field = field_scale * np.random.default_rng(7).standard_normal(NUM_SITES) - coupling
    arrays = jnp.asarray(coupling, jnp.float32), jnp.asarray(field, jnp.float32)
    return steppe.Target(Partial(ring_log_density, *arrays), steppe.Binary(NUM_SITES))


@jax.jit
def figures(sampler: Sampler, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Flips and acceptance of every chain, means over kept steps."""

    def chain(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        start = sampler.init(sampler.target.domain.draw(key))

        def step(state, key):
            state, info = sampler.step(key, state)
            return state, (info.num_flips, info.acceptance_rate)

        _, (flips, rate) = jax.lax.scan(step, start, jax.random.split(key, NUM_STEPS))
        return flips[NUM_DISCARDED:].mean(), rate[NUM_DISCARDED:].mean()

    return jax.vmap(chain)(jax.random.split(key, NUM_CHAINS))


def best(name: str, target: steppe.Target) -> tuple[float, float, float, float]:
    """Most flips, their standard error, acceptance there, and the step size."""
    rows = []
    for step_size in STEP_SIZES[name]:
        sampler = RECIPES[name](step_size=step_size).build(target)
        flips, rate = (np.asarray(values) for values in figures(sampler, jax.random.key(0)))
        error = flips.std(ddof=1) / np.sqrt(NUM_CHAINS)
        rows.append((float(flips.mean()), float(error), float(rate.mean()), step_size))
    return max(rows)


def main() -> None:
    """Print the table."""
    print(f"{'J, field':>10} {'sampler':>8} {'flips/step':>16} {'acceptance':>11} {'step':>6} {'ratio':>6}")
    for coupling, field_scale in RINGS:
        target = ring(coupling, field_scale)
        found = {name: best(name, target) for name in RECIPES}
        for name, (flips, error, rate, step_size) in found.items():
            ratio = flips / found["dmala"][0]
            shown = f"{coupling:g}, {field_scale:g}"
            print(
                f"{shown:>10} {name:>8} {flips:9.1f} ± {error:4.1f} {rate:11.2f} {step_size:6g} {ratio:6.2f}"
            )


if __name__ == "__main__":
    main()
