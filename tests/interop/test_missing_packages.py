"""A bridge whose package is not installed says so in one sentence, with the line that installs it."""

import sys
from types import ModuleType

import pytest

from steppe import Binary, interop
from steppe.errors import MissingPackageError
from steppe.optional import require

BRIDGES = {
    "from_bqm": ("dimod", "graphs", lambda: interop.from_bqm(object())),
    "to_sampleset": ("dimod", "graphs", lambda: interop.to_sampleset(object(), [0])),
    "from_numpyro": ("numpyro", "numpyro", lambda: interop.from_numpyro(print)),
    "NumpyroKernel": ("numpyro", "numpyro", lambda: interop.NumpyroKernel(print)),
    "from_pymc": ("pymc", "pymc", lambda: interop.from_pymc(None)),
}


@pytest.mark.parametrize("bridge", BRIDGES)
def test_missing_package_is_named_with_the_line_that_installs_it(bridge, monkeypatch):
    package, extra, call = BRIDGES[bridge]
    for module in [name for name in sys.modules if name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError) as caught:
        call()
    expected = (
        f'`{bridge}` needs `{package}`, which is not installed; `pip install "steppe[{extra}]"` adds it.'
    )
    assert str(caught.value) == expected


def test_missing_torch_is_not_answered_by_a_line_that_brings_a_gpu_build(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingPackageError) as caught:
        interop.from_torch(print, Binary(2))
    assert str(caught.value) == (
        "`from_torch` needs `torch`, which is not installed; install PyTorch as its own page says for this "
        "computer; a CPU build will do."
    )


@pytest.fixture
def too_old(monkeypatch):
    """A package that is installed and does not have what is asked of it."""
    package = ModuleType("oldest")
    package.__path__ = []
    monkeypatch.setitem(sys.modules, "oldest", package)


def test_installed_package_that_is_too_old_is_not_called_missing(too_old):
    with pytest.raises(MissingPackageError) as caught:
        require("oldest.newer", "numpyro", "`from_numpyro`")
    assert str(caught.value) == (
        "`from_numpyro` needs `oldest.newer`, which the installed `oldest` does not give: No module named "
        "'oldest.newer'. `pip install \"steppe[numpyro]\" --upgrade` brings one that does."
    )
