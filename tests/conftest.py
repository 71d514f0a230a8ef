"""Shared fixtures. Tests run in float32, the default, unless they ask for float64."""

import jax
import pytest


@pytest.fixture
def float64():
    """Run one test in double precision."""
    with jax.enable_x64(True):
        yield
