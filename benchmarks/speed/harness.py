"""Time many cases fairly: one pinned core, one thread, CPU time, all cases in turns and in random order."""

import os
import random
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

# Before jax or torch start: one thread for every engine, on the last core.
THREADS = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def pin() -> None:
    """Give the whole process one core and one thread, unless `STEPPE_BENCH_CORES` is there."""
    if "STEPPE_BENCH_CORES" in os.environ:
        return
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {THREADS}".strip()
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def stamp() -> dict[str, str | float]:
    """What a record names beside its figures: the commit, the processor, and how busy the machine was."""
    from steppe.run.storage.identity import describe_software  # starts jax, which comes after `pin`

    software = describe_software()
    found = {"commit": software.get("commit", ""), "cpu": software["cpu"]}
    return {**found, "load": round(os.getloadavg()[0], 1)}


class Case(NamedTuple):
    """Something to time.

    Attributes
    ----------
    cell
        The row of the table it belongs to, such as `rbm ×100`.
    name
        The sampler, or `floor`, or `textbook edmala`.
    run
        Makes `num_steps` steps and waits for them.
    num_steps
        What its time is divided by.
    evaluations
        Model evaluations per step and chain; `None` for floors and textbooks.
    """

    cell: str
    name: str
    run: Callable[[], Any]
    num_steps: int
    evaluations: float | None = None


class Timing(NamedTuple):
    """Microseconds of CPU time per step: median, quartiles, and the seconds of the first call."""

    cell: str
    name: str
    median: float
    low: float
    high: float
    first_call_seconds: float
    evaluations: float | None
    peak_megabytes: float


def measure(cases: list[Case], repeats: int, seed: int = 0) -> list[Timing]:
    """Call every case once, then `repeats` times in random order."""
    first = {case: _seconds(case.run) for case in cases}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    times: dict[Case, list[float]] = {case: [] for case in cases}
    order = random.Random(seed)
    for _ in range(repeats):
        for case in order.sample(cases, len(cases)):
            times[case].append(_seconds(case.run) / case.num_steps * 1e6)
    return [_timing(case, times[case], first[case], peak) for case in cases]


def _seconds(run: Callable[[], Any]) -> float:
    begun = time.process_time()
    run()
    return time.process_time() - begun


def _timing(case: Case, times: list[float], first: float, peak: float) -> Timing:
    low, median, high = statistics.quantiles(times, n=4)
    return Timing(case.cell, case.name, median, low, high, first, case.evaluations, peak)
