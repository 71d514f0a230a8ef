"""What the parameters of every recipe do: one SVG per recipe, with its caption beside it.

    python docs/figures/parameters.py [recipe ...]

Movement is measured on a ring of 64 bits (J = 0.5, random field of standard deviation 0.7), 64 chains. Bias
and flatness are those of the paper's four bits: summed exactly, or sampled by 8192 chains where a real center
forbids sums.
"""

import inspect
import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib import rc_context

import steppe
from steppe.diagnostics.exact import target_distribution, total_variation
from steppe.report import style
from steppe.samplers.registry import REGISTRY
from steppe.targets import ising_lattice, paper_bernoulli, tsp
from steppe.targets.bernoulli import PAPER_MODES

HERE = Path(__file__).parent
NUM_SITES, NUM_CHAINS, NUM_STEPS, NUM_DISCARDED = 64, 64, 300, 150
RING = ising_lattice(NUM_SITES, 0.5, 0.7 * np.random.default_rng(7).standard_normal(NUM_SITES), spins=False)
BITS = paper_bernoulli()
DISTRIBUTION = target_distribution(BITS)
NUM_CITIES = 16
TOURS = tsp(coordinates=np.random.default_rng(0).random((NUM_CITIES, 2)), inverse_temperature=10.0)

TWO_MODES = steppe.Target(lambda s: 0.2 * s.sum() ** 2, steppe.Spin(12))

STEPS = np.geomspace(0.05, 1.0, 9)
VARIANCES = np.geomspace(0.1, 8.0, 8)
CHANGES, ACCEPTANCE, LENGTH = "changed sites per step, of 64", "acceptance rate", "mean length of tours"
CROSSINGS = "changes of side per 100 steps"
BIAS, FLAT, MEAN_U = "distance to π (TV)", "mass of flat modes", "E[U]"


@partial(jax.jit, static_argnames=("num_steps", "num_discarded"))
def walked(sampler, starts, key, num_steps=NUM_STEPS, num_discarded=NUM_DISCARDED):
    """Mean acceptance and changes per step, and the positions of the second half."""

    def advance(states, key):
        states, info = jax.vmap(sampler.step)(jax.random.split(key, len(starts)), states)
        return states, (info.acceptance_rate.mean(), info.num_flips.mean(), states.position)

    states = jax.vmap(sampler.init)(starts, jax.random.split(key, len(starts)))
    _, history = jax.lax.scan(advance, states, jax.random.split(key, num_steps))
    return jax.tree.map(lambda rows: rows[num_discarded:], history)


def moves(recipe):
    starts = RING.domain.draw(jax.random.key(1), (NUM_CHAINS,))
    acceptance, changes, _ = walked(recipe.build(RING), starts, jax.random.key(2))
    return {ACCEPTANCE: float(acceptance.mean()), CHANGES: float(changes.mean())}


def moves_of_tours(recipe):
    starts = TOURS.domain.draw(jax.random.key(1), (NUM_CHAINS,))
    acceptance, _, positions = walked(recipe.build(TOURS), starts, jax.random.key(2), 600, 300)
    return {ACCEPTANCE: float(acceptance.mean()), LENGTH: float(TOURS.cost(positions).mean())}


def crossings(recipe):
    """On two deep modes of 12 spins: how often the first chain changes sides, and how often swaps succeed."""
    starts = TWO_MODES.domain.draw(jax.random.key(1), (NUM_CHAINS,))
    acceptance, _, positions = walked(recipe.build(TWO_MODES), starts, jax.random.key(2), 1000, 200)
    side = np.sign(np.asarray(positions).mean(axis=-1))
    return {ACCEPTANCE: float(acceptance.mean()), CROSSINGS: 100 * float((side[1:] != side[:-1]).mean())}


def bias(recipe):
    """Exactly where the distribution can be summed, else from many chains on four bits."""
    if not recipe.coupling.has_center:
        return {BIAS: total_variation(recipe.stationary(BITS).probabilities(), DISTRIBUTION)}
    _, _, positions = walked(recipe.build(BITS), starts_of_distribution(), jax.random.key(4), 400, 200)
    counts = np.bincount(np.asarray(BITS.domain.index(positions)).ravel(), minlength=16)
    return {BIAS: total_variation(counts / counts.sum(), DISTRIBUTION)}


def starts_of_distribution(num_chains=8192):
    """As many chains at every state as π says, so that slow chains do not look biased."""
    index = np.searchsorted(np.cumsum(DISTRIBUTION), (np.arange(num_chains) + 0.5) / num_chains)
    return BITS.domain.enumerate()[np.minimum(index, 15)]


def bias_and_moves(recipe):
    return bias(recipe) | {CHANGES: moves(recipe)[CHANGES]}


def flatness(recipe):
    """Exact, of one position of the four bits."""
    distribution = recipe.stationary(BITS).probabilities()
    flat = BITS.domain.index(jnp.asarray(PAPER_MODES.flat, float))
    values = jax.vmap(BITS.log_density)(BITS.domain.enumerate())
    return {
        FLAT: float(distribution[np.asarray(flat)].sum()),
        MEAN_U: float(distribution @ np.asarray(values, float)),
    }


def center_distribution(recipe):
    """Exact, of a lattice center of the four bits."""
    states = BITS.domain.enumerate()
    logs = recipe.stationary(BITS).center_log_prob(states)
    distribution = np.exp(logs - logs.max())
    distribution /= distribution.sum()
    flat = np.asarray(BITS.domain.index(jnp.asarray(PAPER_MODES.flat, float)))
    values = np.asarray(jax.vmap(BITS.log_density)(states), float)
    return {
        f"{FLAT}, center": float(distribution[flat].sum()),
        f"{MEAN_U} of the center": float(distribution @ values),
    }


