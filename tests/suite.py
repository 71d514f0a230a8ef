"""Shared fixtures of both packages. Tests run in float32, the default, unless they ask for float64."""

import os
import resource
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

from tiers import read_listed

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


@pytest.hookimpl(tryfirst=True)  # before the marks choose what runs
def pytest_collection_modifyitems(items):
    """Mark cases that cost too much for the fast tier; put tests in a random order, if one is asked for.

    `STEPPE_TEST_SHUFFLE=1` and other seeds ask for one.
    """
    listed = read_listed()
    for item in items:
        if item.nodeid in listed:
            item.add_marker(pytest.mark.slow)
    seed = os.environ.get("STEPPE_TEST_SHUFFLE")
    if seed:
        Random(seed).shuffle(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Write what a test costs in processor time to the file named by `STEPPE_TEST_TIMES`, if one is."""
    before = _read_processor_time()
    outcome = yield
    if path := os.environ.get("STEPPE_TEST_TIMES"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{_read_processor_time() - before:.3f}\t{item.nodeid}\n")
    return outcome


def _read_processor_time() -> float:
    """Seconds of this process and of the children it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


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
