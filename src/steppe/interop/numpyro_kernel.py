"""A recipe as a kernel of NumPyro, alone or as a block of its composite `Gibbs` beside NUTS."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jax import Array

from steppe.errors import RecipeError
from steppe.interop.numpyro import Gradient, conditional_target, latent_sites, packing_of
from steppe.interop.packing import Packing
from steppe.kernel.compose import Recipe
from steppe.kernel.sampler import Sampler
from steppe.kernel.state import State
from steppe.kernel.tilt import NoTilt
from steppe.optional import needed
from steppe.run.adapt import Adapt, what_to_adapt
from steppe.run.tuning import Tuning, center_distance, observe, tuned
from steppe.samplers.langevin import dmala
from steppe.targets.checks import choice
from steppe.validation import count


class KernelState(NamedTuple):
    """What the kernel carries from sweep to sweep.

    Attributes
    ----------
    z
        Values of the sites by name.
    chain
        State of the sampler.
    tuning
        Searches for adapted numbers, or `None`.
    num_sweeps, num_warmup
        Sweeps made, and how many of them are warm-up.
    acceptance_rate, step_size
        Of the last sweep, for `extra_fields`; the step size is 0 where there is none.
    rng_key
        Random key for the next sweep.
    """

    z: dict[str, Array]
    chain: State
    tuning: Tuning | None
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
        How the sites move; `steppe.dmala()` by default. Its law must be that of the model: recipes that
        tilt it or run replicas are refused, and unadjusted ones bring their bias.
    num_steps
        Steps of the recipe per sweep.
    gradient
        As in `from_numpyro`.
    adapt
        As in `steppe.sample`; by default the step size is adapted in NumPyro's warm-up, then frozen.
    """

    sample_field = "z"
    default_fields = ("z",)
    is_ensemble_kernel = False

    def __init__(
        self,
        model: Callable[..., Any],
        recipe: Recipe | None = None,
        *,
        num_steps: int = 1,
        gradient: Gradient = "differences",
        adapt: bool | Adapt = True,
    ) -> None:
        numpyro: Any = needed("numpyro.infer.mcmc", "numpyro", "`NumpyroKernel`")
        # Its defaults are all written out below; being registered is what NumPyro asks for.
        numpyro.MCMCKernel.register(type(self))
        self._model = model
        self._recipe = _checked(dmala() if recipe is None else recipe)
        self._num_steps = count("NumpyroKernel(num_steps=...)", num_steps)
        self._gradient = choice("NumpyroKernel(gradient=...)", gradient, get_args(Gradient))
        self._wanted = adapt
        # Known once `init` has seen the model: names and numbers, no arrays.
        self._packing: Packing | None = None
        self._adapt: Adapt | None = None

    @property
    def model(self) -> Callable[..., Any]:
        """The model."""
        return self._model

    def init(
        self, rng_key: Array, num_warmup: int, init_params: Any, model_args: Any, model_kwargs: Any
    ) -> KernelState:
        """Start from given values, or from a draw of the prior."""
        key_trace, key_start, rng_key = jax.random.split(rng_key, 3)
        kwargs = dict(model_kwargs or {})
        entries = latent_sites(self._model, model_args, kwargs, key_trace)
        self._packing = packing_of(entries)
        sampler = self._sampler(model_args, kwargs)
        self._adapt = what_to_adapt(self._wanted, self._recipe, sampler)
        drawn = {name: entry["value"] for name, entry in entries.items()}
        start = self._packing.pack({**drawn, **(init_params or {})})
        tuning = None if self._adapt is None else Tuning.start(sampler, self._adapt)
        zero = jnp.zeros((), jnp.int32)
        rate = jnp.zeros((), jnp.result_type(float))
        chain = sampler.init(start, key_start)
        step_size = jnp.asarray(sampler.numbers.get("step_size", 0.0), rate.dtype)
        return KernelState(
            self._packing.unpack(start), chain, tuning, zero, zero + num_warmup, rate, step_size, rng_key
        )

    def sample(self, state: KernelState, model_args: Any, model_kwargs: Any) -> KernelState:
        """One sweep: `num_steps` steps of the recipe."""
        sampler = self._sampler(model_args, model_kwargs)
        is_warmup = state.num_sweeps < state.num_warmup
        key_steps, rng_key = jax.random.split(state.rng_key)

        def step(carry: tuple[State, Any], key: Array) -> tuple[tuple[State, Any], tuple[Array, Array]]:
            chain, tuning = carry
            current = sampler if tuning is None else tuned(sampler, tuning.numbers(is_warmup))
            chain, info = current.step(key, chain)
            tuning = self._adapted(sampler, tuning, chain, info, is_warmup)
            step_size = jnp.asarray(current.numbers.get("step_size", 0.0), info.acceptance_rate.dtype)
            return (chain, tuning), (info.acceptance_rate, step_size)

        keys = jax.random.split(key_steps, self._num_steps)
        (chain, tuning), (rates, steps) = jax.lax.scan(step, (state.chain, state.tuning), keys)
        return state._replace(
            z=self._known_packing.unpack(chain.position),
            chain=chain,
            tuning=tuning,
            num_sweeps=state.num_sweeps + 1,
            acceptance_rate=rates.mean(),
            step_size=steps[-1],
            rng_key=rng_key,
        )

    def refresh(self, state: KernelState, model_args: Any, model_kwargs: Any) -> KernelState:
        """Evaluate the same position again, after other blocks have moved."""
        fresh = self._sampler(model_args, model_kwargs).init(state.chain.position, state.rng_key)
        return state._replace(chain=fresh._replace(center=state.chain.center, scan=state.chain.scan))

    def wrap_model(self, wrapper: Callable[..., Any]) -> "NumpyroKernel":
        """Return a copy on the wrapped model."""
        kernel = copy.copy(self)
        kernel._model, kernel._packing = wrapper(self._model), None
        return kernel

    def get_constrain_fn(self, model_args: Any, model_kwargs: Any) -> Callable[[Any], Any]:
        """Values are constrained as they are."""
        return _identity

    def postprocess_fn(self, model_args: Any, model_kwargs: Any) -> Callable[[Any], Any]:
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

    def _sampler(self, model_args: Any, model_kwargs: Any) -> Sampler:
        kwargs = dict(model_kwargs or {})
        target = conditional_target(self._model, model_args, kwargs, self._known_packing, self._gradient)
        return self._recipe.build(target, audit=False)

    def _adapted(self, sampler: Sampler, tuning: Any, chain: State, info: Any, is_warmup: Array) -> Any:
        adapt = self._adapt
        if adapt is None or tuning is None:
            return tuning
        distance = center_distance(sampler, chain) if adapt.center_distance is not None else None
        seen = observe(adapt, sampler, info.acceptance_rate, info.num_flips, distance)
        return jax.lax.cond(is_warmup, lambda: tuning.update(sampler, adapt, seen), lambda: tuning)


def _identity(values: Any) -> Any:
    return values


def _checked(recipe: Any) -> Recipe:
    if not isinstance(recipe, Recipe):
        raise RecipeError(
            f"`NumpyroKernel(model, recipe)` needs a recipe such as `steppe.dmala()`; got {recipe!r}."
        )
    if recipe.coupling.replicas is not None or not isinstance(recipe.tilt, NoTilt):
        raise RecipeError(
            f"`NumpyroKernel(model, recipe)`: the law of `{recipe.name}` is not that of the model, so other "
            "blocks of `Gibbs` would be sampled wrongly. Use a recipe of law π such as `steppe.edmala_glu()`."
        )
    return recipe
