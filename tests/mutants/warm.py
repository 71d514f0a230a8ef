"""Warm processes: what every run of tests imports is imported once, and each run is a fork.

The first process imports everything that is not ours. A fork of it imports the library too and stays: it
forks again for every mutant, puts the mutant in place of the function, and runs tests. A mutant of what runs
while the library is imported needs a fork of the first process. JAX has no threads before its first
computation, and neither process ever makes one. Programs that tests compile are kept in a folder.
"""

import gc
import importlib
import json
import os
import pkgutil
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import IO, NamedTuple

from .patch import replace_function
from .tree import HOME, ROOT, SOURCE, TREE

# What tests import beside the library; one that is missing is left to the tests that need it.
PACKAGES = (
    "jax",
    "jax.numpy",
    "jax.scipy.special",
    "jax.experimental.multihost_utils",
    "jax.experimental.compilation_cache.compilation_cache",
    "equinox",
    "jaxtyping",
    "filelock",
    "scipy.stats",
    "scipy.optimize",
    "scipy.linalg",
    "scipy.signal",
    "jax.scipy.stats",
    "arviz_base",
    "arviz_stats",
    "xarray",
    "pydantic",
    "rich.live",
    "cyclopts",
    "pytest",
    "coverage",
    "matplotlib.figure",
    "networkx",
)
# Modules of tests that many others import, and that compute nothing while they are imported.
HELPERS = ("suite", "tiers", "gates", "exact_targets", "oracle", "hostile")
OUTPUT = HOME / "last_run.txt"
WAIT = 0.02
KILLED_BY_CLOCK = "timeout"


class Request(NamedTuple):
    """Tests to run until one fails, or to follow, with a function of the library put in, and limits."""

    tests: tuple[str, ...]
    cpu_seconds: float
    wall_seconds: float
    module: str = ""
    function: str = ""
    is_followed: bool = False


def import_packages() -> None:
    """Import everything that is not ours."""
    os.environ.update(
        STEPPE_COMPILE_CACHE="off",
        PYTHONDONTWRITEBYTECODE="1",
        PYTHONPATH=os.pathsep.join(str(TREE / place) for place in ("src", "reproduction/src", "bench/src")),
        JAX_COMPILATION_CACHE_DIR=str(HOME / "programs"),
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
        JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES="-1",
        TF_CPP_MIN_LOG_LEVEL="3",
    )
    sys.dont_write_bytecode = True
    plugins = importlib.import_module("_pytest")
    own = [f"_pytest.{found.name}" for found in pkgutil.iter_modules(plugins.__path__)]
    for name in (*PACKAGES, *own):
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    assert "steppe" not in sys.modules, "the library must be imported by forks alone"


class Server:
    """A fork that has imported the library and runs tests on mutants of its functions."""

    def __init__(self) -> None:
        read, self._ask = os.pipe()
        self._answer, write = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._child = os.fork()
        if self._child == 0:
            code = 70
            try:
                os.close(self._ask)
                _serve(os.fdopen(read), write)
                code = 0
            except BaseException:  # noqa: BLE001 the fork ends here, whatever it was
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(read)
        os.close(write)
        self._answers = os.fdopen(self._answer)

    def run_tests(self, request: Request) -> tuple[str, float]:
        """Like `run_tests`."""
        os.write(self._ask, (json.dumps(request._asdict()) + "\n").encode())
        end, seconds = json.loads(self._answers.readline())
        return end, seconds

    def close(self) -> None:
        """End it."""
        os.close(self._ask)
        os.waitpid(self._child, 0)


def _serve(requests: IO[str], answers: int) -> None:
    """Import the library, then run tests for every line that is read."""
    import_library()
    bridge = importlib.import_module("jax._src.xla_bridge")
    assert not bridge._backends, "a module computes while it is imported"
    sys.dont_write_bytecode = False  # tests are rewritten for their assertions, and that is kept
    gc.collect()
    gc.freeze()  # what is here is never garbage, and forks need not look through it
    for line in requests:
        request = Request(**json.loads(line))
        os.write(answers, (json.dumps(run_tests(request)) + "\n").encode())


def import_library() -> None:
    """Import every module of the library, and the modules that many tests share."""
    _enter_tree()
    sys.path.insert(0, str(TREE / "tests"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("suite")  # quick compilation, which must be said before jax starts
        library = importlib.import_module("steppe")
        for found in pkgutil.walk_packages(library.__path__, "steppe."):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)
        for name in HELPERS:
            importlib.import_module(name)


def run_tests(request: Request) -> tuple[str, float]:
    """Run tests in a fork; how it ended ("0", an exit code, a signal, or a timeout) and its CPU seconds."""

    def work() -> int:
        import pytest

        from .plugins import OPTIONS, ChosenTests, Recorder

        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        if request.is_followed:
            return int(pytest.main([*OPTIONS, *request.tests], plugins=[Recorder()]))
        if request.function:
            gc.unfreeze()  # or functions are not found
            replace_function(SOURCE / "steppe" / request.module, request.function)
            gc.freeze()
        files = list(dict.fromkeys(test.split("::")[0] for test in request.tests))
        return int(pytest.main([*OPTIONS, "-x", *files], plugins=[ChosenTests(request.tests)]))

    return run_in_fork(work, request.cpu_seconds, request.wall_seconds)


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
        _enter_tree()
        output = os.open(OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        code = work()
    except BaseException:  # noqa: BLE001 the fork ends here, whatever it was
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _enter_tree() -> None:
    """Work in the copy, and import from it alone."""
    os.chdir(TREE)
    own = [str(TREE / place) for place in ("src", "reproduction/src", "bench/src", ".")]
    others = [ROOT / "src", ROOT / "reproduction" / "src", ROOT / "bench" / "src"]
    kept = [path for path in sys.path if path not in own and Path(path or ".").resolve() not in others]
    sys.path[:] = [*own, *kept]


def _end_group(child: int) -> None:
    """End what the tests left running."""
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        return
