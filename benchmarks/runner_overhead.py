"""What the runner costs beyond the chains: its loop, its commits and its progress bar.

    python benchmarks/runner_overhead.py          # all figures, some minutes
    python benchmarks/runner_overhead.py --quick  # the small target only

- loop: chunks of the engine against one bare `lax.scan` of the same vectorised steps, with the same keys and
  the same figures kept, blocks one after another;
- commits: rows per second lost to commits, which come every ten seconds or 64 MB and are written beside the
  chains, and the processor time they take;
- progress: fraction of a run spent in drawing the bar.

Every ratio is the median of paired repetitions, shown with their spread.
"""

import argparse
import contextlib
import io
import json
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import rich.console

import steppe
from steppe.random.threefry import unroll
from steppe.run import driver
from steppe.run.adaptation import Adapt
from steppe.run.chain_blocks import encode
from steppe.run.engine import Engine
from steppe.run.plan import make_plan
from steppe.run.progress import progress_bar
from steppe.run.storage.directory import RunDirectory
from steppe.targets import paper_bernoulli, rbm

KEY = jax.random.key(0)
REPETITIONS = 7
DISK_SECONDS = 11.0  # one commit at least, and one at the end
DISK_REPETITIONS = 3


def small() -> tuple[steppe.Target, int, int, int]:
    """Four bits, four chains: nothing but overhead."""
    return paper_bernoulli(), 4, 4, 8000


def large() -> tuple[steppe.Target, int, int, int]:
    """A restricted Boltzmann machine with 784 visible and 500 hidden units, 100 chains."""
    weights, hidden_bias, visible_bias = (
        0.05 * jax.random.normal(jax.random.fold_in(KEY, i), shape)
        for i, shape in enumerate([(500, 784), (500,), (784,)])
    )
    return rbm(weights, hidden_bias, visible_bias), 100, 4, 40


@partial(jax.jit, static_argnames="num_rows")
def bare(sampler: Any, states: Any, keys: Any, first: Any, num_rows: int) -> Any:
    """One `lax.scan` of the same steps, blocks one after another."""

    def block(lanes: Any) -> Any:
        states, keys = lanes

        def step(states: Any, row: Any) -> Any:
            step_keys = jax.vmap(jax.random.fold_in, (0, None))(keys, row)
            states, info = jax.vmap(sampler.step)(step_keys, states)
            levels = jax.vmap(partial(encode, sampler.target.domain))(states.position)
            return states, (levels, states.log_density, info)

        return jax.lax.scan(step, states, first + jnp.arange(num_rows, dtype=jnp.uint32))

    return jax.lax.map(block, (states, keys))


def seconds(call: Callable[[], Any]) -> float:
    """Wall time of one call."""
    begun = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - begun


def make_engine(target: steppe.Target, num_chains: int, block: int, adapt: Adapt | None) -> Engine:
    """A started engine after warm-up."""
    sampler = steppe.dmala(step_size=0.2).build(target)
    engine = Engine(sampler, KEY, make_plan(num_chains, 0, 10**8, 1, "draws", block), adapt=adapt)
    engine.start()
    return engine


def loop_ratio(target: steppe.Target, num_chains: int, block: int, num_rows: int, adapt: Any) -> list[float]:
    """Engine over bare scan, repetition by repetition, in turns so that other load hits both."""
    engine = make_engine(target, num_chains, block, adapt)
    blocks = engine.blocks
    keys = jax.vmap(jax.vmap(partial(jax.random.fold_in, unroll(KEY))))(blocks.chain)
    states = jax.tree.map(jnp.copy, blocks.state)
    scan = partial(bare, engine.sampler, states, keys, num_rows=num_rows)
    scan(jnp.uint32(0))
    engine._advance(num_rows)
    ratios = []
    for _ in range(REPETITIONS):
        reference = seconds(lambda: jax.device_get(scan(jnp.uint32(0))[1]))
        ratios.append(seconds(lambda: engine._advance(num_rows).rows.log_density) / reference)
    return ratios


