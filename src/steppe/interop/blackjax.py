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
