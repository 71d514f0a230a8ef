"""Shared fixtures. Tests run in float32, the default, unless they ask for float64."""

import os

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

import jax
import pytest


@pytest.fixture
def float64():
    """Run one test in double precision."""
    with jax.enable_x64(True):
        yield
