"""Local entropy by annealed importance sampling: any dimension, an unbiased sum, an honest error.

Notation: with `C(θ') = |θ' − θ|²/(2η)` the wanted sum is over `exp{U(θ') − C(θ')}`. Let `H(θ')` be half the
one-site differences of `U` at `θ`, summed over the sites in which `θ'` differs. Particles are drawn from the
product distribution `exp(H − C)`, whose sum is known, and walk to `exp(U − C)` through `exp{H − C + β(U −
U(θ) − H)}`,
`β = 0 … 1`. Each walk has a weight whose mean is the ratio of the two sums, whatever its moves do as long
as they leave the distribution at `β` invariant.

Half the differences, and at most one nat per site, is a compromise found by measurement: from `H = 0`
particles start too far off in high dimension; from the full differences they start too close to `θ`, rarely
see another mode, and state errors that are too small.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.diagnostics.flatness.exact_entropy import LocalEntropy, positive_variance
from steppe.diagnostics.flatness.log_tables import log_table, normalize_table, smooth
from steppe.diagnostics.states import Progress, is_exact_wanted, map_states, means
from steppe.domain import Domain
from steppe.errors import TargetError
from steppe.kernel.density import subtract_sums
from steppe.kernel.distributions import Flips, Levels
from steppe.kernel.keys import Keys
from steppe.random import draws
from steppe.target.log_density import Target
from steppe.validation import count

REFERENCE_SHARE = 0.5
MAX_REFERENCE = 1.0

# How much of a state a move redraws: all of it where sites are nearly independent, less where they are not.
REDRAWN_SHARES = (1.0, 0.5, 0.25)

NORMAL_975 = 1.959964


class _Path(NamedTuple):
    """What does not change along a walk: `H − C` and `H` of every site and level."""

    origin: Array
    log_density: Array
    reference: Array
    half_differences: Array


class _Particle(NamedTuple):
    position: Array
    excess: Array  # U − U(origin) − H
    table: Array  # differences of U, exact or to first order


@checked(TargetError)
def local_entropy(
    target: Target,
    positions: ArrayLike,
    coupling_variance: float,
    key: Array,
    *,
    num_particles: int = 128,
    num_temperatures: int = 64,
    exact: bool | None = None,
    batch_size: int = 4,
    progress: Progress | None = None,
) -> LocalEntropy:
    """Estimate `F(θ; η) = log Σ_θ' exp{U(θ') − |θ' − θ|²/(2η)}` by annealed importance sampling.

    Parameters
    ----------
    target
        The log-density. Moves are guided by its own table of differences, or else by its gradient.
    positions
        States, of shape `(..., *domain.shape)`.
    coupling_variance
        `η > 0`. On flat ground a bit differs from the center with probability `1/(1 + exp(1/(2η)))`.
    key
        Random key.
    num_particles
        Independent walks per state, at least 16. The error falls as one over their square root.
    num_temperatures
        States per walk, at least 1 (plain importance sampling). More make weights more equal: raise it when
        `effective_size` is a small fraction of `num_particles`.
    exact, batch_size, progress
        As in `single_site_differences`.

    Returns
    -------
    LocalEntropy
        `exp(value)` is unbiased; the interval is that of a mean of skewed weights (Hall's transformation).

    Notes
    -----
    Cost: `num_particles × num_temperatures` evaluations per state.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from steppe.diagnostics.flatness import local_entropy, local_entropy_enumerated
    >>> from steppe.targets import paper_bernoulli
    >>> target, state = paper_bernoulli(), jnp.ones((1, 4))
    >>> estimate = local_entropy(target, state, 1.0, jax.random.key(0))
    >>> exact = local_entropy_enumerated(target, state, 1.0).value
    >>> bool((estimate.lower <= exact).all() and (exact <= estimate.upper).all())
    True
    """
    name = "local_entropy"
    η = positive_variance(name, coupling_variance)
    count(f"{name}(num_particles=...)", num_particles, 16, remedy="With fewer its error means nothing.")
    sizes = (num_particles, count(f"{name}(num_temperatures=...)", num_temperatures))
    statistics = map_states(
        _estimate, target, positions, η, keys=key, options=sizes, batch_size=batch_size, progress=progress
    )
    expected = None
    if is_exact_wanted(target, exact):
        table = log_table(target)
        everywhere = smooth(table, target.domain, η)
        expected = means(normalize_table(table), value=everywhere.ravel(), log_density=table.ravel())
    return _with_interval(statistics, num_particles, expected)


def _with_interval(
    statistics: dict[str, np.ndarray], num_particles: int, expected: dict[str, float] | None
) -> LocalEntropy:
    value, log_density = (np.asarray(statistics[name], float) for name in ("value", "log_density"))
    error, skewness = (np.asarray(statistics[name], float) for name in ("relative_error", "skewness"))
    quantile = NORMAL_975 + (NORMAL_975**3 + NORMAL_975) / (4 * (num_particles - 1))  # of Student's t
    shifts = [_untransform(sign * quantile, skewness, num_particles) for sign in (1, -1)]
    # Never narrower than the rounding of the sums the estimate is made of.
    rounding = 4 * np.finfo(statistics["value"].dtype).eps * np.maximum(np.abs(value), np.abs(log_density))
    with np.errstate(divide="ignore", invalid="ignore"):
        lower, upper = (np.log(np.maximum(1 - error * shift, 0)) for shift in shifts)
    return LocalEntropy(
        value=value,
        standard_error=np.hypot(error, rounding),
        lower=value + lower - rounding,
        upper=value + upper + rounding,
        effective_size=statistics["effective_size"],
        log_density=log_density,
        mean_log_density=float(np.mean(log_density)),
        exact_under_target=expected,
    )


def _untransform(quantile: float, skewness: np.ndarray, size: int) -> np.ndarray:
    """Quantile of the studentised mean of a skewed sample: the inverse of Hall's cubic transformation."""
    bend = np.where(np.abs(skewness) > 1e-3, skewness, 1e-3) / np.sqrt(size)
    return 3 / bend * (np.cbrt(1 + bend * (quantile - bend / 6)) - 1)


# ---- one state -------------------------------------------------------------------------------------------


def _estimate(
    target: Target,
    position: Array,
    key: Array,
    coupling_variance: Array,
    num_particles: int,
    num_temperatures: int,
) -> dict[str, Array]:
    path = _path(target, position, coupling_variance)
    keys = jax.random.split(key, num_particles)
    log_weights = jax.vmap(lambda one: _walk(target, path, one, num_temperatures))(keys)
    log_sum = jnp.sum(jax.nn.logsumexp(path.reference, axis=1))
    top = jnp.max(log_weights)
    weights = jnp.exp(log_weights - jnp.where(jnp.isfinite(top), top, 0))
    mean, spread = jnp.mean(weights), jnp.std(weights, ddof=1)
    return {
        "value": path.log_density + log_sum + top + jnp.log(mean),
        "relative_error": spread / mean / jnp.sqrt(num_particles),
        "skewness": jnp.mean((weights - mean) ** 3) / jnp.maximum(spread, 1e-30) ** 3,
        "effective_size": jnp.sum(weights) ** 2 / jnp.sum(weights**2),
        "log_density": path.log_density,
    }


def _path(target: Target, position: Array, coupling_variance: Array) -> _Path:
    domain = target.domain
    value, table = _evaluate(target, position)
    # Where a single change is impossible two together may not be: leave a way there.
    halves = REFERENCE_SHARE * jnp.where(jnp.isfinite(table), table, 0)
    halves = jnp.clip(halves, -MAX_REFERENCE, MAX_REFERENCE)
    reference = halves - domain.squared_jumps(position) / (2 * coupling_variance)
    return _Path(position, value, jnp.where(domain.level_mask, reference, -jnp.inf), halves)


def _evaluate(target: Target, position: Array) -> tuple[Array, Array]:
    if target.has_differences:
        return target.log_density(position), target.differences(position)
    value, gradient = target.value_and_grad(position)
    table = target.domain.slopes(position, gradient)
    return value, jnp.where(target.domain.level_mask, table, -jnp.inf)


def _walk(target: Target, path: _Path, key: Array, num_temperatures: int) -> Array:
    """Log-weight of one particle: `Σ (β' − β) · excess` over the states met on the way from 0 to 1."""
    key_start, key_moves = jax.random.split(key)
    start = Levels(target.domain, path.reference).sample(_position_keys(key_start))
    betas = jnp.arange(1, num_temperatures) / num_temperatures
    fractions = jnp.asarray(REDRAWN_SHARES)[jnp.arange(num_temperatures - 1) % len(REDRAWN_SHARES)]

    def step(particle: _Particle, inputs: tuple[Array, ...]) -> tuple[_Particle, Array]:
        moved = _move(target, path, particle, *inputs)
        return moved, moved.excess

    first = _particle(target, path, start)
    keys = jax.random.split(key_moves, (num_temperatures - 1, 2))
    _, others = jax.lax.scan(step, first, (keys, betas, fractions))
    return (first.excess + jnp.sum(others)) / num_temperatures


def _particle(target: Target, path: _Path, position: Array) -> _Particle:
    value, table = _evaluate(target, position)
    halves = _at(target.domain, position, path.half_differences)
    return _Particle(position, value - path.log_density - jnp.sum(halves), table)


def _move(
    target: Target, path: _Path, particle: _Particle, keys: Array, beta: Array, fraction: Array
) -> _Particle:
    """One Metropolis move that leaves the distribution at `β` invariant."""
    domain, (key_position, key_accept) = target.domain, keys

    def proposal(state: _Particle) -> Flips | Levels:
        guide = path.reference + beta * (state.table - path.half_differences)
        return _redraw(domain, state.position, guide, fraction)

    forward = proposal(particle)
    proposed = _particle(target, path, forward.sample(_position_keys(key_position)))
    gained = [
        _at(domain, proposed.position, path.reference),
        *proposal(proposed).log_prob_terms(particle.position),
    ]
    paid = [_at(domain, particle.position, path.reference), *forward.log_prob_terms(proposed.position)]
    rise = beta * (proposed.excess - particle.excess)
    is_accepted = draws.log_uniform(key_accept) < rise + subtract_sums(gained, paid)
    return jax.tree.map(lambda new, old: jnp.where(is_accepted, new, old), proposed, particle)


def _position_keys(key: Array) -> Keys:
    return Keys(center=key, position=key, accept=key)  # only the position is drawn


def _redraw(domain: Domain, position: Array, table: Array, fraction: Array) -> Flips | Levels:
    """Every site, with probability `share`, drawn afresh from `softmax` of its row."""
    stays = domain.squared_jumps(position) == 0
    if domain.is_two_level:
        gain = jnp.sum(jnp.where(stays, -table, table), axis=1)
        leave = jnp.log(fraction) - jax.nn.softplus(-gain)
        return Flips(domain, position, leave - jnp.log(1 - fraction + fraction * jax.nn.sigmoid(-gain)))
    log_probs = jnp.log(fraction) + jax.nn.log_softmax(table, axis=1)
    return Levels(domain, jnp.where(stays, jnp.logaddexp(jnp.log1p(-fraction), log_probs), log_probs))


def _at(domain: Domain, position: Array, table: Array) -> Array:
    """Entries of a site × level table at the levels of a position."""
    return jnp.sum(jnp.where(domain.squared_jumps(position) == 0, table, 0), axis=1)
