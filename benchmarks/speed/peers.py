"""Effective draws per second of processor time, beside other packages on the same target.

    cd benchmarks && taskset -c 0 python -m speed.peers

- Ising lattices above and near the critical temperature, Potts lattices, a three-dimensional ±J glass and a
  Sherrington–Kirkpatrick glass: `steppe.sample(target, key=key)` with the recipe it recommends, block Gibbs
  of THRML by colours, reads of D-Wave's annealer at one temperature (each an independent draw, at the fewest
  sweeps of a small grid whose mean agrees with ours), and a Gibbs loop in numba written here;
- the paper's four bits: NumPyro's `DiscreteHMCGibbs`, which needs a continuous variable beside them, and
  ours.

The figures are the effective numbers of draws of the log-density and of the squared magnetisation (of Potts
levels, the sum of squared counts), all chains together, over the processor time of the second call, which has
nothing to compile; everyone pays for warm-up in it. Means with their standard errors stand beside, because
speed towards another distribution would be worth nothing. Packages are those of the dependency group `peers`;
one that is missing is an error. One thread: run it on one core.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import arviz_stats
import jax
import jax.numpy as jnp
import numba
import numpy as np
from dwave.samplers import SimulatedAnnealingSampler
from rich.console import Console
from rich.table import Table
from thrml import Block, SamplingSchedule, SpinNode, sample_states
from thrml.models import IsingEBM, IsingSamplingProgram, hinton_init

import steppe
from speed.harness import stamp
from steppe.target.interactions import Interactions, color_sites
from steppe.targets import ising, ising_graph, ising_lattice, paper_bernoulli, potts
from steppe.targets.bernoulli import PAPER_PROBABILITIES

NUM_CHAINS = 20
NUM_TABLE_DRAWS, NUM_WARMUP = 50_000, 500
ANNEALER_SWEEPS = (10, 30, 100, 300)
# So many that means of unconverged reads are told apart, which 25 per chain do not.
READS_PER_CHAIN = 100
MAX_ERRORS = 4
KEY = jax.random.key(0)


class Draws(NamedTuple):
    """Two statistics of every draw, chain × draw; `None` where there is one only."""

    log_density: np.ndarray
    square: np.ndarray | None


# Only this is timed; statistics of what it returns are not.
Draw = Callable[[], Any]


class Peer(NamedTuple):
    """A way to draw from a target."""

    cell: str
    name: str
    draw: Draw
    measure: Callable[[Any], Draws]


class Cell(NamedTuple):
    """A target as sums over bonds, and how long to sample it."""

    name: str
    target: steppe.Target
    edges: np.ndarray
    strengths: np.ndarray
    num_levels: int
    num_warmup: int
    num_draws: int

    @property
    def num_sites(self) -> int:
        return self.target.domain.num_sites

    @property
    def is_ising(self) -> bool:
        return self.num_levels == 2

    def measure(self, levels: np.ndarray) -> Draws:
        """Both statistics of levels along the last axis."""
        first, second = self.edges.T
        if self.is_ising:
            spins = 2 * levels.astype(np.int8) - 1
            pairs = spins[..., first] * spins[..., second]
            return Draws(pairs @ self.strengths, spins.sum(-1, dtype=float) ** 2)
        agree = levels[..., first] == levels[..., second]
        counts = [(levels == level).sum(-1, dtype=float) ** 2 for level in range(self.num_levels)]
        return Draws(agree @ self.strengths, np.sum(counts, axis=0))


def torus(*lengths: int) -> np.ndarray:
    """Bonds of a periodic lattice, one per site and axis."""
    places = np.arange(np.prod(lengths)).reshape(lengths)
    ends = [np.stack([places, np.roll(places, -1, axis)], -1).reshape(-1, 2) for axis in range(len(lengths))]
    return np.concatenate(ends)


def cells() -> Iterator[Cell]:
    """Every target that is compared on."""
    rng = np.random.default_rng(0)
    lattices = ((32, 3.0, 2000), (32, 2.3, 1500), (64, 3.0, 1000), (64, 2.3, 800), (128, 3.0, 400))
    for length, temperature, num_draws in lattices:
        edges = torus(length, length)
        target, strengths = (
            ising_lattice((length, length), 1 / temperature),
            np.full(len(edges), 1 / temperature),
        )
        yield Cell(
            f"Ising {length}², T = {temperature}", target, edges, strengths, 2, num_draws // 4, num_draws
        )
    for num_levels, coupling in ((3, 0.9), (10, 1.3)):
        edges = torus(32, 32)
        target, strengths = potts((32, 32), num_levels, coupling), np.full(len(edges), coupling)
        yield Cell(f"Potts 32², q = {num_levels}", target, edges, strengths, num_levels, 400, 1600)
    edges = torus(8, 8, 8)
    strengths = rng.choice([-1.0, 1.0], len(edges)) / 1.5
    yield Cell("EA glass 8³, T = 1.5", ising_graph(edges, strengths), edges, strengths, 2, 500, 3000)
    edges = np.argwhere(np.triu(np.ones((512, 512)), 1))
    strengths = rng.normal(size=len(edges)) / np.sqrt(512) / 1.25
    matrix = np.zeros((512, 512))
    matrix[tuple(edges.T)] = strengths
    yield Cell("SK, 512 spins", ising(matrix + matrix.T), edges, strengths, 2, 100, 400)


def ours(cell: Cell) -> Peer:
    """`steppe.sample` with the recipe it recommends."""

    def draw() -> steppe.Run:
        return steppe.sample(
            cell.target,
            key=KEY,
            num_chains=NUM_CHAINS,
            num_warmup=cell.num_warmup,
            num_draws=cell.num_draws,
            progress=False,
        )

    name = f"steppe {steppe.recommend(cell.target).recipe.name}"
    return Peer(cell.name, name, draw, lambda run: cell.measure(run.levels))


def thrml_gibbs(cell: Cell) -> Peer:
    """Colour after colour."""
    nodes = [SpinNode() for _ in range(cell.num_sites)]
    both = Interactions(*np.concatenate([cell.edges, cell.edges[:, ::-1]]).T)
    colors = color_sites(both, cell.num_sites)
    blocks = [Block([nodes[i] for i in np.flatnonzero(colors == c)]) for c in range(colors.max() + 1)]
    bonds = [(nodes[i], nodes[j]) for i, j in cell.edges]
    model = IsingEBM(nodes, bonds, jnp.zeros(len(nodes)), jnp.asarray(cell.strengths), jnp.array(1.0))
    program = IsingSamplingProgram(model, blocks, clamped_blocks=[])
    schedule = SamplingSchedule(n_warmup=cell.num_warmup, n_samples=cell.num_draws, steps_per_sample=1)

    @jax.jit
    @jax.vmap
    def chain(key: jax.Array) -> jax.Array:
        start = hinton_init(key, model, blocks, ())
        return sample_states(key, program, schedule, start, [], [Block(nodes)])[0]

    return Peer(
        cell.name,
        "THRML block Gibbs",
        lambda: np.asarray(chain(jax.random.split(KEY, NUM_CHAINS))),
        cell.measure,
    )


def annealer(cell: Cell, num_sweeps: int) -> Peer:
    """Reads at one temperature, each from a random start."""
    couplings = {(int(i), int(j)): -float(w) for (i, j), w in zip(cell.edges, cell.strengths, strict=True)}

    def draw() -> np.ndarray:
        reads = SimulatedAnnealingSampler().sample_ising(
            dict.fromkeys(range(cell.num_sites), 0.0),
            couplings,
            num_reads=NUM_CHAINS * READS_PER_CHAIN,
            num_sweeps=num_sweeps,
            beta_range=(1.0, 1.0),
            seed=0,
        )
        return np.repeat(reads.record.sample, reads.record.num_occurrences, axis=0)

    def measure(states: np.ndarray) -> Draws:
        levels = np.random.default_rng(0).permutation((states + 1) // 2)
        return cell.measure(levels.reshape(NUM_CHAINS, -1, cell.num_sites))

    return Peer(cell.name, f"D-Wave annealer, {num_sweeps} sweeps", draw, measure)


@numba.njit(fastmath=True)
def sweep_loop(
    neighbours: np.ndarray,
    strengths: np.ndarray,
    degrees: np.ndarray,
    num_levels: int,
    num_sweeps: int,
    seed: int,
) -> np.ndarray:
    """Systematic Gibbs sweeps of one chain; levels after every sweep."""
    np.random.seed(seed)  # noqa: NPY002 - what numba compiles
    num_sites = len(degrees)
    levels = np.random.randint(0, num_levels, num_sites)  # noqa: NPY002
    kept = np.empty((num_sweeps, num_sites), np.uint8)
    weights = np.empty(num_levels)
    is_ising = num_levels == 2
    for sweep in range(num_sweeps):
        for site in range(num_sites):
            if is_ising:
                total = 0.0
                for slot in range(degrees[site]):
                    total += strengths[site, slot] * (2 * levels[neighbours[site, slot]] - 1)
                levels[site] = np.random.random() * (1 + np.exp(-2 * total)) < 1  # noqa: NPY002
            else:
                weights[:] = 0
                for slot in range(degrees[site]):
                    weights[levels[neighbours[site, slot]]] += strengths[site, slot]
                sum_of = 0.0
                for level in range(num_levels):
                    sum_of += np.exp(weights[level])
                    weights[level] = sum_of
                bound = np.random.random() * sum_of  # noqa: NPY002
                level = 0
                while level < num_levels - 1 and weights[level] < bound:
                    level += 1
                levels[site] = level
        kept[sweep] = levels
    return kept


def numba_loop(cell: Cell) -> Peer:
    """Gibbs sweeps, chain after chain."""
    sites, others = np.concatenate([cell.edges, cell.edges[:, ::-1]]).T
    order = np.argsort(sites, kind="stable")
    degrees = np.bincount(sites, minlength=cell.num_sites)
    slots = np.arange(len(order)) - (np.cumsum(degrees) - degrees)[sites[order]]
    neighbours = np.zeros((cell.num_sites, degrees.max()), np.int64)
    strengths = np.zeros(neighbours.shape)
    neighbours[sites[order], slots] = others[order]
    strengths[sites[order], slots] = np.tile(cell.strengths, 2)[order]
    num_sweeps = cell.num_warmup + cell.num_draws

    def draw() -> list[np.ndarray]:
        return [
            sweep_loop(neighbours, strengths, degrees, cell.num_levels, num_sweeps, seed)
            for seed in range(NUM_CHAINS)
        ]

    return Peer(
        cell.name, "numba Gibbs loop", draw, lambda made: cell.measure(np.stack(made)[:, cell.num_warmup :])
    )


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

    return Peer(cell, "NumPyro DiscreteHMCGibbs", draw, lambda values: Draws(values, None))


def four_bits() -> Iterator[Peer]:
    """The paper's table."""
    for name, recipe in {"dmala": steppe.dmala(), "gibbs, a sweep": steppe.gibbs(num_updates=4)}.items():

        def draw(recipe: steppe.samplers.Recipe = recipe) -> steppe.Run:
            return steppe.sample(
                paper_bernoulli(),
                recipe,
                key=KEY,
                num_warmup=NUM_TABLE_DRAWS // 4,
                num_draws=NUM_TABLE_DRAWS,
                keep="stats",
                progress=False,
            )

        yield Peer(
            "four bits",
            f"steppe {name}",
            draw,
            lambda run: Draws(run.trace.statistic("log_density"), None),
        )
    yield hmc_gibbs("four bits")


