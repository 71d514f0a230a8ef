"""Everything known about the modes found, and the order in which they are shown."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.arguments import positive
from steppe.diagnostics.flatness import OneSiteGaps, basin_mass, local_entropy, local_entropy_enumerated
from steppe.diagnostics.neighbours import evaluations_per_table, gains
from steppe.diagnostics.states import map_states
from steppe.modes.merge import differing_sites, labels, pareto_front
from steppe.modes.result import FlatModes, Mode
from steppe.samplers.flip_fraction import coupling_variance_from_flip_fraction
from steppe.target import Target

FLIP_FRACTION = 0.1
NUM_PARTICLES, NUM_TEMPERATURES = 64, 32
# Up to this many states basins and entropies are summed exactly.
MAX_SUMMED = 2**16
# Local entropies are estimated for this many times as many modes as are returned.
SHORTLIST = 2


def default_variance(target: Target, given: float | None) -> float:
    """Return `η`: as given, or such that a tenth of the sites differ on flat ground."""
    unit = target.domain.squared_unit
    default = coupling_variance_from_flip_fraction(FLIP_FRACTION, squared_unit=unit)
    return positive("find_flat_modes", "coupling_variance", given, default)


def measured(
    target: Target,
    found: Any,
    gaps: OneSiteGaps,
    scores: np.ndarray,
    stands_for: np.ndarray,
    *,
    members: list[str],
    key: Array,
    num_modes: int,
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
    num_modes, ranked_by, coupling_variance
        As in `find_flat_modes`.
    """
    leaders = np.unique(stands_for)
    is_front = pareto_front(found.log_density[leaders], -gaps.mean_absolute[leaders])
    # The front first: a high mode that is rough must not be cut away by many that are low and smooth.
    leaders = leaders[np.lexsort((-scores[leaders], ~is_front))][: SHORTLIST * num_modes]
    entropy, error, cost = _entropies(target, found.states[leaders], coupling_variance, key)
    flatness = -gaps.mean_absolute[leaders] if ranked_by == "gap" else entropy
    is_front = pareto_front(found.log_density[leaders], flatness)
    ranks = scores[leaders] if ranked_by == "gap" else entropy
    shown = np.lexsort((-ranks, ~is_front))[:num_modes]
    shown = shown[np.argsort(-ranks[shown], kind="stable")]
    visits = np.stack([found.visits[stands_for == leader].sum(axis=0) for leader in leaders])
    mass, mass_error = _basin_masses(target, found, stands_for, leaders)
    names = labels(gaps.mean_absolute[leaders[shown]])
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
            local_entropy_error=float(error[i]),
            basin_mass=float(mass[i]),
            basin_mass_error=float(mass_error[i]),
            num_visits=int(visits[i].sum()),
            found_by=tuple(name for name, seen in zip(members, visits[i], strict=True) if seen),
            is_on_front=bool(is_front[i]),
            label=label,
        )
        for i, label in zip(shown, names, strict=True)
    )
    spent = found.num_evaluations + cost
    return FlatModes(modes, ranked_by, float(coupling_variance), spent, len(found.states))


def _entropies(
    target: Target, states: np.ndarray, coupling_variance: float, key: Array
) -> tuple[np.ndarray, np.ndarray, int]:
    """Local entropies, their errors, and what they cost; on orders the log-mass within one move."""
    domain = target.domain
    if not domain.is_site_product:
        values = map_states(_move_mass, target, states)
        return values, np.zeros(len(states)), len(states) * evaluations_per_table(target)
    if domain.num_states <= MAX_SUMMED:
        exact = local_entropy_enumerated(target, states, coupling_variance)
        return exact.value, exact.standard_error, domain.num_states
    estimate = local_entropy(
        target,
        states,
        coupling_variance,
        key,
        num_particles=NUM_PARTICLES,
        num_temperatures=NUM_TEMPERATURES,
        exact=False,
    )
    cost = len(states) * NUM_PARTICLES * NUM_TEMPERATURES
    return estimate.value, estimate.standard_error, cost


def _move_mass(target: Target, state: Array) -> Array:
    table, is_change = gains(target, state)
    around = jax.nn.logsumexp(jnp.where(is_change, table, -jnp.inf))
    return target.log_density(state) + jnp.logaddexp(0.0, around)


def _basin_masses(
    target: Target, found: Any, stands_for: np.ndarray, leaders: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mass that climbs to each mode or to one merged with it; else the share of plain chains."""
    if target.domain.is_site_product and target.domain.num_states <= MAX_SUMMED:
        basins = basin_mass(target)
        near = np.stack(
            [differing_sites(target.domain, found.states[leader], basins.modes) for leader in leaders]
        )
        owner = np.argmin(near, axis=0)  # of modes that no chain met, the nearest one found
        return np.bincount(owner, weights=basins.mass, minlength=len(leaders)), np.zeros(len(leaders))
    plain = np.array([found.visits[stands_for == leader, 0].sum() for leader in leaders], float)
    size = max(found.visits[:, 0].sum(), 1)
    shrunk = (plain + 2) / (size + 4)
    return plain / size, np.sqrt(shrunk * (1 - shrunk) / (size + 4))
