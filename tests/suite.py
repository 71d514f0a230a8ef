"""Shared fixtures of both packages. Tests run in float32, the default, unless they ask for float64."""

import os
import signal

# Programs of the tests are not kept on disk, nor those of processes that they start.
os.environ["STEPPE_COMPILE_CACHE"] = "off"

# Most of the suite's time is spent compiling many small programs, each run a few times, so the
# fast tier asks XLA for quick compilation. It must be said before jax starts. `make test-all`
# sets STEPPE_TEST_OPTIMISED=1 and runs the same tests on the programs users get.
if os.environ.get("STEPPE_TEST_OPTIMISED") != "1":
    QUICK_COMPILATION = (
        "--xla_backend_optimization_level=0",
        "--xla_llvm_disable_expensive_passes=true",
        "--xla_cpu_use_fusion_emitters=false",
        "--xla_cpu_parallel_codegen_split_count=1",
    )
    os.environ["XLA_FLAGS"] = " ".join((os.environ.get("XLA_FLAGS", ""), *QUICK_COMPILATION)).strip()

from itertools import count
from pathlib import Path
from random import Random

import jax
import pytest
from jaxtyping import install_import_hook

# `make test-shapes` checks shapes and types of the kernel and of the loop over steps at every call, which is
# while a program is traced. Not in `parameters`, whose declarations stand for numbers, nor in `compose`,
# whose numbers are known once a target is, nor in `start`, which refuses what it is not meant for. It must be
# said before steppe is imported.
CHECKED = [
    "steppe.run.simulate",
    *(
        f"steppe.kernel.{module}"
        for module in (
            "acceptance",
            "blocks",
            "coupling",
            "cost",
            "density",
            "distributions",
            "keys",
            "penalty",
            "permutation_coupling",
            "proposals",
            "types",
        )
    ),
]
if os.environ.get("STEPPE_TEST_SHAPES") == "1":
    install_import_hook(CHECKED, "shape_checker.check")

# Every compiled program holds maps of memory, of which Linux gives a process 65 530. The whole suite in one
# process needs more, and XLA crashes without a word when there are none left.
MEMORY_MAPS = Path("/proc/self/maps")
MOST_MAPS = 30_000
LOOK_EVERY = 20
finished = count(1)


def pytest_collection_modifyitems(items):
    """Put tests in a random order, if one is asked for: `STEPPE_TEST_SHUFFLE=1` and other seeds."""
    seed = os.environ.get("STEPPE_TEST_SHUFFLE")
    if seed:
        Random(seed).shuffle(items)


def pytest_runtest_teardown():
    """Forget compiled programs before there are too many."""
    is_time = next(finished) % LOOK_EVERY == 0 and MEMORY_MAPS.exists()
    if is_time and MEMORY_MAPS.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()


@pytest.fixture
def float64():
    """Run one test in double precision."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def interruptible():
    """Children die of SIGINT even where the suite itself was started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
