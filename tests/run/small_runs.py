"""Small runs on one target, so that every test of the runner shares one compiled program."""

import hashlib

import jax
import numpy as np

import steppe
from steppe.run.result import Run
from steppe.targets import paper_bernoulli

TARGET = paper_bernoulli()
RECIPE = steppe.edmala()
KEY = jax.random.key(11)
COUNTS = {"num_chains": 4, "num_warmup": 40, "num_draws": 160}


def small_run(recipe=RECIPE, **options) -> Run:
    return steppe.sample(TARGET, recipe, key=KEY, **{**COUNTS, **options})


def digest(run: Run, num_chains: int | None = None, num_rows: int | None = None) -> str:
    """SHA-256 of every array of the first chains and rows."""
    total = hashlib.sha256()
    for name in sorted(run.trace.arrays):
        array = run.trace.arrays[name][:num_chains, :num_rows]
        total.update(f"{name}{array.dtype}{array.shape}".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()
