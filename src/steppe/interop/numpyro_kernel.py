"""A recipe as a kernel of NumPyro, alone or as a block of its composite `Gibbs` beside NUTS."""

import copy
from collections.abc import Callable
from typing import NamedTuple, get_args

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import PyTree

from steppe.arguments import checked
from steppe.errors import RecipeError, TargetError
from steppe.interop.numpyro import Gradient, Model, conditional_target, latent_sites, packing_of
from steppe.interop.packing import Packing
from steppe.kernel.compose import Recipe
from steppe.kernel.sampler import Sampler
from steppe.kernel.start_search import count_most_evaluations, search_starts
from steppe.kernel.types import SamplerState, StepInfo
from steppe.optional import require
from steppe.run.adaptation import Adapt, WarmupAdaptation, resolve_adaptation
from steppe.run.adaptation.warmup import Searches
from steppe.run.simulate import simulate
from steppe.samplers.langevin import dmala
from steppe.target import Target
from steppe.targets.checks import choice
from steppe.validation import count

# Of the model: what NumPyro passes on from `mcmc.run`.
Arguments = tuple[PyTree, ...]
Keywords = dict[str, PyTree] | None


class KernelState(NamedTuple):
    """What the kernel carries from sweep to sweep.

    Attributes
    ----------
    z
        Values of the sites by name.
    chain
        State of the sampler.
    adapted
        Searches for adapted numbers, or `None`.
    num_sweeps, num_warmup
        Sweeps made, and how many of them are warm-up.
    acceptance_rate, step_size
        Of the last sweep, for `extra_fields`; the step size is 0 where there is none.
    rng_key
        Random key for the next sweep.
    """

    z: dict[str, Array]
    chain: SamplerState
    adapted: Searches | None
    num_sweeps: Array
    num_warmup: Array
    acceptance_rate: Array
    step_size: Array
    rng_key: Array


