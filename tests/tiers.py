"""Which cases of a parametrised test run in the fast tier, and which in the full suite only."""

from collections.abc import Collection

import pytest


def cases(names: Collection[str], *, slow: Collection[str] = (), fast: Collection[str] | None = None) -> list:
    """Parameters of which those named slow, or those not named fast, are left to the full suite."""
    left = set(slow) if fast is None else set(names) - set(fast)
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in left)) for name in names]
