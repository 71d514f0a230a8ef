"""A bridge whose package is not installed says so in one sentence, with the line that installs it."""

import sys

import pytest

from steppe import interop
from steppe.errors import MissingPackageError

BRIDGES = {
    "from_bqm": ("dimod", "graphs", lambda: interop.from_bqm(object())),
    "to_sampleset": ("dimod", "graphs", lambda: interop.to_sampleset(object(), [0])),
    "from_numpyro": ("numpyro", "numpyro", lambda: interop.from_numpyro(None)),
    "NumpyroKernel": ("numpyro", "numpyro", lambda: interop.NumpyroKernel(None)),
    "from_pymc": ("pymc", "pymc", lambda: interop.from_pymc(None)),
    "from_torch": ("torch", "torch", lambda: interop.from_torch(None, None)),
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
