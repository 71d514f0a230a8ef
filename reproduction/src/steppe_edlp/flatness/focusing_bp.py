"""Focusing belief propagation for binary perceptrons and committees: the reference solver of flat solutions.

Baldassi et al. (2016), *Unreasonable effectiveness of learning neural networks*, PNAS 113, E7655. Weights
send messages to patterns and back; every weight is also tied with strength `γ` to a center that `y` replicas
share, which adds one field per weight. `γ` and `y` rise until the signs of the magnetisations are a solution.

Labels are folded into the patterns, `x = y ξ`, so every pattern asks for a positive majority of votes. A unit
votes by the sign of `w · x`; a sum of 0 is a negative vote.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.stats import norm
from jax.typing import ArrayLike

Sums = Literal["gaussian", "exact"]

# Fields beyond this are certainty in single precision.
MAX_FIELD = 15.0
INITIAL_SPREAD = 0.01


class Beliefs(NamedTuple):
    """What belief propagation knows.

    Attributes
    ----------
    fields
        Half log-odds that every pattern sends to every weight: units × patterns × inputs.
    focus
        The same from the center: units × inputs.
    """

    fields: Array
    focus: Array

    @property
    def magnetizations(self) -> Array:
        """Mean of every weight, units × inputs."""
        return jnp.tanh(jnp.sum(self.fields, axis=1) + self.focus)


class Solution(NamedTuple):
    """Where focusing ended.

    Attributes
    ----------
    weights
        ±1, units × inputs.
    errors
        How many patterns they get wrong.
    num_sweeps
        Sweeps over all messages that were made.
    """

    weights: Array
    errors: Array
    num_sweeps: Array


def fold_labels(patterns: ArrayLike, labels: ArrayLike, num_units: int = 1, tree: bool = False) -> Array:
    """Patterns times their labels as every unit sees them: units × patterns × inputs.

    Parameters
    ----------
    patterns, labels
        `ξ`, patterns × inputs, and `y = ±1`.
    num_units, tree
        Units, and whether each sees its own part of the inputs or all of them.
    """
    facing = jnp.asarray(labels, jnp.result_type(float))[:, None] * jnp.asarray(patterns)
    if tree:
        return facing.reshape(len(facing), num_units, -1).swapaxes(0, 1)
    return jnp.broadcast_to(facing, (num_units, *facing.shape))


def count_errors(facing: Array, weights: Array) -> Array:
    """How many patterns the majority gets wrong."""
    votes = jnp.einsum("kpn,kn->kp", facing, weights) > 0
    return jnp.sum(2 * jnp.sum(votes, axis=0) <= len(facing))


def begin(key: Array, facing: Array) -> Beliefs:
    """Small random fields: units that see the same must differ somewhere."""
    fields = INITIAL_SPREAD * jax.random.normal(key, facing.shape)
    return Beliefs(fields, jnp.zeros((facing.shape[0], facing.shape[2])))


def sweep(
    facing: Array,
    beliefs: Beliefs,
    *,
    coupling: ArrayLike = 0.0,
    replicas: ArrayLike = 1.0,
    noise: ArrayLike = 0.0,
    damping: ArrayLike = 0.0,
    sums: Sums = "gaussian",
) -> Beliefs:
    """Update all messages once.

    Parameters
    ----------
    facing
        Patterns as `fold_labels` makes them.
    beliefs
        Messages before.
    coupling, replicas
        `tanh γ ∈ [0, 1]` and `y ≥ 1`; with either at its least this is plain belief propagation.
    noise
        Probability that a label is wrong.
    damping
        Fraction of the old messages that is kept.
    sums
        `"gaussian"`: sums over many weights are normal, the error is of order `1/√inputs` per message and of
        first order in one weight. `"exact"`: sums are convolved, for patterns in −1, 0, 1 and few inputs;
        exact where patterns form a tree.
    """
    arrived = jnp.sum(beliefs.fields, axis=1)
    cavity = jnp.tanh((arrived + beliefs.focus)[:, None] - beliefs.fields)
    send = _send_gaussian if sums == "gaussian" else _send_exact
    fields = jnp.clip(send(facing, cavity, noise), -MAX_FIELD, MAX_FIELD)
    focus = _focus(jnp.tanh(arrived), coupling, replicas)
    keep = jnp.asarray(damping)
    return Beliefs(keep * beliefs.fields + (1 - keep) * fields, keep * beliefs.focus + (1 - keep) * focus)


def _focus(arrived: Array, coupling: ArrayLike, replicas: ArrayLike) -> Array:
    """`atanh{tanh[(y − 1) atanh(m tanh γ)] tanh γ}`: the field from the center that `y − 1` others tie."""
    tied = jnp.arctanh(jnp.clip(arrived * coupling, -1 + 1e-7, 1 - 1e-7))
    pulled = jnp.tanh((jnp.asarray(replicas) - 1) * tied) * coupling
    return jnp.arctanh(jnp.clip(pulled, -1 + 1e-7, 1 - 1e-7))


def _send_gaussian(facing: Array, cavity: Array, noise: ArrayLike) -> Array:
    """`u = x G − x² m G′`, `G` the derivative of the log-probability of a right answer in the mean sum."""
    mean = jnp.sum(facing * cavity, axis=2)
    scale = jnp.sqrt(jnp.maximum(jnp.sum(jnp.square(facing) * (1 - jnp.square(cavity)), axis=2), 1e-6))
    z = mean / scale
    right, wrong = _weigh_votes(norm.cdf(z), noise)
    log_answer = jnp.logaddexp(jnp.log(right) + norm.logcdf(z), jnp.log(wrong) + norm.logcdf(-z))
    slope = (right - wrong) * jnp.exp(norm.logpdf(z) - log_answer) / scale
    curvature = -slope * (z / scale + slope)
    return facing * (slope[..., None] - facing * cavity * curvature[..., None])


def _send_exact(facing: Array, cavity: Array, noise: ArrayLike) -> Array:
    """Half log-odds of a right answer given a weight, from the distribution of the sum of the others."""
    sites = jnp.arange(facing.shape[2])

    def read(row: Array, means: Array) -> tuple[Array, Array, Array]:
        whole = _convolve(row, means)
        others = jax.vmap(lambda site: _convolve(row.at[site].set(0), means))(sites)
        sums = jnp.arange(whole.size) - row.size
        up = jnp.sum(jnp.where(sums + row[:, None] > 0, others, 0), axis=1)
        down = jnp.sum(jnp.where(sums - row[:, None] > 0, others, 0), axis=1)
        return jnp.sum(jnp.where(sums > 0, whole, 0)), up, down

    positive, up, down = jax.vmap(jax.vmap(read))(facing, cavity)
    right, wrong = _weigh_votes(positive, noise)
    right, wrong = right[..., None], wrong[..., None]
    odds = jnp.log(wrong + (right - wrong) * up) - jnp.log(wrong + (right - wrong) * down)
    return jnp.where(facing == 0, 0.0, odds / 2)


def _convolve(row: Array, means: Array) -> Array:
    """Distribution of `Σ x_i w_i` over `−n … n` for independent weights, `x` in −1, 0, 1."""

    def add(table: Array, site: tuple[Array, Array]) -> tuple[Array, None]:
        x, mean = site
        up = (1 + x * mean) / 2
        moved = up * jnp.roll(table, 1) + (1 - up) * jnp.roll(table, -1)
        return jnp.where(x == 0, table, moved), None

    start = jnp.zeros(2 * row.size + 1, means.dtype).at[row.size].set(1.0)
    return jax.lax.scan(add, start, (row, means))[0]


def _weigh_votes(positive: Array, noise: ArrayLike) -> tuple[Array, Array]:
    """Probability of a right answer if a unit votes for it, and if against; units × patterns."""
    num_units = len(positive)
    needed = (num_units + 1) // 2 if num_units % 2 else num_units // 2 + 1
    right, wrong = [], []
    for unit in range(num_units):
        table = [jnp.ones_like(positive[0])]
        for other in range(num_units):
            if other != unit:
                up = positive[other]
                table = [
                    (table[votes] * (1 - up) if votes < len(table) else 0)
                    + (table[votes - 1] * up if votes else 0)
                    for votes in range(len(table) + 1)
                ]
        right.append(sum(table[needed - 1 :], jnp.zeros_like(positive[0])))
        wrong.append(sum(table[needed:], jnp.zeros_like(positive[0])))
    wrongly = jnp.asarray(noise)
    soften = 1 - 2 * wrongly
    return wrongly + soften * jnp.stack(right), wrongly + soften * jnp.stack(wrong)


def solve(
    facing: Array,
    key: Array,
    *,
    num_rates: int = 100,
    sweeps_per_rate: int = 10,
    damping: float = 0.5,
    noise: float = 0.0,
) -> Solution:
    """Raise the focus until the signs of the magnetisations make no error, or to the end.

    Parameters
    ----------
    facing
        Patterns as `fold_labels` makes them.
    key
        Of the first messages.
    num_rates
        Steps of the rate `ρ` from 0 to 1: `tanh γ = √ρ` and `y = (2 − ρ)/(1 − ρ)`, the authors' "pseudo
        reinforcement".
    sweeps_per_rate
        Sweeps at each.
    damping
        As in `sweep`; all messages move at once, which oscillates without.
    noise
        As in `sweep`; needed where no weights get all patterns right.

    Notes
    -----
    The weights returned are the first without error, else those with the fewest.
    """
    return _solve(facing, key, num_rates, sweeps_per_rate, jnp.asarray(damping), jnp.asarray(noise))


class _Search(NamedTuple):
    beliefs: Beliefs
    best: Array
    errors: Array
    num_sweeps: Array


def _solve_from(
    facing: Array, key: Array, num_rates: int, sweeps_per_rate: int, damping: Array, noise: Array
) -> Solution:
    def raise_focus(search: _Search) -> _Search:
        rate = (search.num_sweeps // sweeps_per_rate) / num_rates
        beliefs = sweep(
            facing,
            search.beliefs,
            coupling=jnp.sqrt(rate),
            replicas=(2 - rate) / (1 - rate),
            damping=damping,
            noise=noise,
        )
        weights = jnp.where(beliefs.magnetizations >= 0, 1.0, -1.0)
        errors = count_errors(facing, weights)
        is_better = errors < search.errors
        best = jnp.where(is_better, weights, search.best)
        return _Search(beliefs, best, jnp.minimum(errors, search.errors), search.num_sweeps + 1)

    beliefs = begin(key, facing)
    nothing = jnp.ones(beliefs.focus.shape, beliefs.focus.dtype)
    start = _Search(beliefs, nothing, jnp.asarray(facing.shape[1] + 1), jnp.asarray(0))
    found = jax.lax.while_loop(
        lambda search: (search.errors > 0) & (search.num_sweeps < num_rates * sweeps_per_rate),
        raise_focus,
        start,
    )
    return Solution(found.best, found.errors, found.num_sweeps)


_solve = jax.jit(_solve_from, static_argnums=(2, 3))