def row(peer: Peer) -> dict:
    """Effective draws per second of the second call, and the mean it found."""
    begun = time.process_time()
    peer.draw()
    first = time.process_time() - begun
    begun = time.process_time()
    drawn = peer.draw()
    seconds = time.process_time() - begun
    values, square = peer.measure(drawn)
    effective = float(arviz_stats.ess(np.asarray(values, float), method="mean"))
    of_square = None if square is None else float(arviz_stats.ess(np.asarray(square, float), method="mean"))
    found = {
        "cell": peer.cell,
        "name": peer.name,
        "seconds": seconds,
        "first_call_seconds": first,
        "effective": effective,
        "effective_per_second": effective / seconds,
        "effective_squares_per_second": None if of_square is None else of_square / seconds,
        "mean": float(values.mean()),
        "standard_error": float(values.std() / effective**0.5),
        **stamp(),
    }
    print(json.dumps(found), flush=True)
    return found


def rows_of(cell: Cell) -> Iterator[dict]:
    """Ours, then every peer that can sample the target."""
    own = row(ours(cell))
    yield own
    yield row(numba_loop(cell))
    if not cell.is_ising:
        return
    if len(cell.edges) < 10 * cell.num_sites:
        yield row(thrml_gibbs(cell))
    for num_sweeps in ANNEALER_SWEEPS:
        found = row(annealer(cell, num_sweeps))
        error = np.hypot(own["standard_error"], found["standard_error"])
        if abs(found["mean"] - own["mean"]) < MAX_ERRORS * error or num_sweeps == ANNEALER_SWEEPS[-1]:
            yield found
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("../out/speed_peers.json"))
    parser.add_argument("--only", default="", help="cells whose name contains this; replaced in the file")
    given = parser.parse_args()
    found = [entry for cell in cells() if given.only in cell.name for entry in rows_of(cell)]
    found += [row(peer) for peer in four_bits() if given.only in peer.cell]
    if given.only and given.out.exists():
        kept = json.loads(given.out.read_text())
        names = list(dict.fromkeys(entry["cell"] for entry in kept + found))
        made = {entry["cell"] for entry in found}
        found += [entry for entry in kept if entry["cell"] not in made]
        found.sort(key=lambda entry: names.index(entry["cell"]))
    table = Table("target", "sampler", "effective U per s", "effective M² per s", "s", "mean log-density")
    for entry in found:
        mean = f"{entry['mean']:.3f} ± {entry['standard_error']:.3f}"
        square = entry["effective_squares_per_second"]
        figures = (f"{entry['effective_per_second']:.0f}", "" if square is None else f"{square:.0f}")
        table.add_row(entry["cell"], entry["name"], *figures, f"{entry['seconds']:.2f}", mean)
    Console(width=110).print(table)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
