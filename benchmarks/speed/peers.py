"""Effective draws per second of processor time, beside other packages on the same target.

    cd benchmarks && python -m speed.peers

- Ising model on a 16×16 torus: two-colour block Gibbs of THRML, constant-temperature Metropolis sweeps of
  D-Wave's annealer (every read is an independent draw), and ours;
- the paper's four bits: NumPyro's `DiscreteHMCGibbs`, which needs a continuous variable beside them, and
  ours.

The figure is the effective number of draws of the log-density, all chains together, over the processor time
of the second call, which has nothing to compile; ours pay for their warm-up in it. Means with their standard
errors stand beside, because speed towards another distribution would be worth nothing. A package that is not
installed is left out.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import steppe
from steppe.kernel.compose import Recipe
from steppe.targets import ising_lattice, paper_bernoulli
from steppe.targets.bernoulli import PAPER_PROBABILITIES

LENGTH, COUPLING = 16, 0.3
NUM_CHAINS, NUM_WARMUP, NUM_DRAWS = 20, 500, 2000
# A sweep of single sites takes a long time; its effective draws per second need fewer of them.
NUM_SWEEPS = 100
NUM_TABLE_DRAWS = 50_000
ANNEALER_SWEEPS = 100
KEY = jax.random.key(0)

# Log-densities of all draws, chain × draw.
Draw = Callable[[], np.ndarray]


class Peer(NamedTuple):
    """A way to draw from a target."""

    cell: str
    name: str
    draw: Draw


def ours(
    cell: str, name: str, recipe: Recipe, target: steppe.Target, num_chains: int, num_draws: int = NUM_DRAWS
) -> Peer:
    """`steppe.sample` with a quarter as much warm-up."""

    def draw() -> np.ndarray:
        run = steppe.sample(
            target,
            recipe,
            key=KEY,
            num_chains=num_chains,
            num_warmup=num_draws // 4,
            num_draws=num_draws,
            keep="stats",
            progress=False,
        )
        return np.asarray(run.data["sample_stats"]["log_density"])

    return Peer(cell, f"steppe {name}", draw)


def bonds() -> np.ndarray:
    """The two bonds of every site, to the right and down, around the torus."""
    places = np.arange(LENGTH * LENGTH).reshape(LENGTH, LENGTH)
    ends = [np.stack([places, np.roll(places, -1, axis)], -1).reshape(-1, 2) for axis in (0, 1)]
    return np.concatenate(ends)


def log_density(spins: np.ndarray) -> np.ndarray:
    """`J Σ s s'` of spins along the last axis."""
    first, second = bonds().T
    return COUPLING * (spins[..., first] * spins[..., second]).sum(-1)


def thrml_gibbs(cell: str) -> Peer:
    """Even sites, then odd sites."""
    from thrml import Block, SamplingSchedule, SpinNode, sample_states
    from thrml.models import IsingEBM, IsingSamplingProgram, hinton_init

    nodes = [SpinNode() for _ in range(LENGTH * LENGTH)]
    colour = np.indices((LENGTH, LENGTH)).sum(0).reshape(-1) % 2
    blocks = [Block([nodes[i] for i in np.flatnonzero(colour == c)]) for c in (0, 1)]
    pairs = bonds()
    model = IsingEBM(
        nodes,
        [(nodes[i], nodes[j]) for i, j in pairs],
        jnp.zeros(len(nodes)),
        jnp.full(len(pairs), COUPLING),
        jnp.array(1.0),
    )
    program = IsingSamplingProgram(model, blocks, clamped_blocks=[])
    schedule = SamplingSchedule(n_warmup=NUM_WARMUP, n_samples=NUM_DRAWS, steps_per_sample=1)

    @jax.jit
    @jax.vmap
    def chain(key: jax.Array) -> jax.Array:
        start = hinton_init(key, model, blocks, ())
        return sample_states(key, program, schedule, start, [], [Block(nodes)])[0]

    def draw() -> np.ndarray:
        states = np.asarray(chain(jax.random.split(KEY, NUM_CHAINS)))
        return log_density(2.0 * states - 1)

    return Peer(cell, "THRML block Gibbs", draw)


def annealer(cell: str) -> Peer:
    """Reads at one temperature, each from a random start."""
    from dwave.samplers import SimulatedAnnealingSampler

    couplings = {(int(i), int(j)): -COUPLING for i, j in bonds()}

    def draw() -> np.ndarray:
        reads = SimulatedAnnealingSampler().sample_ising(
            {},
            couplings,
            num_reads=NUM_CHAINS * 100,
            num_sweeps=ANNEALER_SWEEPS,
            beta_range=(1.0, 1.0),
            seed=0,
        )
        energies = np.repeat(reads.record.energy, reads.record.num_occurrences)
        return -np.random.default_rng(0).permutation(energies).reshape(NUM_CHAINS, -1)

    return Peer(cell, f"D-Wave annealer, {ANNEALER_SWEEPS} sweeps", draw)


def hmc_gibbs(cell: str) -> Peer:
    """Metropolised Gibbs over the bits, Hamiltonian steps over a bystander."""
    import numpyro
    from numpyro import distributions
    from numpyro.infer import HMC, DiscreteHMCGibbs

    table = jnp.log(jnp.asarray(PAPER_PROBABILITIES))
    places = 2 ** jnp.arange(3, -1, -1)

    def model() -> None:
        numpyro.sample("bystander", distributions.Normal())
        with numpyro.plate("sites", 4):
            bits = numpyro.sample("bits", distributions.Bernoulli(0.5))
        numpyro.factor("table", table[jnp.sum(bits * places)])

    kernel = DiscreteHMCGibbs(HMC(model), modified=True)

    @jax.jit
    @jax.vmap
    def chain(key: jax.Array) -> jax.Array:
        def step(state, _):
            state = kernel.sample(state, (), {})
            return state, state.z["bits"]

        start = kernel.init(key, NUM_WARMUP, None, (), {})
        return jax.lax.scan(step, start, length=NUM_WARMUP + NUM_TABLE_DRAWS)[1][NUM_WARMUP:]

    def draw() -> np.ndarray:
        bits = np.asarray(chain(jax.random.split(KEY, 4)))
        return np.asarray(table)[(bits * np.asarray(places)).sum(-1)]

    return Peer(cell, "NumPyro DiscreteHMCGibbs", draw)


def peers() -> Iterator[Peer]:
    """Everything that is installed."""
    lattice, bits = f"ising {LENGTH}×{LENGTH}", "four bits"
    target = ising_lattice((LENGTH, LENGTH), COUPLING)
    for name, recipe in {
        "dmala": steppe.dmala(),
        "gwg": steppe.gwg(num_flips=1),
        "dlmc": steppe.dlmc(),
    }.items():
        yield ours(lattice, name, recipe, target, NUM_CHAINS)
    sweep = steppe.gibbs(num_updates=LENGTH * LENGTH)
    yield ours(lattice, "gibbs, a sweep", sweep, target, NUM_CHAINS, NUM_SWEEPS)
    if find_spec("thrml"):
        yield thrml_gibbs(lattice)
    if find_spec("dwave"):
        yield annealer(lattice)
    for name, recipe in {"dmala": steppe.dmala(), "gibbs, a sweep": steppe.gibbs(num_updates=4)}.items():
        yield ours(bits, name, recipe, paper_bernoulli(), 4, NUM_TABLE_DRAWS)
    if find_spec("numpyro"):
        yield hmc_gibbs(bits)


def row(peer: Peer) -> dict:
    """Effective draws per second of the second call, and the mean it found."""
    begun = time.process_time()
    peer.draw()
    first = time.process_time() - begun
    begun = time.process_time()
    values = peer.draw()
    seconds = time.process_time() - begun
    effective = float(arviz_stats.ess(values, method="mean"))
    return {
        "cell": peer.cell,
        "name": peer.name,
        "seconds": seconds,
        "first_call_seconds": first,
        "effective": effective,
        "effective_per_second": effective / seconds,
        "mean": float(values.mean()),
        "standard_error": float(values.std() / effective**0.5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("../out/speed_peers.json"))
    given = parser.parse_args()
    found = [row(peer) for peer in peers()]
    table = Table("target", "sampler", "effective draws per s", "s", "mean log-density")
    for entry in found:
        mean = f"{entry['mean']:.3f} ± {entry['standard_error']:.3f}"
        cells = (f"{entry['effective_per_second']:.0f}", f"{entry['seconds']:.2f}", mean)
        table.add_row(entry["cell"], entry["name"], *cells)
    Console(width=110).print(table)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
