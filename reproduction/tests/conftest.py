"""The fixtures of every test, and quick compilation; see `suite`."""

from suite import (
    float64,
    interruptible,
    pytest_collection_modifyitems,
    pytest_runtest_teardown,
)

__all__ = [
    "float64",
    "interruptible",
    "pytest_collection_modifyitems",
    "pytest_runtest_teardown",
]
