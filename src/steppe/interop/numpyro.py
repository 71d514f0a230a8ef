"""Discrete sites of NumPyro models: as a target of their own."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import PyTree

from steppe.arguments import checked
from steppe.errors import TargetError
from steppe.interop.differences import differences_as_gradient
from steppe.interop.packing import PackedTarget, Packing, Site, site
from steppe.optional import require
from steppe.pytree import is_concrete
from steppe.targets.checks import choice
from steppe.validation import call_back

Model = Callable[..., PyTree]
# NumPyro is imported when it is needed: a distribution or its support, and what a trace says of a site.
Distribution = Any
Entry = Mapping[str, Any]
Gradient = Literal["differences", "autograd"]

# A bound that depends on a draw shows when it differs between traces; few are enough for all but rare values.
NUM_TRACES = 6


@checked(TargetError)
def from_numpyro(
    model: Model,
    *args: PyTree,
    kwargs: Mapping[str, PyTree] | None = None,
    gradient: Gradient = "differences",
) -> PackedTarget:
    """Target of a NumPyro model whose latent sites are discrete and bounded.

    Parameters
    ----------
    model
        The model. Sites with integer intervals as support are packed into one domain: bits where all have
        two values, ordered levels where all are alike, else categories.
    args
        Arguments of the model.
    kwargs
        Keyword arguments of the model, as a mapping.
    gradient
        `"differences"`: exact differences of all one-site changes stand for the gradient, at that many
        evaluations per step, made as one batch; right for every model. `"autograd"`: one evaluation, for
        models that treat their sites as real numbers; `steppe.audit_gradient` tells.

    Returns
    -------
    PackedTarget
        `target.unpack(positions)` and `target.draws(run)` give values by the names of the sites.

    Examples
    --------
    >>> import jax, numpyro, numpyro.distributions as dist, steppe
    >>> def model():
    ...     numpyro.sample("count", dist.Binomial(3, 0.5))
    >>> target = steppe.interop.from_numpyro(model)
    >>> run = steppe.sample(target, steppe.gibbs(), key=jax.random.key(0), num_draws=200)
    >>> sorted(target.draws(run))
    ['count']
    """
    require("numpyro", "numpyro", "`from_numpyro`")
    choice("from_numpyro(gradient=...)", gradient, get_args(Gradient))
    keywords = dict(kwargs or {})
    _check_call(model, args, keywords)
    packing = packing_of(latent_sites(model, args, keywords, jax.random.key(0)))
    for seed in range(1, NUM_TRACES):
        again = packing_of(latent_sites(model, args, keywords, jax.random.key(seed)))
        if again != packing:
            raise TargetError(
                f"Sites or their bounds depend on what was drawn before: {packing.sites} in one trace of the "
                f"model, {again.sites} in another. Give every site a support of its own."
            )
    return conditional_target(model, args, keywords, packing, gradient)


def _check_call(model: Model, args: tuple[PyTree, ...], kwargs: Mapping[str, PyTree]) -> None:
    try:
        inspect.signature(model).bind(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise TargetError(
            f"The arguments do not fit the model: {error}. Give them as `from_numpyro(model, *args, "
            "kwargs=...)`."
        ) from error


def latent_sites(
    model: Model, args: tuple[PyTree, ...], kwargs: dict[str, PyTree], key: Array
) -> dict[str, Entry]:
    """Trace a model once; return the entries that are drawn and not observed."""
    gibbs = require("numpyro.infer.gibbs", "numpyro", "Reading a NumPyro model")
    trace = call_back("model", gibbs.prototype_trace, gibbs.conditioned(model), key, args, kwargs)
    return {name: trace[name] for name in gibbs.latent_sample_sites(trace)}


def packing_of(entries: Mapping[str, Entry]) -> Packing:
    """Read the supports of latent sites."""
    packing = Packing(tuple(_site(name, entry) for name, entry in entries.items()))
    if not packing.sites:
        raise TargetError("The model has no latent site: everything is observed or conditioned on.")
    return packing


def conditional_target(
    model: Model, args: tuple[PyTree, ...], kwargs: dict[str, PyTree], packing: Packing, gradient: str
) -> PackedTarget:
    """Target of the packed sites, given what `kwargs` conditions the others on."""
    gibbs = require("numpyro.infer.gibbs", "numpyro", "Reading a NumPyro model")
    from numpyro.infer.util import log_density as log_joint

    read = packing.unpack if gradient == "differences" else packing.unpack_real
    conditioned = gibbs.conditioned(model)

    def log_density(position: Array) -> Array:
        value, _ = log_joint(conditioned, args, gibbs.with_conditioning(kwargs, read(position)), {})
        return jnp.asarray(value)

    if gradient == "autograd":
        packing.check_differentiable()
        return PackedTarget(log_density, packing, None)
    return PackedTarget(log_density, packing, differences_as_gradient(log_density, packing.domain))


def _site(name: str, entry: Entry) -> Site:
    distribution = entry["fn"]
    kind = _kind(distribution)
    support = distribution.support
    while hasattr(support, "base_constraint"):  # batch axes that were declared part of an event
        support = support.base_constraint
    if not support.is_discrete:
        raise TargetError(
            f"Site {name!r} ({kind}) is continuous. Condition on it with `numpyro.handlers.condition`, or "
            "sample both kinds with `Gibbs([(NumpyroKernel(model), discrete_latent_sites), (NUTS(model), "
            "None)])`, where the first is `steppe.interop.NumpyroKernel`."
        )
    if entry["infer"].get("enumerate") == "parallel":
        raise TargetError(
            f"Site {name!r} ({kind}) is marked for enumeration. Remove `infer={{'enumerate': 'parallel'}}`: "
            "here it is sampled."
        )
    low, high = _bounds(name, kind, support)
    return site(name, np.shape(entry["value"]), low, high, is_ordered="Categorical" not in kind)


def _bounds(name: str, kind: str, support: Distribution) -> tuple[ArrayLike, ArrayLike]:
    if type(support).__name__ == "_Boolean":
        return 0, 1
    if not (hasattr(support, "lower_bound") and hasattr(support, "upper_bound")):
        raise TargetError(
            f"Site {name!r} ({kind}) has no bounded support of single integers, but {support}. Use a "
            "`Categorical` or a `DiscreteUniform` over the values that matter."
        )
    if not is_concrete((support.lower_bound, support.upper_bound)):
        raise TargetError(
            f"The bounds of site {name!r} ({kind}) are not known when the program is compiled. Give them as "
            "plain numbers that depend on no other site."
        )
    return support.lower_bound, support.upper_bound


def _kind(distribution: Distribution) -> str:
    """Name of the distribution under what expands, masks or reshapes it."""
    while hasattr(distribution, "base_dist") and type(distribution).__name__ in WRAPPERS:
        distribution = distribution.base_dist
    name = type(distribution).__name__
    return (
        "OrderedCategorical"
        if name == "OrderedLogistic"
        else name.removesuffix("Probs").removesuffix("Logits")
    )


WRAPPERS = ("ExpandedDistribution", "Independent", "MaskedDistribution")
