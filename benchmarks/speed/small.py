"""Single figures of structured samplers: sweeps, their growth, fixed costs and the command line.

    cd benchmarks && taskset -c 0 python -m speed.small [--only sweep]

CPU time on one thread, the least of three repeats after one that compiles. Sweeps are bare loops of a
built recipe over chains side by side; the fixed cost is that of a second call of `sample` for one row; the
command line and first samples are processes of their own, with their imports. Exponents are fitted over the
figures of growth, of bare loops in sites and of `sample` in chains.
"""

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np

import steppe
from speed import ours
from speed.harness import stamp
from steppe.samplers import Recipe
from steppe.targets import ising_graph, ising_lattice

REPEATS = 3
# Site updates of a timed call.
WORK = 4_000_000
KEY = jax.random.key(0)


def time_sweeps(target: steppe.Target, recipe: Recipe, num_chains: int, work: int = WORK) -> float:
    """Nanoseconds per site and chain of a step that visits every site."""
    sampler, num_sites = recipe.build(target), target.domain.num_sites
    num_steps = max(work // (num_sites * num_chains), 3)
    keys = jax.random.split(KEY, num_chains)
    start = jnp.broadcast_to(
        target.domain.from_levels(np.zeros(num_sites, int)), (num_chains, *target.domain.shape)
    )

    @jax.jit
    def run(states: steppe.kernel.types.SamplerState) -> steppe.kernel.types.SamplerState:
        def step(index: jax.Array, states: steppe.kernel.types.SamplerState):
            return jax.vmap(lambda key, state: sampler.step(jax.random.fold_in(key, index), state)[0])(
                keys, states
            )

        return jax.lax.fori_loop(0, num_steps, step, states)

    states = jax.jit(jax.vmap(sampler.init))(start)
    return least(lambda: jax.block_until_ready(run(states))) / (num_steps * num_sites * num_chains) * 1e9


def least(run: Callable[[], object]) -> float:
    """CPU seconds of the quickest of some calls, after one."""
    run()
    found = []
    for _ in range(REPEATS):
        begun = time.process_time()
        run()
        found.append(time.process_time() - begun)
    return min(found)


def sparse_graph(graph: nx.Graph) -> steppe.Target:
    edges = np.array(graph.edges)
    return ising_graph(edges, np.full(len(edges), 0.2), num_sites=len(graph))


def potts_table(num_sites: int = 60, num_levels: int = 20) -> steppe.Target:
    """A table of couplings of all pairs of sites, as a plain function that says it is multilinear."""
    rng = np.random.default_rng(0)
    tables = rng.normal(size=(num_sites, num_levels, num_sites, num_levels)) / num_sites
    tables *= (1 - np.eye(num_sites))[:, None, :, None]
    couplings = jnp.asarray(tables + tables.transpose(2, 3, 0, 1), float)

    def log_density(position: jax.Array) -> jax.Array:
        return 0.5 * jnp.einsum("ia,iajb,jb->", position, couplings, position)

    return steppe.Target(log_density, steppe.Categorical(num_sites, num_levels), multilinear=True)


def figures() -> Iterator[tuple[str, Callable[[], float], float | None]]:
    """Name, how to measure it, and what is asked."""
    chromatic = steppe.chromatic_gibbs()
    lattice, regular = ising_lattice((32, 32), 1 / 3), nx.random_regular_graph(3, 4096, seed=0)
    dense = nx.fast_gnp_random_graph(20_000, 8 / 20_000, seed=0)
    yield "sweep, lattice 32² ×20, ns per site", lambda: time_sweeps(lattice, chromatic, 20), 6
    yield (
        "sweep, 3-regular 4096 ×20, ns per site",
        lambda: time_sweeps(sparse_graph(regular), chromatic, 20),
        6,
    )
    yield (
        "sweep, random degree 8, 20 000 ×4, ns per site",
        lambda: time_sweeps(sparse_graph(dense), chromatic, 4),
        20,
    )
    gibbs_256 = steppe.gibbs(num_updates=256**2)
    yield (
        "gibbs 256² ×1, ns per update",
        lambda: time_sweeps(ising_lattice((256, 256), 1 / 3), gibbs_256, 1),
        300,
    )
    table = potts_table()
    sweep = steppe.gibbs(num_updates=60)
    yield "sweep, Potts table 60×20 ×1, ms", lambda: time_sweeps(table, sweep, 1, 600) * 60 / 1e6, 2
    for length in (100, 316, 1000):
        target = ising_lattice((length, length), 1 / 3)
        yield (
            f"growth, chromatic {length}² ×4, ns per site",
            lambda t=target: time_sweeps(t, chromatic, 4),
            None,
        )
        recipe = steppe.gibbs(num_updates=length**2)
        yield (
            f"growth, gibbs {length}² ×1, ns per site",
            lambda t=target, r=recipe: time_sweeps(t, r, 1),
            None,
        )
    small = ising_lattice((16, 16), 1 / 3)
    for number in (100, 1000, 10_000):
        yield (
            f"growth, chromatic 16² ×{number}, ns per site",
            lambda n=number: sample_sweeps(small, chromatic, n),
            None,
        )
        recipe = steppe.gibbs(num_updates=256)
        yield (
            f"growth, gibbs 16² ×{number}, ns per site",
            lambda n=number, r=recipe: sample_sweeps(small, r, n),
            None,
        )
    yield "fixed cost of `sample` at 1000² sites, s", fixed_cost, 0.2
    yield "rbm ×100 edmala, `sample` over the two products", compare_with_products, 1.7
    for command in ("--help", "version"):
        yield f"steppe {command}, s", lambda c=command: run_command(["-m", "steppe", c]), 0.35
    yield "first sample of a process, programs kept, s", lambda: time_first_sample(is_kept=True), 2.5
    yield "first sample of a process, nothing kept, s", lambda: time_first_sample(is_kept=False), 4


def sample_sweeps(target: steppe.Target, recipe: Recipe, num_chains: int) -> float:
    """Nanoseconds per site and chain through `sample`, from two numbers of rows."""

    def run(num_rows: int) -> steppe.Run:
        return steppe.sample(
            target, recipe, key=KEY, num_chains=num_chains, num_warmup=0, num_draws=num_rows, keep="none",
            adapt=False, progress=False,
        )  # fmt: skip

    work = target.domain.num_sites * num_chains
    rows = max(WORK // work, 4)
    return (least(lambda: run(1 + rows)) - least(lambda: run(1))) / (rows * work) * 1e9


def fixed_cost() -> float:
    """Seconds of a call that makes one row, less those of a bare step."""
    target = ising_lattice((1000, 1000), 1 / 3)
    options = {"num_chains": 1, "num_warmup": 0, "keep": "none", "progress": False}
    recipe = steppe.chromatic_gibbs()
    call = lambda rows: steppe.sample(target, recipe, key=KEY, num_draws=rows, **options)  # noqa: E731
    return 2 * least(lambda: call(1)) - least(lambda: call(2))


def compare_with_products() -> float:
    """Time of a step of `sample` by default over that of the two matrix products of value and gradient."""
    products = next(case for case in ours.rbm_cases(100, ("edmala",), 40) if case.name.startswith("floor"))
    target, recipe = ours.random_rbm(), ours.LANGEVIN["edmala"]

    def run(num_rows: int) -> float:
        begun = time.process_time()
        steppe.sample(
            target, recipe, key=KEY, num_chains=100, num_warmup=0, num_draws=num_rows, thinning=10,
            keep="none", adapt=False, progress=False,
        )  # fmt: skip
        return time.process_time() - begun

    def multiply() -> float:
        begun = time.process_time()
        products.run()
        return (time.process_time() - begun) / products.num_steps

    run(1), run(13), multiply()
    return statistics.median((run(13) - run(1)) / 120 / multiply() for _ in range(5))


FIRST_SAMPLE = """
import jax, steppe
from steppe.targets import paper_bernoulli
steppe.sample(paper_bernoulli(), steppe.dmala(), key=jax.random.key(0), progress=False)
"""


def time_first_sample(is_kept: bool) -> float:
    """CPU seconds of a process that imports, samples four bits and ends."""
    with tempfile.TemporaryDirectory() as directory:
        cache = {"XDG_CACHE_HOME": directory} if is_kept else {"STEPPE_COMPILE_CACHE": "off"}
        return run_command(["-c", FIRST_SAMPLE], cache)


def run_command(arguments: list[str], environment: dict[str, str] | None = None) -> float:
    """CPU seconds of a process of Python; the least of some, after one."""
    found = []
    for _ in range(REPEATS + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, *arguments],
            check=True,
            capture_output=True,
            env=os.environ | (environment or {}),
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found[1:])


def fit_exponents(found: dict) -> dict:
    """How time grows with sites and with chains, over all figures of growth of a sampler."""
    made = {}
    for name in ("chromatic", "gibbs"):
        for what, pattern in (
            ("sites", rf"growth, {name} (\d+)² ×[14],"),
            ("chains", rf"growth, {name} 16² ×(\d+),"),
        ):
            sizes = [
                (int(m[1]), row["measured"]) for key, row in found.items() if (m := re.match(pattern, key))
            ]
            if len(sizes) < 3:
                continue
            lengths, units = np.log(np.array(sizes).T)
            slope = float(np.polyfit(lengths * (2 if what == "sites" else 1), units, 1)[0])
            made[f"exponent, {name} in {what}"] = {"measured": 1 + slope, "asked": 1.05, **stamp()}
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="figures whose name contains this; replaced in the file")
    parser.add_argument("--out", type=Path, default=Path("../out/speed_small.json"))
    given = parser.parse_args()
    found = json.loads(given.out.read_text()) if given.out.exists() else {}
    for name, measure, asked in figures():
        if given.only not in name:
            continue
        found[name] = {"measured": measure(), "asked": asked, **stamp()}
        print(name, found[name], flush=True)
        found |= fit_exponents(found)
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
