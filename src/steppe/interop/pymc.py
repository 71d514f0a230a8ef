"""Discrete models of PyMC as targets, compiled to JAX."""

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, cast, get_args

import jax
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.errors import TargetError
from steppe.interop.differences import differences_as_gradient
from steppe.interop.packing import PackedTarget, Packing, Site, site
from steppe.optional import require
from steppe.targets.checks import choice

# PyMC is imported when it is needed: a `pymc.Model` and its variables.
PymcModel = Any
Variable = Any

Gradient = Literal["differences", "autograd"]


@checked(TargetError)
def from_pymc(model: PymcModel, *, gradient: Gradient = "differences") -> PackedTarget:
    """Target of a PyMC model whose free variables are discrete and bounded.

    Parameters
    ----------
    model
        A `pymc.Model`. Variables may be `Bernoulli`, `Categorical`, `DiscreteUniform`, `Binomial` and
        `BetaBinomial`; what else is free must be observed (`pymc.observe`) or fixed (`pymc.do`) first.
    gradient
        `"differences"`: exact differences of all one-site changes stand for the gradient, at that many
        evaluations per step, made as one batch. `"autograd"`: one evaluation; PyMC's own log-densities of
        discrete variables have gradient zero, as `steppe.audit_gradient` will say.

    Returns
    -------
    PackedTarget
        `target.unpack(positions)` and `target.draws(run)` give values by the names of the model. It is
        evaluated in the precision JAX is set to, float32 unless `jax_enable_x64` is on.

    Examples
    --------
    >>> import pymc, steppe
    >>> with pymc.Model() as model:
    ...     _ = pymc.Bernoulli("bits", p=0.8, shape=3)
    >>> target = steppe.interop.from_pymc(model)
    >>> round(float(target.log_density(target.domain.from_levels([1, 1, 1]))), 4)  # 3 log 0.8
    -0.6694
    """
    pymc = require("pymc", "pymc", "`from_pymc`")
    choice("from_pymc(gradient=...)", gradient, get_args(Gradient))
    if not isinstance(model, pymc.Model):
        raise TargetError(f"`from_pymc(model)` needs a `pymc.Model`; got {type(model).__name__}.")
    packing = Packing(tuple(_site(model, variable) for variable in model.free_RVs))
    if not packing.sites:
        raise TargetError("`from_pymc(model)`: the model has no free variable.")
    if gradient == "autograd":
        packing.check_differentiable()
    log_density = _compile(model, packing, gradient)
    exact = differences_as_gradient(log_density, packing.domain) if gradient == "differences" else None
    return PackedTarget(log_density, packing, exact)


def _site(model: PymcModel, variable: Variable) -> Site:
    low, high, is_ordered = _bounds(variable)
    shape = model.initial_point()[model.rvs_to_values[variable].name].shape
    return site(variable.name, shape, low, high, is_ordered=is_ordered)


def _bounds(variable: Variable) -> tuple[ArrayLike, ArrayLike, bool]:
    """Least and largest value of a variable, and whether they are ordered."""
    operation = variable.owner.op
    kind = type(operation).__name__.removesuffix("RV")
    parameters: list[Variable] = []
    if hasattr(operation, "dist_params"):
        parameters = operation.dist_params(variable.owner)
    if kind == "Bernoulli":
        return 0, 1, True
    if kind == "Categorical":
        return 0, _constant(variable, parameters[0].shape[-1]) - 1, False
    if kind in ("Binomial", "BetaBinomial"):
        return 0, _constant(variable, parameters[0]), True
    if kind == "DiscreteUniform":
        return _constant(variable, parameters[0]), _constant(variable, parameters[1]), True
    if variable.dtype.startswith("float"):
        raise TargetError(
            f"Site {variable.name!r} ({kind}) is continuous. Fix it with `pymc.do`, observe it with "
            "`pymc.observe`, or write the model in NumPyro, where `steppe.interop.NumpyroKernel` samples the "
            "discrete sites beside NUTS."
        )
    raise TargetError(
        f"Site {variable.name!r} ({kind}) has no bounded support known here. Use a `pymc.Categorical` over "
        "the values that matter, or a `pymc.DiscreteUniform` with the rest as a `pymc.Potential`."
    )


def _constant(variable: Variable, expression: Variable) -> np.ndarray:
    from pymc.exceptions import NotConstantValueError
    from pymc.pytensorf import constant_fold

    try:
        return np.asarray(constant_fold([expression], raise_not_constant=True)[0]).astype(int)
    except NotConstantValueError as error:
        raise TargetError(
            f"The bounds of site {variable.name!r} depend on other variables. Give them as plain numbers; a "
            "`pymc.Data` container does not count as one."
        ) from error


def _compile(model: PymcModel, packing: Packing, gradient: str) -> Callable[[Array], Array]:
    """The model's log-density as a JAX function of one position."""
    values = [model.rvs_to_values[variable] for variable in model.free_RVs]
    with unchanged_process():
        from pymc.sampling.jax import get_jaxified_graph

        graph = get_jaxified_graph(inputs=values, outputs=[model.logp()])
        evaluate = cast("Callable[..., list[Array]]", graph)

    def log_density(position: Array) -> Array:
        named = packing.unpack(position) if gradient == "differences" else packing.unpack_real(position)
        with warnings.catch_warnings():
            # PyTensor asks for 64 bits by name; JAX gives what it is set to, and says so every time.
            warnings.filterwarnings("ignore", message="Explicitly requested dtype", category=UserWarning)
            return evaluate(*(named[s.name] for s in packing.sites))[0]

    return log_density


@contextmanager
def unchanged_process() -> Iterator[None]:
    """Undo what importing PyMC's JAX code does to the process: a hundred devices, and float64 everywhere."""
    environment, is_double = dict(os.environ), jax.config.read("jax_enable_x64")
    try:
        yield
    finally:
        for name in os.environ.keys() - environment.keys():
            del os.environ[name]
        os.environ.update(environment)
        jax.config.update("jax_enable_x64", is_double)
