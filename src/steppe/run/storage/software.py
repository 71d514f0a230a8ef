"""Software and hardware that the last bit of a draw depends on, for the record."""

import os
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

import jax
import numpy as np

# Instruction sets that XLA compiles for.
CPU_FEATURES = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512_bf16", "amx_tile", "asimd", "sve")


def describe_software() -> dict[str, str]:
    """Return versions, device, processor features and flags."""
    flags = os.environ.get("XLA_FLAGS", "").strip()
    return {
        "steppe": version("steppe"),
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "device": jax.devices()[0].device_kind,
        "cpu": _cpu(),
        **({"xla_flags": flags} if flags else {}),
    }


@cache
def _cpu() -> str:
    """Architecture and the features of it that programs may use."""
    try:
        words = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    except OSError:  # not on every system
        words = set()
    return " ".join([platform.machine(), *(name for name in CPU_FEATURES if name in words)])
