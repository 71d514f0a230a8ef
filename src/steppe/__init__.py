"""Sample discrete distributions and find their flat modes."""

import sys as _sys
from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING as _TYPE_CHECKING

from steppe.optional import PackageOfFunctions as _PackageOfFunctions

# Nothing is imported before it is asked for: the command line answers questions without JAX. What checkers
# and editors read is this block; where a name comes from while a program runs is the table below.
if _TYPE_CHECKING:
    __version__: str
    from steppe import datasets, diagnostics, errors, interop, modes, routes, samplers, targets, theory
    from steppe import training
    from steppe.target.audit import GradientAudit, audit_gradient
    from steppe.compare import Comparison, compare
    from steppe.domain import Binary, Categorical, Counts, Domain, Ordinal, Permutation, Product, Real, Spin
    from steppe.evidence import Evidence, log_normalizer
    from steppe.interop.dimod_sampler import SteppeSampler
    from steppe.modes import FlatModes, find_flat_modes
    from steppe.population import Population, anneal_population
    from steppe.recommend import Recommendation, recommend
    from steppe.references import mean_field
    from steppe.robust import Robustness, measure_robustness, robust
    from steppe.run.adaptation import Adapt
    from steppe.run.anneal import Annealed, LocalOptima, anneal
    from steppe.run.background import Handle, start
    from steppe.run.observables import Observable
    from steppe.run.result import Run, open_run
    from steppe.run.sample import sample
    from steppe.run.schedule import adaptive_schedule, geometric_schedule, linear_schedule, parameter_schedule
    from steppe.run.storage.shards import merge_shards
    from steppe.run.temperature_ladder import TunedLadder, tune_ladder
    from steppe.run.until import Until, until
    from steppe.samplers import *  # noqa: F403
    from steppe.samplers.flip_fraction import coupling_variance_from_flip_fraction
    from steppe.samplers.mixed_models import mixed
    from steppe.state_counts import StateCounts, count_states
    from steppe.target import Incremental, Target
    from steppe.tune import Tuned, tune

    __all__ = [
        "errors",
        "Binary",
        "Categorical",
        "Counts",
        "Domain",
        "Ordinal",
        "Spin",
        "Permutation",
        "Product",
        "Real",
        "Incremental",
        "Target",
        "GradientAudit",
        "audit_gradient",
        "coupling_variance_from_flip_fraction",
        "mixed",
        "recommend",
        "Recommendation",
        "sample",
        "start",
        "Handle",
        "Observable",
        "Adapt",
        "Run",
        "open_run",
        "merge_shards",
        "robust",
        "measure_robustness",
        "Robustness",
        "find_flat_modes",
        "FlatModes",
        "log_normalizer",
        "Evidence",
        "anneal_population",
        "Population",
        "count_states",
        "StateCounts",
        "mean_field",
        "tune_ladder",
        "TunedLadder",
        "anneal",
        "Annealed",
        "LocalOptima",
        "until",
        "Until",
        "adaptive_schedule",
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

_PLACES = {
    "steppe": ("errors", "interop"),
    "steppe.target.audit": ("GradientAudit", "audit_gradient"),
    "steppe.compare": ("Comparison", "compare"),
    "steppe.domain": (
        "Binary",
        "Categorical",
        "Counts",
        "Domain",
        "Ordinal",
        "Permutation",
        "Product",
        "Real",
        "Spin",
    ),
    "steppe.evidence": ("Evidence", "log_normalizer"),
    "steppe.modes": ("FlatModes", "find_flat_modes"),
    "steppe.population": ("Population", "anneal_population"),
    "steppe.recommend": ("Recommendation", "recommend"),
    "steppe.references": ("mean_field",),
    "steppe.robust": ("Robustness", "measure_robustness", "robust"),
    "steppe.run.adaptation": ("Adapt",),
    "steppe.run.anneal": ("Annealed", "LocalOptima", "anneal"),
    "steppe.run.background": ("Handle", "start"),
    "steppe.run.observables": ("Observable",),
    "steppe.run.result": ("Run", "open_run"),
    "steppe.run.sample": ("sample",),
    "steppe.run.schedule": (
        "adaptive_schedule",
        "geometric_schedule",
        "linear_schedule",
        "parameter_schedule",
    ),
    "steppe.run.storage.shards": ("merge_shards",),
    "steppe.run.temperature_ladder": ("TunedLadder", "tune_ladder"),
    "steppe.run.until": ("Until", "until"),
    "steppe.samplers.flip_fraction": ("coupling_variance_from_flip_fraction",),
    "steppe.samplers.mixed_models": ("mixed",),
    "steppe.state_counts": ("StateCounts", "count_states"),
    "steppe.target": ("Incremental", "Target"),
    "steppe.tune": ("Tuned", "tune"),
}
# Needs a package that may be missing, so that `from steppe import *` leaves it out.
_OPTIONAL = {"SteppeSampler": "steppe.interop.dimod_sampler"}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return _import_module("importlib.metadata").version("steppe")
    if name == "__all__":
        return [*_PLACE_OF, *_import_module("steppe.samplers").__all__]
    if name in _OPTIONAL:
        found = getattr(_import_module(_OPTIONAL[name]), name)
    elif _PLACE_OF.get(name, "steppe") != "steppe":
        found = getattr(_import_module(_PLACE_OF[name]), name)
    elif name.startswith("_"):
        raise AttributeError(f"module 'steppe' has no attribute {name!r}")
    elif _find_spec(f"steppe.{name}") is not None:
        found = _import_module(f"steppe.{name}")
    elif name in (samplers := _import_module("steppe.samplers")).__all__:
        found = getattr(samplers, name)
    else:
        raise AttributeError(f"module 'steppe' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    modules = ("datasets", "diagnostics", "modes", "routes", "samplers", "targets", "theory", "training")
    return sorted({*globals(), "__version__", *__getattr__("__all__"), *modules})  # pyright: ignore[reportGeneralTypeIssues]


_sys.modules[__name__].__class__ = _PackageOfFunctions
