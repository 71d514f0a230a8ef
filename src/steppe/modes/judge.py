"""Measures of the modes found: everything known about them, and the order in which they are shown."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.diagnostics.flatness import SingleSiteDifferences, local_entropy
from steppe.diagnostics.flatness.basins import basins_of_table, share_error
from steppe.diagnostics.flatness.log_tables import log_table, smooth
from steppe.diagnostics.neighbours import gains
from steppe.diagnostics.states import map_states
from steppe.errors import RunError
from steppe.kernel.cost import EvaluationCounter
from steppe.modes.flat_modes import FlatModes, Mode
from steppe.modes.local_search import Found, price_of_differences
from steppe.modes.merge import count_differing_sites, find_pareto_front, label_modes
from steppe.samplers.flip_fraction import coupling_variance_from_flip_fraction
from steppe.target import Target
from steppe.validation import positive

FLIP_FRACTION = 0.1
# As many particles as can be paid for, at least the fewest that have an error.
NUM_PARTICLES, NUM_TEMPERATURES = (64, 32, 16), 32
# Up to this many states basins and entropies are summed exactly.
MAX_SUMMED = 2**16
# Local entropies are estimated for this many times as many modes as are returned.
SHORTLIST = 2


class Measures(NamedTuple):
    """Statistics of modes, one entry each; the entropy is NaN where it was not measured."""

    entropy: np.ndarray
    entropy_error: np.ndarray
    mass: np.ndarray
    mass_error: np.ndarray


def default_variance(target: Target, given: float | None) -> float:
    """Return `η`: as given, or such that a tenth of the sites differ on flat ground."""
    unit = target.domain.squared_unit
    default = coupling_variance_from_flip_fraction(FLIP_FRACTION, squared_unit=unit)
    return positive("find_flat_modes(coupling_variance=...)", given, default)


def measure_modes(
    target: Target,
    found: Found,
    gaps: SingleSiteDifferences,
    scores: np.ndarray,
    stands_for: np.ndarray,
    *,
    members: list[str],
    key: Array,
    num_modes: int,
    counter: EvaluationCounter,
    ranked_by: str,
    coupling_variance: float,
) -> FlatModes:
    """Measure the modes that stand for the others, rank them, and keep the best.

    Parameters
    ----------
    target, found, gaps, scores
        What was found and how rough it is.
    stands_for
        For each mode the one it was merged into.
    members
        Names of the kinds of chains.
    key
        For estimates of the local entropy.
    counter
        Of evaluations.
    num_modes, ranked_by, coupling_variance
        As in `find_flat_modes`.
    """
    leaders = np.unique(stands_for)
    is_front = find_pareto_front(found.log_density[leaders], -gaps.mean_absolute[leaders])
    # The front first: a high mode that is rough must not be cut away by many that are low and smooth.
    leaders = leaders[np.lexsort((-scores[leaders], ~is_front))][: SHORTLIST * num_modes]
    measures = _measure(target, found, stands_for, leaders, coupling_variance, key, counter)
    if ranked_by == "local_entropy":
        leaders, measures = _with_entropy(leaders, measures, counter.num_left)
    entropy = measures.entropy
    flatness = -gaps.mean_absolute[leaders] if ranked_by == "gap" else entropy
    is_front = find_pareto_front(found.log_density[leaders], flatness)
    ranks = scores[leaders] if ranked_by == "gap" else entropy
    shown = np.lexsort((-ranks, ~is_front))[:num_modes]
    shown = shown[np.argsort(-ranks[shown], kind="stable")]
    visits = np.stack([found.visits[stands_for == leader].sum(axis=0) for leader in leaders])
    names = label_modes(gaps.mean_absolute[leaders[shown]])
    modes = tuple(
        Mode(
            position=found.states[leaders[i]],
            levels=np.asarray(target.domain.to_levels(jnp.asarray(found.states[leaders[i]]))),
            log_density=float(found.log_density[leaders[i]]),
            roughness=float(gaps.mean_absolute[leaders[i]]),
            max_drop=float(gaps.max_drop[leaders[i]]),
            share_within=float(gaps.share_within[leaders[i]]),
            score=float(ranks[i]),
            local_entropy=float(entropy[i]),
            local_entropy_error=float(measures.entropy_error[i]),
            basin_mass=float(measures.mass[i]),
            basin_mass_error=float(measures.mass_error[i]),
            num_visits=int(visits[i].sum()),
            found_by=tuple(name for name, seen in zip(members, visits[i], strict=True) if seen),
            is_on_front=bool(is_front[i]),
            label=label,
        )
        for i, label in zip(shown, names, strict=True)
    )
    return FlatModes(modes, ranked_by, float(coupling_variance), counter.num_made, len(found.states))


def _with_entropy(leaders: np.ndarray, measures: Measures, budget: int) -> tuple[np.ndarray, Measures]:
    """Leave out modes that cannot be ranked because their entropy could not be paid for."""
    is_known = ~np.isnan(measures.entropy)
    if not is_known.any():
        raise RunError(
            f"`find_flat_modes(flatness='local_entropy')` has {budget} evaluations left, too few to estimate "
            "one local entropy. Raise `budget`, or rank by 'gap'."
        )
    kept = measures._replace(
        entropy=measures.entropy[is_known],
        entropy_error=measures.entropy_error[is_known],
        mass=measures.mass[is_known],
        mass_error=measures.mass_error[is_known],
    )
    return leaders[is_known], kept


def _measure(
    target: Target,
    found: Found,
    stands_for: np.ndarray,
    leaders: np.ndarray,
    coupling_variance: float,
    key: Array,
    counter: EvaluationCounter,
) -> Measures:
    """Local entropies and basins: exact where all states can be paid for, else estimates."""
    domain, states = target.domain, found.states[leaders]
    if domain.is_site_product and domain.num_states <= min(MAX_SUMMED, counter.num_left):
        counter.record(values=domain.num_states)
        return _sum_exactly(target, states, coupling_variance)
    plain = np.array([found.visits[stands_for == leader, 0].sum() for leader in leaders], float)
    size = max(found.visits[:, 0].sum(), 1)
    entropy, error = _estimate_entropies(target, states, coupling_variance, key, counter)
    return Measures(entropy, error, plain / size, share_error(plain / size, size))


def _sum_exactly(target: Target, states: np.ndarray, coupling_variance: float) -> Measures:
    """Exact statistics from a table of all states; a mode that no chain met goes to the nearest one found."""
    domain, table = target.domain, log_table(target)
    index = np.asarray(domain.index(jnp.asarray(states, jnp.result_type(float))))
    entropy = smooth(table, domain, coupling_variance).ravel()[index]
    basins = basins_of_table(target, table)
    near = np.stack([count_differing_sites(domain, state, basins.modes) for state in states])
    mass = np.bincount(np.argmin(near, axis=0), weights=basins.mass, minlength=len(states))
    return Measures(entropy, np.zeros(len(states)), mass, np.zeros(len(states)))


def _estimate_entropies(
    target: Target, states: np.ndarray, coupling_variance: float, key: Array, counter: EvaluationCounter
) -> tuple[np.ndarray, np.ndarray]:
    """Local entropies of the first states that can be paid for, and their errors.

    On permutations it is the log-mass within one move.
    """
    values, errors = np.full((2, len(states)), np.nan)
    if not target.domain.is_site_product:
        size = min(len(states), counter.num_left // price_of_differences(counter))
        if size:
            values[:size], errors[:size] = map_states(_move_mass, target, states[:size]), 0.0
        counter.record(values=size, tables=size)
        return values, errors
    prices = {num: _price(target, counter, num) for num in NUM_PARTICLES}
    fitting = (num for num in NUM_PARTICLES if len(states) * prices[num] <= counter.num_left)
    particles = next(fitting, NUM_PARTICLES[-1])
    size = min(len(states), counter.num_left // prices[particles])
    if size:
        estimate = local_entropy(
            target,
            states[:size],
            coupling_variance,
            key,
            num_particles=particles,
            num_temperatures=NUM_TEMPERATURES,
            exact=False,
        )
        values[:size], errors[:size] = estimate.value, estimate.standard_error
    counter.record(values=size * prices[particles])
    return values, errors


def _price(target: Target, counter: EvaluationCounter, num_particles: int) -> int:
    """Evaluations of one estimate: the state, then every particle at every temperature."""
    num_states = 1 + num_particles * NUM_TEMPERATURES
    return counter.price(values=num_states, tables=num_states if target.has_differences else 0)


def _move_mass(target: Target, state: Array) -> Array:
    table, is_change = gains(target, state)
    around = jax.nn.logsumexp(jnp.where(is_change, table, -jnp.inf))
    return target.log_density(state) + jnp.logaddexp(0.0, around)
