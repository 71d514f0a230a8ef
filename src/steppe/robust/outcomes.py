"""What positions are worth after fresh disturbances, with the error of that number."""

from typing import NamedTuple, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.compiling import pad_rows, quick_jit
from steppe.domain.structured import flatten_positions
from steppe.errors import TargetError
from steppe.robust.averages import Average
from steppe.robust.disturbances import Disturbance
from steppe.robust.read_disturbance import DisturbanceOptions, read_disturbance
from steppe.robust.risk import Risk
from steppe.target import Target
from steppe.validation import count, random_key

BATCH = 16


class Robustness(NamedTuple):
    """What positions are worth after a disturbance; the first axis counts positions.

    Attributes
    ----------
    value
        Risk of `U` after the disturbance.
    standard_error
        Of the value: 0 where it is exact, NaN where there is none (`"worst"` of draws).
    broken_fraction
        Fraction of disturbances that broke the constraint.
    log_density
        `U` before it.
    outcomes
        `U` after each disturbance, `(positions, disturbances)`, the same disturbances for all positions; NaN
        where one broke the constraint and does not count.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, steppe
    >>> target = steppe.targets.ising_lattice((4, 4), coupling=1.0)
    >>> after = steppe.measure_robustness(target, jnp.ones((1, 16)), key=jax.random.key(0), flips=1)
    >>> after.log_density.tolist(), after.value.tolist()  # every single flip breaks four bonds of 32
    ([32.0], [24.0])
    """

    value: np.ndarray
    standard_error: np.ndarray
    broken_fraction: np.ndarray
    log_density: np.ndarray
    outcomes: np.ndarray


@checked(TargetError)
def measure_robustness(
    target: Target,
    positions: ArrayLike,
    *,
    key: Array,
    risk: str = "mean",
    num_samples: int = 1000,
    **stated: Unpack[DisturbanceOptions],
) -> Robustness:
    """Evaluate positions after fresh disturbances.

    Parameters
    ----------
    target
        What they are positions of.
    positions
        One or several, `(number, *domain.shape)`.
    key
        Of the disturbances. Take another one than that with which the positions were chosen: what was best on
        some draws looks better on them than it is.
    flips, flip_rate, scenarios, scenario, disturb, repair, risk
        As in `robust`.
    num_samples
        How many disturbances; the cost is one evaluation for each and every position. Listed scenarios and
        single changes are all evaluated.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, steppe
    >>> target = steppe.Target(lambda bits: 5.0 * jnp.prod(bits) + jnp.sum(1 - bits), steppe.Binary(4))
    >>> both = jnp.stack([jnp.ones(4), jnp.zeros(4)])  # a sharp mode and a flat one
    >>> after = steppe.measure_robustness(target, both, key=jax.random.key(0), flips=1)
    >>> after.log_density.tolist()
    [5.0, 4.0]
    >>> after.value.tolist()
    [1.0, 3.0]
    """
    call = "measure_robustness"
    measure = Risk.read(f"{call}(risk=...)", risk)
    num = count(f"{call}(num_samples=...)", num_samples, 2, error=TargetError)
    disturbance = read_disturbance(call, target, stated)
    states = np.asarray(flatten_positions(target.domain, positions))
    if not target.domain.contains(states) or not states.size:
        raise TargetError(
            f"`{call}(positions=...)` must be states of {target.domain!r}; got an array of shape "
            f"{states.shape}."
        )
    states = states.reshape(-1, *target.domain.shape)
    return evaluate_after(target, states, disturbance, measure, random_key(call, key), num)


def evaluate_after(
    target: Target, states: np.ndarray, disturbance: Disturbance, risk: Risk, key: Array, num_samples: int
) -> Robustness:
    """Evaluate states after disturbances that `key` draws; exactly where there is a closed form."""
    average = disturbance.average(target, risk, key, num_samples)
    # Every row is evaluated after every disturbance, so few rows are padded to few.
    positions = jnp.asarray(pad_rows(states, 4), jnp.result_type(float))
    before, values, weights, found = (np.asarray(a)[: len(states)] for a in _evaluate(average, positions))
    is_counted = weights > 0
    is_error_known = not disturbance.is_exact
    errors = [
        risk.find_error(row[counts].astype(float)) if is_error_known else 0.0
        for row, counts in zip(values, is_counted, strict=True)
    ]
    broken = values == -np.inf
    size = np.maximum((is_counted | broken).sum(axis=1), 1)
    closed = disturbance.find_closed_form(target, risk)
    if closed is not None:
        found, errors = np.asarray(_evaluate_closed(closed, positions))[: len(states)], np.zeros(len(states))
    return Robustness(
        value=found.astype(float),
        standard_error=np.asarray(errors, float),
        broken_fraction=broken.sum(axis=1) / size,
        log_density=before.astype(float),
        outcomes=np.where(is_counted, values, np.nan),
    )


@quick_jit
def _evaluate(average: Average, states: Array) -> tuple[Array, Array, Array, Array]:
    def one(state: Array) -> tuple[Array, Array, Array, Array]:
        values, weights = average.outcomes(state)
        return average.base.log_density(state), values, weights, average.risk.summarize(values, weights)

    return jax.lax.map(one, states, batch_size=BATCH)


@quick_jit
def _evaluate_closed(target: Target, states: Array) -> Array:
    return jax.vmap(target.log_density)(states)