class NumpyroKernel:
    """An `MCMCKernel` of NumPyro that moves discrete sites by a recipe of `steppe`.

    Parameters
    ----------
    model
        The model. Alone, all its latent sites must be discrete and bounded; in
        `Gibbs([(NumpyroKernel(model), discrete_latent_sites), (NUTS(model), None)])` those of its block.
    recipe
        How the sites move; `steppe.dmala()` by default. Its distribution must be that of the model: recipes
        that
        tilt it or run replicas are refused, and unadjusted ones bring their bias.
    num_steps
        Steps of the recipe per sweep.
    gradient
        As in `from_numpyro`.
    adapt
        As in `steppe.sample`; by default the step size is adapted in NumPyro's warm-up, then frozen.

    Examples
    --------
    >>> import jax, numpyro, numpyro.distributions as dist, steppe
    >>> def model():
    ...     numpyro.sample("bits", dist.Bernoulli(0.9).expand([4]).to_event(1))
    >>> mcmc = numpyro.infer.MCMC(
    ...     steppe.interop.NumpyroKernel(model), num_warmup=100, num_samples=500, progress_bar=False
    ... )
    >>> mcmc.run(jax.random.key(0))
    >>> bool(abs(mcmc.get_samples()["bits"].mean() - 0.9) < 0.1)
    True
    """

    sample_field = "z"
    default_fields = ("z",)
    is_ensemble_kernel = False

    @checked(TargetError)
    def __init__(
        self,
        model: Model,
        recipe: Recipe | None = None,
        *,
        num_steps: int = 1,
        gradient: Gradient = "differences",
        adapt: bool | Adapt = True,
    ) -> None:
        numpyro = require("numpyro.infer.mcmc", "numpyro", "`NumpyroKernel`")
        # Its defaults are all written out below; being registered is what NumPyro asks for.
        numpyro.MCMCKernel.register(type(self))
        self._model = model
        self._recipe = _check_recipe(dmala() if recipe is None else recipe)
        self._num_steps = count("NumpyroKernel(num_steps=...)", num_steps)
        self._gradient = choice("NumpyroKernel(gradient=...)", gradient, get_args(Gradient))
        self._wanted = adapt
        # Known once `init` has seen the model: names and numbers, no arrays.
        self._packing: Packing | None = None
        self._adapt: WarmupAdaptation | None = None

    @property
    def model(self) -> Model:
        """The model."""
        return self._model

    def init(
        self,
        rng_key: Array,
        num_warmup: int,
        init_params: dict[str, Array] | None,
        model_args: Arguments,
        model_kwargs: Keywords,
    ) -> KernelState:
        """Start from given values, or from a draw of the prior."""
        key_trace, key_start, rng_key = jax.random.split(rng_key, 3)
        kwargs = dict(model_kwargs or {})
        entries = latent_sites(self._model, model_args, kwargs, key_trace)
        self._packing = packing_of(entries)
        sampler = self._sampler(model_args, kwargs)
        self._adapt = resolve_adaptation(self._wanted, sampler)
        drawn = {name: entry["value"] for name, entry in entries.items()}
        start = self._packing.pack({**drawn, **(init_params or {})})
        if not init_params:
            start = _find_valid(sampler.target, key_start, start)
        adapted = None if self._adapt is None else self._adapt.init(sampler)
        zero = jnp.zeros((), jnp.int32)
        rate = jnp.zeros((), jnp.result_type(float))
        chain = sampler.init(start, key_start)
        step_size = jnp.asarray(sampler.parameters.get("step_size", 0.0), rate.dtype)
        return KernelState(
            self._packing.unpack(start), chain, adapted, zero, zero + num_warmup, rate, step_size, rng_key
        )

    def sample(self, state: KernelState, model_args: Arguments, model_kwargs: Keywords) -> KernelState:
        """One sweep: `num_steps` steps of the recipe."""
        sampler = self._sampler(model_args, model_kwargs)
        is_warmup = state.num_sweeps < state.num_warmup
        key_steps, rng_key = jax.random.split(state.rng_key)
        one = jax.tree.map(lambda leaf: leaf[None], (state.chain, state.adapted))
        done = simulate(
            sampler,
            key_steps,
            one[0],
            self._num_steps,
            every=self._num_steps,
            adapt=self._adapt,
            adapted=one[1],
            num_warmup=jnp.where(is_warmup, self._num_steps, 0),
            observe=_read,
        )
        chain, adapted, seen = jax.tree.map(lambda leaf: leaf[0], (done.state, done.adapted, done.observed))
        return state._replace(
            z=self._known_packing.unpack(chain.position),
            chain=chain,
            adapted=adapted,
            num_sweeps=state.num_sweeps + 1,
            acceptance_rate=seen[0][0],
            step_size=seen[1][0],
            rng_key=rng_key,
        )

    def refresh(self, state: KernelState, model_args: Arguments, model_kwargs: Keywords) -> KernelState:
        """Evaluate the same position again, after other blocks have moved."""
        return state._replace(chain=self._sampler(model_args, model_kwargs).refresh(state.chain))

    def wrap_model(self, wrapper: Callable[[Model], Model]) -> "NumpyroKernel":
        """Return a copy on the wrapped model."""
        kernel = copy.copy(self)
        kernel._model, kernel._packing = wrapper(self._model), None
        return kernel

    def get_constrain_fn(self, model_args: Arguments, model_kwargs: Keywords) -> Callable[[PyTree], PyTree]:
        """Values are constrained as they are."""
        return _identity

    def postprocess_fn(self, model_args: Arguments, model_kwargs: Keywords) -> Callable[[PyTree], PyTree]:
        """Values are reported as they are."""
        return _identity

    def get_diagnostics_str(self, state: KernelState) -> str:
        """What NumPyro's progress bar shows."""
        return f"step size {state.step_size:.2e}, acceptance {state.acceptance_rate:.2f}"

    @property
    def _known_packing(self) -> Packing:
        if self._packing is None:
            raise RecipeError("`NumpyroKernel.init` must be called before `sample` or `refresh`.")
        return self._packing

    def _sampler(self, model_args: Arguments, model_kwargs: Keywords) -> Sampler:
        kwargs = dict(model_kwargs or {})
        target = conditional_target(self._model, model_args, kwargs, self._known_packing, self._gradient)
        return self._recipe.build(target, audit=False)


def _find_valid(target: Target, key: Array, start: Array) -> Array:
    """Return the start, or one that was searched for where the model excludes it."""
    one = key[None], start[None], target.log_density(start)[None]
    return search_starts(target, *one, count_most_evaluations(target)).position[0]


def _read(sampler: Sampler, state: SamplerState, info: StepInfo) -> tuple[Array, Array]:
    step_size = sampler.parameters.get("step_size", jnp.zeros(()))
    return info.acceptance_rate, jnp.asarray(step_size, info.acceptance_rate.dtype)


def _identity(values: PyTree) -> PyTree:
    return values


def _check_recipe(recipe: Recipe) -> Recipe:
    if recipe.coupling.replicas is not None or not recipe.penalty.is_null:
        raise RecipeError(
            f"`NumpyroKernel(model, recipe)`: the distribution of `{recipe.name}` is not that of the model, "
            f"so other "
            "blocks of `Gibbs` would be sampled wrongly. Use a recipe that samples π such as "
            "`steppe.edmala_glu()`."
        )
    return recipe
