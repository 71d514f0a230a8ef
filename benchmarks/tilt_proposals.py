"""Which gradient should guide the roughness tilt: that of U, or that of U − λR?

    python benchmarks/tilt_proposals.py

Exact integrated autocorrelation times of the indicator of a flat mode on the paper's four bits, at the best
of a grid of step sizes, and the same per model evaluation: the tilted gradient needs a second derivative,
which costs about two further evaluations.
"""

import jax
import jax.numpy as jnp
import numpy as np

import steppe
from steppe.diagnostics.exact import integrated_autocorrelation_time, transition_matrix
from steppe.targets.bernoulli import PAPER_MODES, paper_bernoulli

STEP_SIZES = np.geomspace(0.15, 3.0, 25)
COST = {"∇U": 1, "∇(U − λR)": 3}


def tilted_target(target, strength):
    """U − λR as a log-density of its own, so that DMALA on it follows the tilted gradient."""

    def value(position):
        height, gradient = jax.value_and_grad(target.log_density)(position)
        return height - strength * jnp.mean(jnp.abs(target.domain.flip_slopes(position, gradient)))

    return steppe.Target(value, target.domain)


def shortest(make, target, indicator):
    times = [
        integrated_autocorrelation_time(transition_matrix(make(a), target), indicator) for a in STEP_SIZES
    ]
    best = int(np.argmin(times))
    return times[best], STEP_SIZES[best]


def main():
    jax.config.update("jax_enable_x64", True)
    target = paper_bernoulli()
    flat = {int("".join(map(str, mode)), 2) for mode in PAPER_MODES.flat}
    indicator = np.array([float(state in flat) for state in range(16)])
    for strength in (0.0, 0.5, 1.0, 2.0, 4.0):
        tilted = tilted_target(target, strength)
        plain = shortest(
            lambda a, s=strength: steppe.roughness_tilted(strength=s, step_size=a), target, indicator
        )
        full = shortest(steppe.dmala, tilted, indicator)
        for name, (time, step) in {"∇U": plain, "∇(U − λR)": full}.items():
            cost = f"{time:5.2f} steps, {time * COST[name]:6.2f} evaluations"
            print(f"λ = {strength:3.1f}  {name:10s} {cost}, at α = {step:.2f}")


if __name__ == "__main__":
    main()
