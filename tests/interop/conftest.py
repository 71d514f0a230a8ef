"""What the bridged packages need before they can be imported here."""

import contextlib
import importlib
import warnings

import pytest


@pytest.fixture(scope="session", autouse=True)
def styles_of_matplotlib():
    """Load the module that ArviZ 0.23 and arviz-plots 0.8 reach into, and matplotlib 3.11 no longer loads."""
    with warnings.catch_warnings(), contextlib.suppress(ImportError):
        warnings.simplefilter("ignore")  # it is deprecated
        importlib.import_module("matplotlib.style.core")