class TimedDirectory(RunDirectory):
    """A run directory that adds up the processor time of its commits, which a thread of their own makes."""

    processor = 0.0
    num_commits = 0

    def commit(self, *arguments: Any) -> None:
        """Commit, and take the time."""
        begun = time.thread_time()
        super().commit(*arguments)
        self.processor += time.thread_time() - begun
        self.num_commits += 1


class Nowhere(TimedDirectory):
    """A run directory that forgets what is committed."""

    def commit(self, *arguments: Any) -> None:
        """Forget."""


def streamed(engine: Engine, directory: TimedDirectory) -> tuple[float, float]:
    """Rows per second of a run to a directory, and the fraction of its processor time that commits take."""
    rows, begun, worked = engine.next_row, time.perf_counter(), time.process_time()
    with contextlib.suppress(TimeUp):
        driver.stream(engine, 10**8, partial(stop_after, begun + DISK_SECONDS), directory)
    speed = (engine.next_row - rows) / (time.perf_counter() - begun)
    return speed, directory.processor / (time.process_time() - worked)


def commit_share(target: steppe.Target, num_chains: int, block: int) -> dict[str, float]:
    """What commits cost: rows per second lost to them, and their fraction of the processor time."""
    engine = make_engine(target, num_chains, block, None)
    next(engine.chunks(10**8))  # compile
    lost, fractions = [], []
    for _ in range(DISK_REPETITIONS):
        with tempfile.TemporaryDirectory() as folder:
            speeds = []
            for kind in (Nowhere, TimedDirectory):
                directory = kind(Path(folder) / kind.__name__)
                directory.create({"num_warmup": 0})
                speed, fraction = streamed(engine, directory)
                directory.release()
                speeds.append(speed)
            lost.append(1 - speeds[1] / speeds[0])
            fractions.append(fraction)
    return {
        "speed lost": float(np.median(lost)),
        "least": min(lost),
        "largest": max(lost),
        "of processor time": float(np.median(fractions)),
        "rows per second": speeds[1],
    }


class TimeUp(Exception):  # noqa: N818
    """Enough was seen."""


def stop_after(moment: float, chunk: Any) -> None:
    """End the run at a moment."""
    if time.perf_counter() > moment:
        raise TimeUp


def progress_share(target: steppe.Target, num_chains: int, block: int) -> float:
    """Processor time per second of a run that the bar takes, on a terminal that swallows it."""
    engine = make_engine(target, num_chains, block, None)
    console = partial(rich.console.Console, file=io.StringIO(), force_terminal=True)
    original, rich.console.Console = rich.console.Console, lambda **_: console()
    try:
        with progress_bar(engine.plan, 0, True) as report:
            spent, begun = 0.0, time.perf_counter()
            for chunk in engine.chunks(10**8):
                before = time.perf_counter()
                report(chunk)
                spent += time.perf_counter() - before
                if time.perf_counter() - begun > 5:
                    break
            idle = time.process_time()
            time.sleep(2)  # the bar refreshes in a thread of its own
            refresh = (time.process_time() - idle) / 2
        return spent / (time.perf_counter() - begun) + refresh
    finally:
        rich.console.Console = original


def main() -> None:
    """Print every figure, and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    cases = {"bernoulli 4-D × 4": small}
    if not parser.parse_args().quick:
        cases["rbm 784×500 × 100"] = large
    figures: dict[str, Any] = {}
    for name, make in cases.items():
        case = make()
        for kind, adapt in (("frozen", None), ("adapted", Adapt())):
            ratios = loop_ratio(*case, adapt)
            figures[f"{name}: loop, {kind}"] = {
                "median": float(np.median(ratios)),
                "least": min(ratios),
                "largest": max(ratios),
            }
        figures[f"{name}: commits"] = commit_share(*case[:3])
        figures[f"{name}: progress"] = progress_share(*case[:3])
    for name, figure in figures.items():
        print(name, figure)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
