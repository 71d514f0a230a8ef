"""Sample discrete distributions and find their flat modes."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from steppe import errors
from steppe.domain import Binary, Categorical, Domain, Ordinal, Permutation, Product, Spin
from steppe.target import Incremental, Target
from steppe.audit import GradientAudit, audit_gradient
from steppe import samplers
from steppe.samplers import *  # noqa: F403
from steppe.samplers.flip_fraction import coupling_variance_from_flip_fraction
from steppe.run.result import Run, open_run
from steppe.run.adaptation import Adapt
from steppe.run.sample import sample
from steppe.run.anneal import Annealed, anneal
from steppe.run.schedule import geometric_schedule, linear_schedule, parameter_schedule
from steppe.tune import Tuned, tune
from steppe.compare import Comparison, compare

if _TYPE_CHECKING:
    __version__: str
    from steppe import datasets, diagnostics, interop, modes, routes, samplers, targets, theory, training
    from steppe.modes import FlatModes, find_flat_modes
    from steppe.run.storage.shards import merge_shards

__all__ = [
    "errors",
    "Binary",
    "Categorical",
    "Domain",
    "Ordinal",
    "Spin",
    "Permutation",
    "Product",
    "Incremental",
    "Target",
    "GradientAudit",
    "audit_gradient",
    "coupling_variance_from_flip_fraction",
    "sample",
    "Adapt",
    "Run",
    "open_run",
    "merge_shards",
    "find_flat_modes",
    "FlatModes",
    "anneal",
    "Annealed",
    "parameter_schedule",
    "geometric_schedule",
    "linear_schedule",
    "tune",
    "Tuned",
    "compare",
    "Comparison",
    "interop",
]
__all__ += samplers.__all__

# Modules, and names with the module they are in, that a first sample does without.
_MODULES_WHEN_ASKED_FOR = (
    "datasets",
    "diagnostics",
    "interop",
    "modes",
    "routes",
    "targets",
    "theory",
    "training",
)
_NAMES_WHEN_ASKED_FOR = {
    "FlatModes": "steppe.modes",
    "find_flat_modes": "steppe.modes",
    "merge_shards": "steppe.run.storage.shards",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return _import_module("importlib.metadata").version("steppe")
    if name in _MODULES_WHEN_ASKED_FOR:
        return _import_module(f"steppe.{name}")
    if name in _NAMES_WHEN_ASKED_FOR:
        return getattr(_import_module(_NAMES_WHEN_ASKED_FOR[name]), name)
    raise AttributeError(f"module 'steppe' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), "__version__", *__all__, *_MODULES_WHEN_ASKED_FOR})