def whole(*values):
    return np.asarray(values)


# Values of every parameter, in the order of the panels.
GRIDS = {
    "replicas": whole(1, 2, 3, 4, 6, 8),
    "strength": np.linspace(0, 6, 9),
    "moves": ["swap", "two_opt", "insert"],
    "step_size": STEPS,
    "coupling_variance": VARIANCES,
    "center_step_size": np.geomspace(0.02, 2.0, 7),
    "persistence": np.linspace(0, 0.98, 8),
    "center_weight": np.linspace(0, 4, 6),
    "num_flips": whole(1, 2, 3, 5, 7, 9),
    "max_flips": whole(1, 2, 3, 5, 7, 9),
    "num_updates": whole(1, 2, 4, 8, 16),
    "block_size": whole(1, 2, 4, 6, 8),
    "radius": whole(1, 2, 3),
    "cycle_length": whole(2, 4, 8, 12),
    "smallest": np.geomspace(0.05, 1, 6),
    "overrelaxation": np.linspace(0, 0.95, 6),
    "inverse_temperatures": ["1", ".6, 1", ".36, .6, 1", ".36, 1"],
}
# A sampler that wants other values of a parameter than the rest; none leave a panel out.
OTHER_GRIDS = {
    ("hamming_ball", "block_size"): whole(2, 5, 10, 20, 40),
    ("uniform_permutation", "moves"): ["swap", "two_opt", "insert", "or_opt"],
    ("roughness_tilted", "coupling_variance"): [],
}
# What is held while another parameter moves, where it is not the default.
HELD = {
    "edula": {"step_size": 0.15},
    "edmala": {"step_size": 0.15},
    "edula_glu": {"step_size": 0.15},
    "edmala_glu": {"step_size": 0.15},
    "edmala_ou": {"step_size": 0.15},
    "dmala_cyclical": {"step_size": 0.4},
}
MEASURES = {
    "Langevin, unadjusted": bias_and_moves,
    "several temperatures": crossings,
    "permutations": moves_of_tours,
}
# Parameters that bend what is sampled, on purpose.
BENDING = {
    ("robust_ensemble", "replicas"): center_distribution,
    ("robust_ensemble", "coupling_variance"): center_distribution,
    ("robust_ensemble", "center_weight"): center_distribution,
    ("roughness_tilted", "strength"): flatness,
}


def panels(name):
    """Values, the recipe at a value, and what is measured of it, by parameter of a sampler."""
    known = inspect.signature(REGISTRY[name].make).parameters
    grids = {one: OTHER_GRIDS.get((name, one), values) for one, values in GRIDS.items() if one in known}
    usual = MEASURES.get(REGISTRY[name].family, moves)
    return {
        parameter: (values, partial(made_with, name, parameter), BENDING.get((name, parameter), usual))
        for parameter, values in grids.items()
        if len(values)
    }


def made_with(name, parameter, value):
    if parameter == "inverse_temperatures":  # a single temperature is the base itself
        value = [float(beta) for beta in value.split(", ")]
        return steppe.parallel_tempering(inverse_temperatures=value) if len(value) > 1 else steppe.dmala()
    lattice = {"center": "lattice"} if BENDING.get((name, parameter)) is center_distribution else {}
    value = int(value) if isinstance(value, np.integer) else value
    return REGISTRY[name].make(**{**HELD.get(name, {}), **lattice, parameter: value})


WORDS = {
    crossings: "acceptance and how often a chain at β = 1 changes sides, on 12 spins with two deep modes",
    moves_of_tours: "acceptance and mean length of tours of 16 random cities at β = 10, steps 301 to 600 "
    "from random tours; the distribution is the same for all, so shorter means closer to it",
    moves: "acceptance and changed sites per step on a ring of 64 bits",
    bias_and_moves: "distance to π in total variation on the paper's four bits (exact, or from 8192 chains "
    "begun in π where there is a center), and changed sites per step on a ring of 64 bits",
    flatness: "mass of the two flat modes and E[U] under the exact distribution on the paper's four bits",
    center_distribution: "mass of the two flat modes and E[U] under the exact distribution of a lattice "
    "center on the paper's four bits",
}


@style.apply()
def draw(name):
    columns = panels(name)
    figure, _ = style.make_row(1, 2.5 * max(2, len(columns)), 3.6)
    figure.clear()
    axes = figure.subplots(2, len(columns), squeeze=False, sharex="col")
    told = {}
    for column, (parameter, (values, make, measure)) in enumerate(columns.items()):
        rows = [measure(make(value)) for value in values]
        told.setdefault(WORDS[measure], []).append(f"`{parameter}`")
        for axis, label in zip(axes[:, column], rows[0], strict=True):
            axis.plot(
                values,
                [row[label] for row in rows],
                "o-",
                color=style.SAMPLER_COLORS[name],
                ms=3.5,
                lw=1.2,
            )
            axis.set_title(label, fontsize=8.5)
            axis.tick_params(labelsize=8)
            if not isinstance(values[0], str) and values[0] > 0 and values[-1] / values[0] > 15:
                axis.set_xscale("log")
        axes[1, column].set_xlabel(parameter)
    with rc_context({"svg.fonttype": "none"}):  # a fifth of the size of letters as paths
        figure.savefig(HERE / f"{name}.svg", metadata={"Date": None})
    caption = "; ".join(f"{', '.join(parameters)}: {words}" for words, parameters in told.items())
    ending = "Made by `docs/figures/parameters.py`."
    (HERE / f"{name}.txt").write_text(f"{caption}. {ending}\n", encoding="utf-8")
    print(name, flush=True)


if __name__ == "__main__":
    for chosen in sys.argv[1:] or REGISTRY:
        draw(chosen)
