"""A warm process: everything that is not ours is imported once, and each run of tests is a fork of it.

JAX has no threads before its first computation, and this process never makes one.
"""

import importlib
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from .tree import HOME, ROOT, SOURCE, TREE

# What tests import beside the library; one that is missing is left to the tests that need it.
PACKAGES = (
    "jax",
    "jax.numpy",
    "jax.scipy.special",
    "jax.experimental.multihost_utils",
    "equinox",
    "jaxtyping",
    "filelock",
    "scipy.stats",
    "scipy.optimize",
    "scipy.linalg",
    "xarray",
    "pydantic",
    "rich.live",
    "cyclopts",
    "pytest",
    "_pytest.runner",
    "coverage",
    "matplotlib.figure",
    "networkx",
)
OUTPUT = HOME / "last_run.txt"
WAIT = 0.02
KILLED_BY_CLOCK = "timeout"


def import_packages() -> None:
    """Import everything that is not ours."""
    os.environ["STEPPE_COMPILE_CACHE"] = "off"
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.environ["PYTHONPATH"] = os.pathsep.join((str(SOURCE), str(TREE / "reproduction" / "src")))
    sys.dont_write_bytecode = True
    for name in PACKAGES:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    assert "steppe" not in sys.modules, "the library must be imported by forks alone"


def run_tests(
    arguments: Sequence[str], plugin: object, cpu_seconds: float, wall_seconds: float
) -> tuple[str, float]:
    """Run tests in a fork; how it ended ("0", an exit code, a signal, or a timeout) and its CPU seconds."""

    def work() -> int:
        import pytest

        return int(pytest.main([*arguments], plugins=[plugin]))

    return run_in_fork(work, cpu_seconds, wall_seconds)


def run_in_fork(work: Callable[[], int], cpu_seconds: float, wall_seconds: float) -> tuple[str, float]:
    """Call a function in a fork that is stopped when it takes too long, with everything that it started."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        _live(work, cpu_seconds)
    began, status, usage, is_over = time.monotonic(), 0, None, False
    while usage is None:
        done, status, found = os.wait4(child, os.WNOHANG)
        if done:
            usage = found
        elif time.monotonic() - began > wall_seconds:
            is_over = True
            os.killpg(child, signal.SIGKILL)
            _, status, usage = os.wait4(child, 0)
        else:
            time.sleep(WAIT)
    _end_group(child)
    code = os.waitstatus_to_exitcode(status)
    used = usage.ru_utime + usage.ru_stime
    if is_over or code == -signal.SIGXCPU or (code == -signal.SIGKILL and used > cpu_seconds):
        return KILLED_BY_CLOCK, used
    return str(code), used


def _live(work: Callable[[], int], cpu_seconds: float) -> None:
    """What a fork does; never returns."""
    code = 70
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_seconds) + 1, int(cpu_seconds) + 5))
        os.chdir(TREE)
        sys.path[:0] = [str(SOURCE), str(TREE / "reproduction" / "src"), str(TREE)]
        sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != ROOT / "src"]
        output = os.open(OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        code = work()
    except BaseException:  # noqa: BLE001 the fork ends here, whatever it was
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _end_group(child: int) -> None:
    """End what the tests left running."""
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        return
