"""A table of probabilities over bits, extended multilinearly so that it has a gradient."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.arguments import checked
from steppe.domain import Binary
from steppe.errors import TargetError
from steppe.target import Target

MAX_BITS = 20

# Probabilities of 0000, 0001, …, 1111 as the authors' code has them; the paper prints five decimals.
PAPER_PROBABILITIES = (
    0.07688966, 0.04725621, 0.125, 0.01667631, 0.08688745, 0.07688966, 0.07688966, 0.16756987,
    0.04725621, 0.05825, 0.01667631, 0.04725621, 0.07688966, 0.04725621, 0.019004, 0.01335262,
)  # fmt: skip


class Modes(NamedTuple):
    """States a table target is known for, as tuples of bits."""

    flat: tuple[tuple[int, ...], ...]
    sharp: tuple[tuple[int, ...], ...]


PAPER_MODES = Modes(flat=((0, 1, 0, 0), (1, 0, 0, 1)), sharp=((0, 0, 1, 0), (0, 1, 1, 1)))


class BernoulliTable(Target):
    """Log-probabilities of all states of some bits, interpolated multilinearly.

    Attributes
    ----------
    domain
        The bits.
    log_table
        One axis of length 2 per bit.
    """

    log_table: Array

    def log_density(self, position: Array) -> Array:
        """Interpolate: contracts the first axis each time, `2**d + 2**(d-1) + …` operations."""
        table = self.log_table
        for bit in position:
            table = (1 - bit) * table[0] + bit * table[1]
        return table

    def value_and_grad(self, position: Array) -> tuple[Array, Array]:
        """Look up: at a corner the gradient is the exact difference between the ends of each axis."""
        return self._look_up(position)

    def differences(self, position: Array) -> Array:
        """Exact differences of all flips."""
        slopes = self._look_up(position)[1]
        return slopes[:, None] * (jnp.arange(2) - position[:, None])

    def _look_up(self, position: Array) -> tuple[Array, Array]:
        bits, strides = position.astype(jnp.int32), 2 ** np.arange(position.size)[::-1]
        here, table = jnp.sum(bits * strides), self.log_table.reshape(-1)
        value, neighbours = table[here], table[here ^ strides]
        return value, (neighbours - value) * (1 - 2 * position)


@checked(TargetError)
def bernoulli_table(probabilities: Sequence[float]) -> BernoulliTable:
    """Target with a given probability for every state of `d ≤ 20` bits.

    `U` is the multilinear interpolation of the log-probabilities, so that `gradient · flip` is the exact
    difference of a flip.

    Parameters
    ----------
    probabilities
        `2**d` positive numbers in lexicographic order, first bit slowest. They need not sum to one.

    Examples
    --------
    >>> import jax, numpy as np
    >>> from steppe.targets import bernoulli_table
    >>> target = bernoulli_table([0.4, 0.1, 0.2, 0.3])  # of 00, 01, 10, 11
    >>> [round(float(np.exp(target.log_density(bits))), 3) for bits in target.domain.enumerate()]
    [0.4, 0.1, 0.2, 0.3]
    """
    table = np.asarray(probabilities, float)
    num_bits = int(table.size).bit_length() - 1
    if table.ndim != 1 or table.size != 2**num_bits or not 1 <= num_bits <= MAX_BITS:
        raise TargetError(
            f"`probabilities` must be a list of 2**d numbers, d from 1 to {MAX_BITS}; got an array of "
            f"shape {table.shape}."
        )
    if not (np.isfinite(table).all() and (table > 0).all()):
        worst = int(np.argmin(np.where(np.isfinite(table), table, -np.inf)))
        raise TargetError(
            f"`probabilities` must be positive and finite; got {table[worst]} at index {worst}. Leave out "
            "impossible states by a constraint (`Target(..., is_valid=...)`)."
        )
    log_table = np.log(table).reshape((2,) * num_bits).astype(jnp.result_type(float))
    return BernoulliTable(Binary(num_bits), jnp.asarray(log_table))


def paper_bernoulli() -> BernoulliTable:
    """Four bits, two flat and two sharp modes (`PAPER_MODES`): the paper's first experiment.

    Examples
    --------
    >>> import jax, numpy as np
    >>> from steppe.targets import paper_bernoulli
    >>> target = paper_bernoulli()
    >>> U = jax.vmap(target.log_density)(target.domain.enumerate())
    >>> np.exp(np.sort(U)[::-1][:4]).round(3).astype(str).tolist()  # the four most likely states
    ['0.168', '0.125', '0.087', '0.077']
    """
    return bernoulli_table(PAPER_PROBABILITIES)
