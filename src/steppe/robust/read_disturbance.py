"""Reading of a disturbance: what a user stated, tried at random positions and refused in sentences."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypedDict

import jax
import numpy as np
from jax import Array
from jax.tree_util import Partial
from jax.typing import ArrayLike

from steppe.domain import Domain
from steppe.errors import SteppeError, TargetError
from steppe.pytree import as_pytree
from steppe.robust.averages import Repair
from steppe.robust.disturbances import Disturbance, Flips, Moves, Own, Scenarios, stack_targets
from steppe.target import Target
from steppe.validation import call_back, count, real_array, refuse, shorten

# Random positions at which functions of the user are tried.
NUM_TRIED = 16


class DisturbanceOptions(TypedDict, total=False):
    """How a user states a disturbance: exactly one of the first five, and what is done afterwards."""

    flips: int | None
    flip_rate: ArrayLike | None
    scenarios: Sequence[Target] | None
    scenario: Callable[[Array], Target] | None
    disturb: Callable[[Array, Array], Array] | None
    repair: Repair | None


KINDS = ("flips", "flip_rate", "scenarios", "scenario", "disturb")


def read_disturbance(call: str, target: Target, options: DisturbanceOptions) -> Disturbance:
    """Check what a user stated and return the disturbance.

    Parameters
    ----------
    call
        The function that was called, for messages.
    target
        What is disturbed.
    options
        As they were given.
    """
    given = [name for name in KINDS if options.get(name) is not None]
    if len(given) != 1:
        listed = ", ".join(f"`{name}`" for name in KINDS)
        raise TargetError(
            f"`{call}(...)` needs exactly one disturbance, {listed}; got {' and '.join(given) or 'none'}. "
            "State the one you expect, for example `flip_rate=0.1`."
        )
    repair = _read_repair(call, target, options.get("repair"))
    if (flips := options.get("flips")) is not None:
        return _read_flips(call, target, flips, repair)
    if (rate := options.get("flip_rate")) is not None:
        return Flips(_read_rates(call, target, rate), None, repair)
    if (listed := options.get("scenarios")) is not None:
        return _read_list(call, target, listed, repair)
    if (scenario := options.get("scenario")) is not None:
        return _read_scenario(call, target, scenario, repair)
    disturb = options.get("disturb")
    assert disturb is not None
    own = Own(Partial(_OnFlat(target.domain), as_pytree(disturb)), repair)
    _try_own(call, target, own)
    return own


def _read_flips(call: str, target: Target, flips: int, repair: Repair | None) -> Disturbance:
    size = target.domain.num_sites
    number = count(f"{call}(flips=...)", flips, error=TargetError, remedy="")
    if not target.domain.is_site_product:
        if repair is not None:
            raise TargetError(
                f"`{call}(repair=...)` goes with `scenario`, `scenarios` or `disturb` on permutations; moves "
                "of `flips` lead to permutations, which need none."
            )
        return Moves(number)
    if number > size:
        raise refuse(f"{call}(flips=...)", f"at most the number of sites, {size}", flips, TargetError)
    return Flips(None, number, repair)


def _read_rates(call: str, target: Target, rate: ArrayLike) -> np.ndarray:
    domain, given = target.domain, f"{call}(flip_rate=...)"
    if not domain.is_site_product:
        raise TargetError(
            f"`{given}` has no meaning on {domain!r}, where one site cannot change alone. Use `flips=1`, one "
            "random move."
        )
    rates = np.asarray(real_array(given, rate), float)
    if rates.shape not in ((), (domain.num_sites,), domain.site_shape):
        raise TargetError(
            f"`{given}` must be one number or one per site, of shape ({domain.num_sites},); got "
            f"{rates.shape}."
        )
    if (rates < 0).any() or (rates > 1).any() or not (rates > 0).any():
        raise refuse(
            given, "a probability in (0, 1], or one per site in [0, 1] and not all 0", rate, TargetError
        )
    return np.broadcast_to(rates.reshape(-1), (domain.num_sites,))


class _OnFlat(NamedTuple):
    """Call `disturb(key, position)` of the user with the position it takes; equal for equal domains."""

    domain: Domain

    def __call__(self, function: Callable[..., Array], key: Array, position: Array) -> Array:
        return self.domain.flatten(function(key, self.domain.unflatten(position)))


class _RepairFlat(NamedTuple):
    """The same for `repair(position, scenario)`."""

    domain: Domain

    def __call__(self, function: Callable[..., Array], position: Array, scenario: Target) -> Array:
        return self.domain.flatten(function(self.domain.unflatten(position), scenario))


def _read_repair(call: str, target: Target, repair: Repair | None) -> Repair | None:
    if repair is None:
        return None
    wrapped = Partial(_RepairFlat(target.domain), as_pytree(repair))
    positions = _draw_valid(target)
    _check_positions(
        f"{call}(repair=...)",
        target,
        lambda: jax.vmap(lambda position: wrapped(position, target))(positions),
        "repair(position, scenario)",
    )
    return wrapped


def _try_own(call: str, target: Target, own: Own) -> None:
    """Refuse a function that leaves the domain, or the constraint more often than not."""
    positions, keys = _draw_valid(target), jax.random.split(jax.random.key(0), NUM_TRIED)
    given = f"{call}(disturb=...)"
    moved = _check_positions(
        given, target, lambda: jax.vmap(own.disturb)(keys, positions), "disturb(key, position)"
    )
    if not target.has_constraint:
        return
    repair = own.repair
    if repair is not None:
        moved = jax.vmap(lambda position: repair(position, target))(moved)
    broken = ~np.asarray(jax.vmap(target.is_valid)(moved))
    if broken.mean() > 0.5:
        raise TargetError(
            f"`{given}` leads out of the constraint of the target at {int(broken.sum())} of {NUM_TRIED} "
            "valid positions, and what is not valid is worth nothing. Give `repair=` that leads back, or a "
            "disturbance that stays inside."
        )


def _check_positions(given: str, target: Target, make: Callable[[], Array], form: str) -> Array:
    """Positions that a function of the user made, refused unless they lie in the domain."""
    try:
        made = call_back(given, make)
        array = np.asarray(made)
    except (SteppeError, TypeError, ValueError) as problem:
        raise TargetError(
            f"`{given}` must be a function `{form} → position` written in JAX; it failed at random "
            f"positions: {shorten(str(problem))}"
        ) from problem
    is_inside = [target.domain.contains(row) for row in array]
    if not all(is_inside):
        raise TargetError(
            f"`{given}` leaves {target.domain!r} at {is_inside.count(False)} of {len(array)} positions; the "
            f"first is {shorten(array[is_inside.index(False)].tolist())}. Return positions of the domain."
        )
    return made


def _draw_valid(target: Target) -> Array:
    """Random positions, valid ones if there are any among a few thousand."""
    drawn = target.domain.draw(
        jax.random.key(0), (256 * NUM_TRIED,) if target.has_constraint else (NUM_TRIED,)
    )
    if not target.has_constraint:
        return drawn
    order = np.argsort(~np.asarray(jax.vmap(target.is_valid)(drawn)), kind="stable")
    return drawn[order[:NUM_TRIED]]


# ---- scenarios ---------------------------------------------------------------------------------------------


def _read_list(call: str, target: Target, listed: Sequence[Target], repair: Repair | None) -> Scenarios:
    given = f"{call}(scenarios=...)"
    if not len(listed):
        raise TargetError(f"`{given}` must list at least one target; got none.")
    for place, scenario in enumerate(listed):
        _check_scenario(f"{given}[{place}]", target, scenario)
        if not _has_same_form(listed[0], scenario):
            raise TargetError(
                f"`{given}` must list targets of one form that differ in their numbers only; entry {place} "
                f"differs from the first. {_REMEDY}"
            )
    return Scenarios(stack_targets(listed), len(listed), None, repair)


_REMEDY = (
    "Make them by one function: fields of a `Target` subclass, or arrays bound by `jax.tree_util.Partial`, "
    "are numbers; those inside a lambda are not."
)


def _read_scenario(
    call: str, target: Target, scenario: Callable[[Array], Target], repair: Repair | None
) -> Scenarios:
    given = f"{call}(scenario=...)"
    keys = jax.random.split(jax.random.key(0), 2)
    first, second = (call_back(given, scenario, key) for key in keys)
    for made in (first, second):
        _check_scenario(given, target, made)
    if not _has_same_form(first, second):
        raise TargetError(
            f"`{given}` returns a target of another form for every key, so that a program would be compiled "
            f"for each. {_REMEDY}"
        )
    leaves = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    if not any(np.any(np.asarray(one) != np.asarray(other)) for one, other in leaves):
        raise TargetError(
            f"`{given}` returns the same target for two keys: none of its numbers depends on the key. "
            f"{_REMEDY}"
        )
    return Scenarios(None, 0, scenario, repair)


def _check_scenario(given: str, target: Target, scenario: object) -> None:
    if not isinstance(scenario, Target):
        raise refuse(given, "a `steppe.Target`", scenario, TargetError)
    if scenario.domain != target.domain:
        raise TargetError(
            f"`{given}` lives on {scenario.domain!r}, the target on {target.domain!r}: a scenario changes "
            "what positions are worth, not where they live."
        )


def _has_same_form(first: Target, second: Target) -> bool:
    if jax.tree.structure(first) != jax.tree.structure(second):
        return False
    leaves = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return all(np.shape(one) == np.shape(other) for one, other in leaves)
