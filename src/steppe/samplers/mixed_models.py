"""Mixed models: a discrete recipe beside Hamiltonian Monte Carlo of real coordinates."""

import dataclasses

from steppe.arguments import checked
from steppe.errors import CompositionError, RecipeError
from steppe.kernel.blocks.reals import GivenReals, HamiltonianBlock
from steppe.kernel.compose import Recipe, recipe
from steppe.samplers.baselines import gibbs
from steppe.validation import count, positive

STEP_SIZE = 0.1
NUM_LEAPFROG = 10


@checked(RecipeError)
def mixed(
    base: Recipe | None = None, *, real_step_size: float = STEP_SIZE, num_leapfrog: int = NUM_LEAPFROG
) -> Recipe:
    """Sample discrete sites and real coordinates in turn, on a `Product` with `Real` parts.

    Parameters
    ----------
    base
        How the discrete sites move given the real coordinates: any adjusted recipe of one block without
        center, `gibbs()` by default.
    real_step_size
        Step size of the leapfrog integrator, in units of the `scale` of each `Real` part. Warm-up adapts it
        to an acceptance rate of 0.8.
    num_leapfrog
        Leapfrog steps of a move of the real coordinates. One is the Metropolis-adjusted Langevin algorithm
        (MALA); more move further and cost an evaluation of the gradient each.

    Notes
    -----
    Stationary distribution: the joint distribution of sites and real coordinates exactly. A step moves the
    sites by the base, then the real coordinates by `blackjax.hmc` with a fixed diagonal of masses, which is
    not adapted: give every `Real` part its `scale`. Where sites are labels of components, relabelled
    components are as likely (*label switching*): compare quantities that do not depend on labels, or order
    the components in the log-density. Needs `pip install "steppe[blackjax]"`.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, steppe
    >>> data = jnp.asarray([-2.1, -1.9, 2.0, 2.2])
    >>> def log_density(x):
    ...     means = jnp.where(x["z"] == 1, x["mu"][1], x["mu"][0])
    ...     return -0.5 * jnp.sum((data - means) ** 2) - 0.5 * jnp.sum((x["mu"] / 3) ** 2)
    >>> target = steppe.Target(log_density, steppe.Product(z=steppe.Binary(4), mu=steppe.Real(2, scale=3.0)))
    >>> run = steppe.sample(target, steppe.mixed(), key=jax.random.key(0), num_draws=100)
    >>> run.data.posterior["mu"].shape
    (4, 100, 2)
    """
    within = gibbs() if base is None else base
    is_fit = isinstance(within, Recipe) and within.is_adjusted and len(within.blocks) == 1
    if not is_fit or within.coupling.has_center or not within.penalty.is_null:
        raise CompositionError(
            "`mixed(base)` needs an adjusted recipe of one block without center, such as `gibbs()` or "
            f"`dmala()`; got {within!r}."
        )
    step_size = positive("mixed(real_step_size=...)", real_step_size)
    number = count("mixed(num_leapfrog=...)", num_leapfrog)
    made = recipe("mixed", GivenReals(within.blocks[0]), HamiltonianBlock(step_size, number))
    return dataclasses.replace(made, inverse_temperature=within.inverse_temperature)
