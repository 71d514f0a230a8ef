"""Recipes for algorithms of BlackJAX that bring their own log-density, such as sequential Monte Carlo.

A built sampler needs no bridge: it has the two functions of BlackJAX's `SamplingAlgorithm`.
"""

from collections.abc import Callable
from typing import NamedTuple

from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain import Domain
from steppe.errors import TargetError
from steppe.kernel.compose import Recipe
from steppe.kernel.sampler import Sampler
from steppe.kernel.types import SamplerState, StepInfo
from steppe.target import Target

LogDensity = Callable[[Array], Array]


class BlackjaxMcmc(NamedTuple):
    """The two functions `blackjax.tempered_smc` asks for.

    Attributes
    ----------
    init
        `init(position, log_density) → state`, its argument `mcmc_init_fn`.
    step
        `step(key, state, log_density, **numbers) → (state, info)`, its argument `mcmc_step_fn`.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, steppe
    >>> kernel = steppe.interop.to_blackjax(steppe.dmala(), steppe.Binary(4))
    >>> log_density = lambda bits: jnp.sum(bits)
    >>> state = kernel.init(jnp.zeros(4), log_density)
    >>> state, info = kernel.step(jax.random.key(0), state, log_density, step_size=0.5)
    >>> state.position.shape
    (4,)
    """

    init: Callable[..., SamplerState]
    step: Callable[..., tuple[SamplerState, StepInfo]]


@checked(TargetError)
def to_blackjax(recipe: Recipe, domain: Domain) -> BlackjaxMcmc:
    """Give a recipe the form in which BlackJAX's `tempered_smc` and its relatives take a kernel.

    Parameters
    ----------
    recipe
        How particles move. Their distribution must be the log-density BlackJAX passes, so use one that
        samples π; numbers
        in `mcmc_parameters`, such as `{"step_size": jnp.asarray([0.3])}`, replace those of the recipe.
    domain
        Where particles live.

    Examples
    --------
    >>> import blackjax, jax, jax.numpy as jnp, steppe
    >>> kernel = steppe.interop.to_blackjax(steppe.dmala(), steppe.Binary(4))
    >>> smc = blackjax.tempered_smc(
    ...     lambda bits: 0.0,  # the uniform distribution to begin with
    ...     lambda bits: jnp.sum(bits),
    ...     kernel.step,
    ...     kernel.init,
    ...     mcmc_parameters={"step_size": jnp.asarray([0.5])},
    ...     resampling_fn=blackjax.smc.resampling.systematic,
    ...     num_mcmc_steps=5,
    ... )
    >>> state = smc.init(steppe.Binary(4).draw(jax.random.key(0), (50,)))
    >>> for β in (0.5, 1.0):
    ...     state, info = smc.step(jax.random.key(1), state, β)
    >>> state.particles.shape
    (50, 4)
    """

    def bound(log_density: LogDensity, numbers: dict[str, ArrayLike]) -> Sampler:
        return recipe.replace(**numbers).build(Target(log_density, domain), audit=False)

    def init(position: Array, log_density: LogDensity) -> SamplerState:
        return bound(log_density, {}).init(position)

    def step(
        key: Array, state: SamplerState, log_density: LogDensity, **numbers: ArrayLike
    ) -> tuple[SamplerState, StepInfo]:
        return bound(log_density, numbers).step(key, state)

    return BlackjaxMcmc(init, step)
