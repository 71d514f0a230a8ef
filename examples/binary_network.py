"""A network of ±1 weights as a posterior: which samples of weights survive flipped bits?

    python examples/binary_network.py

Regression on a made-up table. Chains are annealed, then the training error is measured after random flips of
weights. Writes out/examples/binary_network.png.

Result: no advantage of the ensemble here. Its training error, 0.0091 against 0.0086, stays above that of
`dmala` after flips of any fraction; its test error is smaller, 0.0095 against 0.0102. One run each, so
without an error.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import steppe
from steppe.report import style
from steppe.targets import binary_network

OUT = Path("out/examples/binary_network")
RECIPES = {"dmala": steppe.dmala(), "robust_ensemble": steppe.robust_ensemble(replicas=5, center="lattice")}
SHARES = np.asarray([0.0, 0.01, 0.02, 0.05, 0.1])
BUDGET = 20_000


def table():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 6))
    y = 1 / (1 + np.exp(-(1.5 * np.tanh(x[:, 0] - x[:, 1]) + x[:, 2] + 0.3 * rng.standard_normal(400))))
    return x[:200], y[:200], x[200:], y[200:]


def main():
    x, y, x_test, y_test = table()
    target, test = binary_network(x, y, hidden=16), binary_network(x_test, y_test, hidden=16)
    lines = {}
    for name, recipe in RECIPES.items():
        replicas = 5 if name == "robust_ensemble" else 1
        cooling = steppe.parameter_schedule(inverse_temperature=steppe.geometric_schedule(0.02, 1.0))
        best = steppe.anneal(
            target, recipe, cooling, key=jax.random.key(0), num_steps=BUDGET // (4 * replicas), num_chains=4
        )
        states = np.asarray(best.position).reshape(4, -1, *target.domain.shape)[:, 0]  # one copy per chain
        errors = [mean_error(network, states) for network in (target, test)]
        print(f"{name:16} training error {errors[0]:.4f}, test error {errors[1]:.4f}")
        lines[name] = [mean_error(target, flipped(states, fraction)) for fraction in SHARES]
    draw(lines)


def mean_error(network, states):
    """Mean squared error, from U = −temperature · error."""
    return float(-jax.vmap(network.log_density)(jnp.asarray(states)).mean() / network.temperature)


def flipped(states, fraction, num_replicas=50):
    noise = np.random.default_rng(1).random((num_replicas, *states.shape)) < fraction
    return np.abs(states - noise).reshape(-1, states.shape[-1])


@style.apply()
def draw(lines):
    figure, (axis,) = style.make_row(1, 5.5, 3.6)
    for name, errors in lines.items():
        color, marker = style.SAMPLER_COLORS[name], style.SAMPLER_MARKERS[name]
        axis.plot(100 * SHARES, errors, marker=marker, color=color, label=name)
    axis.set(
        xlabel="weights flipped at random, %", ylabel="training error", title="One seed: an illustration"
    )
    axis.legend()
    print(*style.save(figure, OUT), sep="\n")


if __name__ == "__main__":
    main()
