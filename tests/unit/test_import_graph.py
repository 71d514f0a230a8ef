"""Imports point one way: from what is built later to what it is built from."""

import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import steppe
from house import Arrow, find_arrows

PACKAGE = Path(steppe.__file__).parent

# From the ground up; a module imports from its own line or from lines above it. A new module or package
# directly under `steppe` takes its place here.
LAYERS = [
    "errors",
    "optional",
    "atomic",
    "presented",
    "pytree",
    "compiling",
    "mapped",
    "numerics",
    "validation",
    "arguments",
    "random",
    "domain",
    "target",
    "references",
    "kernel",
    "samplers",
    "recommend",
    "targets",
    "robust",
    "datasets",
    "trace",
    "results",
    "intervals",
    "run",
    "diagnostics",
    "evidence",
    "population",
    "state_counts",
    "theory",
    "training",
    "routes",
    "modes",
    "tune",
    "compare",
    "interop",
    "report",
    "cli",
    "__init__",
    "__main__",
]

# Objects a user holds offer later stages as methods (`run.summary()`); they import them when called.
MAY_REACH_UP_WHEN_CALLED = {
    "steppe.presented",
    "steppe.run.result",
    "steppe.run.stopping",
    "steppe.run.anneal",
    "steppe.kernel.compose",
    "steppe.modes.flat_modes",
    "steppe.tune.tuned",
    "steppe.compare.comparison",
}

# Slow to import, or not always installed.
ONLY_WHERE_NEEDED = {
    "matplotlib",
    "arviz",
    "arviz_base",
    "arviz_stats",
    "blackjax",
    "scipy",
    "sklearn",
    "networkx",
    "dimod",
    "numpyro",
    "pymc",
    "torch",
    "jinja2",
}

MAX_IMPORT_SECONDS = 1.0


def layer(module: str) -> int:
    """Place of a module of the package in the order; the package itself is its `__init__`."""
    parts = module.split(".")
    return LAYERS.index(parts[1] if len(parts) > 1 else "__init__")


ARROWS = find_arrows(sorted(PACKAGE.rglob("*.py")))
INSIDE = [arrow for arrow in ARROWS if arrow.target.split(".")[0] == "steppe"]


def test_every_module_has_its_place_in_the_order():
    found = {path.stem if path.is_file() else path.name for path in PACKAGE.iterdir()}
    assert found - {"__pycache__", "py"} <= set(LAYERS)  # `py.typed` is no module


def test_imports_at_load_time_point_down():
    upward = [a for a in INSIDE if a.is_eager and layer(a.target) > layer(a.source)]
    assert upward == []


def test_imports_made_when_called_point_down_too_except_from_declared_modules():
    upward = [a for a in INSIDE if not a.is_eager and layer(a.target) > layer(a.source)]
    assert {a.source for a in upward} <= MAY_REACH_UP_WHEN_CALLED


def test_modules_form_no_cycle():
    graph: dict[str, set[str]] = {}
    for arrow in INSIDE:
        if arrow.is_eager and arrow.source != arrow.target:
            graph.setdefault(arrow.source, set()).add(arrow.target)
    assert list(TopologicalSorter(graph).static_order())  # raises CycleError


def test_the_library_does_not_know_the_packages_that_extend_it():
    assert [arrow for arrow in ARROWS if arrow.target.split(".")[0].startswith("steppe_")] == []


def test_slow_or_optional_packages_are_imported_where_they_are_needed():
    eager = [a for a in ARROWS if a.is_eager and a.target.split(".")[0] in ONLY_WHERE_NEEDED]
    assert eager == []


def test_the_parser_sees_imports():
    assert Arrow("steppe.target.log_density", "steppe.domain.base", True) in ARROWS
    assert Arrow("steppe.kernel.blocks.metropolis", "steppe.random.draws", True) in ARROWS
    assert any(not arrow.is_eager for arrow in ARROWS)


@pytest.mark.parametrize("package", sorted(ONLY_WHERE_NEEDED - {"scipy"} | {"cyclopts", "pydantic"}))
def test_importing_steppe_does_not_load(package, loaded_modules):
    assert package not in loaded_modules["modules"]


def test_importing_steppe_costs_less_than_a_second_beyond_jax(loaded_modules):
    assert loaded_modules["seconds"] < MAX_IMPORT_SECONDS


@pytest.fixture(scope="module")
def loaded_modules():
    """What a fresh interpreter has loaded after `import steppe`, and its processor time beyond JAX."""
    program = (
        "import sys, time, jax, jax.numpy\n"
        "start = time.process_time()\n"
        "import steppe\n"
        "print(time.process_time() - start, *sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    seconds, *modules = result.stdout.split()
    return {"seconds": float(seconds), "modules": set(modules)}


def test_packages_are_at_hand_after_importing_steppe():
    names = "datasets diagnostics routes targets theory training"
    program = f"import steppe; assert all(getattr(steppe, name).__doc__ for name in {names.split()})"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_names_imported_when_asked_for_are_listed_and_found():
    listed = dir(steppe)
    for name in [*steppe.__all__, "datasets", "diagnostics", "modes", "targets"]:
        assert name in listed
        assert getattr(steppe, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'find_sharp_modes'"):
        _ = steppe.find_sharp_modes  # type: ignore[attr-defined]
