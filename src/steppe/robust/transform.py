"""`robust`: from a target and a disturbance to the target of what is left after it."""

from typing import Unpack

import jax
from jax import Array

from steppe.arguments import checked
from steppe.errors import TargetError
from steppe.robust.read_disturbance import DisturbanceOptions, read_disturbance
from steppe.robust.risk import Risk
from steppe.target import Target
from steppe.validation import count, random_key

DEFAULT_SAMPLES = 32


@checked(TargetError)
def robust(
    target: Target,
    *,
    risk: str = "mean",
    num_samples: int = DEFAULT_SAMPLES,
    key: Array | None = None,
    **stated: Unpack[DisturbanceOptions],
) -> Target:
    """Target whose log-density is what `U` is worth after a disturbance.

    Exactly one disturbance is stated. Every sampler, annealer and diagnostic takes the result.

    Parameters
    ----------
    target
        What is disturbed.
    flips
        `k`: so many sites, all choices equally likely, take random other levels. On permutations: so many
        random moves (swap, reversal, insertion).
    flip_rate
        `p ∈ (0, 1]`, one number or one per site: every site takes a random other level with this probability.
    scenarios
        Targets on the same domain of which one will be the true one; all equally likely.
    scenario
        `scenario(key) → Target`: draws one. Its numbers must be arrays of the target, so that it compiles
        once.
    disturb
        `disturb(key, position) → position`: your own disturbance of a position.
    repair
        `repair(position, scenario) → position`: what you would do once it has happened. Where positions are
        disturbed, the scenario is the target itself.
    risk
        Which number is made of the values: `"mean"`, `"quantile:0.05"` (exceeded in 95 % of all cases),
        `"cvar:0.1"` (mean of the worst 10 %) or `"worst"`.
    num_samples
        How many disturbances are drawn, where they are drawn.
    key
        Of those draws; the same key gives the same target.

    Notes
    -----
    Where `U` is quadratic (`Pairwise`: Ising, Potts, cuts, `qubo`), the mean under `flips` or `flip_rate` is
    quadratic again, with damped couplings, and exact: it costs what the target costs, and every sampler of
    bonds applies. Where `U` is declared multilinear, the mean under `flip_rate` or `flips=1` is exact and
    costs one evaluation. `flips=1` is exact for every target and risk: a table of differences. Else
    `num_samples` disturbances are drawn once and meet every position; an evaluation costs `num_samples`
    evaluations, and the result estimates the risk with the error that its method `standard_error(position)`
    states for the mean. Choose with it, then judge the choice by `measure_robustness` on fresh disturbances.

    Gradient, differences and the incremental form are derived for flips and for scenarios without repair.

    Flips that break a constraint do not happen: only the others count. A scenario, or a disturbance of your
    own, in which a position is not valid makes its value `−inf`; `repair` mends it.

    Examples
    --------
    >>> import jax.numpy as jnp, steppe
    >>> target = steppe.Target(lambda bits: jnp.prod(bits), steppe.Binary(2), multilinear=True)
    >>> robust = steppe.robust(target, flip_rate=0.25)
    >>> float(robust.log_density(jnp.ones(2)))  # both bits stay with probability 0.75²
    0.5625
    """
    call = "robust"
    measure = Risk.read(f"{call}(risk=...)", risk)
    num = count(f"{call}(num_samples=...)", num_samples, 2, error=TargetError)
    disturbance = read_disturbance(call, target, stated)
    closed = disturbance.find_closed_form(target, measure)
    if closed is not None:
        return closed
    drawn_from = jax.random.key(0) if key is None else random_key(call, key)
    return disturbance.average(target, measure, drawn_from, num)
