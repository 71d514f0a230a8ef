"""Methods: what searches an instance for so much processor time, by name."""

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple

import jax
import numpy as np

import steppe
from steppe.target import Target
from steppe.targets.pairwise import Pairwise
from steppe_bench.suites import NUM_DRAWS

# Sweeps of the first call of a rival that cannot stop by itself; every next call is twice as long.
FIRST_SWEEPS = 64
NUM_READS = 16
NUM_CHAINS = 64


class Found(NamedTuple):
    """Positions that a method offers, and the processor time it took."""

    positions: np.ndarray
    cpu_seconds: float


Method = Callable[[Target, float, int], Found]


def anneal(target: Target, seconds: float, seed: int) -> Found:
    """`steppe.anneal(target, key=key)`, nothing chosen."""
    limit = steppe.until(cpu_seconds=seconds)
    begun = time.process_time()
    found = steppe.anneal(target, key=jax.random.key(seed), until=limit, progress=False)
    values = np.asarray(found.best_log_density)
    order = np.argsort(-values, kind="stable")[:8]
    return Found(np.asarray(found.best_position)[order], time.process_time() - begun)


def anneal_dwave(target: Target, seconds: float, seed: int) -> Found:
    """Simulated annealing of dwave-samplers, in calls that double until the time is used up."""
    from dwave.samplers import SimulatedAnnealingSampler  # pyright: ignore[reportMissingImports]

    assert isinstance(target, Pairwise)
    bqm = steppe.interop.to_bqm(target)
    sampler, sweeps, best, energy = SimulatedAnnealingSampler(), FIRST_SWEEPS, None, np.inf
    begun = time.process_time()
    while True:
        called = time.process_time()
        answer = sampler.sample(bqm, num_reads=NUM_READS, num_sweeps=int(sweeps), seed=seed + int(sweeps))
        now = time.process_time()
        lowest = int(np.argmin(answer.record.energy))
        if answer.record.energy[lowest] < energy:
            columns = [answer.variables.index(site) for site in range(bqm.num_variables)]
            energy, best = answer.record.energy[lowest], answer.record.sample[lowest, columns]
        left, rate = seconds - (now - begun), sweeps / (now - called)
        if left * rate < 1:
            break
        sweeps = 2 * sweeps if left * rate > 6 * sweeps else left * rate
    assert best is not None
    values = (best + 1) / 2 if target.reads_bits_as_spins else best
    return Found(np.asarray(values, np.float32)[None], time.process_time() - begun)


def draw(target: Target, seconds: float, seed: int) -> Found:
    """`steppe.sample(target, key=key)`, nothing chosen but the number of draws, which stand in one row."""
    begun = time.process_time()
    run = steppe.sample(
        target,
        key=jax.random.key(seed),
        num_chains=NUM_CHAINS,
        num_draws=NUM_DRAWS // NUM_CHAINS,
        progress=False,
    )
    return Found(np.asarray(run.positions)[None], time.process_time() - begun)


METHODS: dict[str, Method] = {"steppe": anneal, "dwave": anneal_dwave}


def list_methods(target: Target) -> list[str]:
    """Names of the methods that are installed and take the target."""
    form = target.pair_form
    has_pairs = form is not None and form.values is not None
    return ["steppe", *(["dwave"] if has_pairs and find_spec("dwave.samplers") else [])]
