"""Disturbances in the user's terms: flips of sites, moves of permutations, other targets, own functions.

A disturbance makes, for a base target, the average over draws of itself; see `averages`.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from steppe.domain import Domain
from steppe.errors import SteppeError
from steppe.kernel.proposals.permutation_moves import TABLED, as_move
from steppe.robust.averages import (
    Average,
    DisturbedAverage,
    FlippedAverage,
    MovedAverage,
    Repair,
    ScenarioAverage,
    SingleChangeAverage,
)
from steppe.robust.closed_form import find_mean
from steppe.robust.risk import Risk
from steppe.robust.site_flips import draw_shifts, flip_position
from steppe.target import Target
from steppe.validation import call_back


class Disturbance(Protocol):
    """What may happen to a position, or to what it is worth."""

    @property
    def words(self) -> str:
        """The disturbance in words, to stand after "after"."""
        ...

    @property
    def is_exact(self) -> bool:
        """Whether the average is over all there is, not over draws."""
        ...

    def average(self, base: Target, risk: Risk, key: Array, num_samples: int) -> Average:
        """The base after some draws of the disturbance, or after all there are."""
        ...

    def find_closed_form(self, base: Target, risk: Risk) -> Target | None:
        """The base after the disturbance, at the cost of one evaluation, if there is such a form."""
        ...


class Flips(NamedTuple):
    """Sites that take random other levels: each with its rate, or so many of them; and the repair."""

    rates: np.ndarray | None
    flips: int | None
    repair: Repair | None

    @property
    def words(self) -> str:
        """In words."""
        if self.flips is not None:
            changes = f"{self.flips} random change{'s' * (self.flips > 1)}"
        else:
            assert self.rates is not None
            low, high = self.rates.min(), self.rates.max()
            rate = f"{100 * low:.3g} %" if low == high else f"{100 * low:.3g} to {100 * high:.3g} %"
            changes = f"random changes of {rate} of the sites"
        return changes + (" and repair" if self.repair else "")

    @property
    def is_exact(self) -> bool:
        """One change at most: all of them are listed."""
        return self.flips == 1 and self.repair is None

    def average(self, base: Target, risk: Risk, key: Array, num_samples: int) -> Average:
        """Over all single changes, or over maps drawn at random."""
        if self.is_exact:
            return SingleChangeAverage(base.domain, base, risk)
        rates = None if self.rates is None else jnp.asarray(self.rates, jnp.result_type(float))
        if self.repair is not None:
            flip = Partial(_FlipOnce(base.domain, self.flips), rates)
            return DisturbedAverage(
                base.domain, base, risk, flip, self.repair, jax.random.split(key, num_samples)
            )
        shifts = draw_shifts(key, num_samples, base.domain, rates, self.flips)
        return FlippedAverage(base.domain, base, risk, shifts)

    def find_closed_form(self, base: Target, risk: Risk) -> Target | None:
        """For the mean of multilinear and pairwise targets."""
        if risk.kind != "mean" or self.repair is not None:
            return None
        return find_mean(base, self.rates, self.flips)


class _FlipOnce(NamedTuple):
    """One draw of flips, as a function of a key; equal for equal domains."""

    domain: Domain
    flips: int | None

    def __call__(self, rates: Array | None, key: Array, position: Array) -> Array:
        shifts = draw_shifts(key, 1, self.domain, rates, self.flips)[0]
        return flip_position(self.domain, shifts, position)


class Moves(NamedTuple):
    """Random moves of a permutation in a row: swaps, reversals and insertions, each kind as likely."""

    num_moves: int

    @property
    def words(self) -> str:
        """In words."""
        return f"{self.num_moves} random move{'s' * (self.num_moves > 1)}"

    @property
    def is_exact(self) -> bool:
        """All single moves are listed."""
        return self.num_moves == 1

    def average(self, base: Target, risk: Risk, key: Array, num_samples: int) -> Average:
        """Over all moves, or over sequences drawn at random."""
        if self.is_exact:
            return SingleChangeAverage(base.domain, base, risk)
        of_kinds, of_places = jax.random.split(key)
        shape, size = (num_samples, self.num_moves), base.domain.num_sites
        kinds = jax.random.randint(of_kinds, shape, 0, len(TABLED))
        rows, steps = jax.random.randint(
            of_places, (2, *shape), 0, jnp.asarray([size, size - 1]).reshape(2, 1, 1)
        )
        insert = as_move("insert", rows, (rows + 1 + steps) % size, kinds)
        is_insert = kinds == TABLED.index("insert")
        moves = insert._replace(kind=kinds, shift=jnp.where(is_insert, insert.shift, 0))
        return MovedAverage(base.domain, base, risk, moves)

    def find_closed_form(self, base: Target, risk: Risk) -> Target | None:
        """None."""
        return None


class Scenarios(NamedTuple):
    """A list of targets, stacked; or a function that draws one."""

    listed: Target | None
    num_listed: int
    draw: Callable[[Array], Target] | None
    repair: Repair | None

    @property
    def words(self) -> str:
        """In words."""
        what = "scenarios drawn at random" if self.draw else f"{self.num_listed} scenarios"
        return f"one of {what}" + (" and repair" if self.repair else "")

    @property
    def is_exact(self) -> bool:
        """A list is all there is."""
        return self.draw is None

    def average(self, base: Target, risk: Risk, key: Array, num_samples: int) -> Average:
        """Over the list, or over scenarios drawn at random."""
        if self.draw is None:
            assert self.listed is not None
            return ScenarioAverage(base.domain, base, risk, self.listed, self.repair, self.num_listed)
        drawn = draw_scenarios(self.draw, jax.random.split(key, num_samples))
        return ScenarioAverage(base.domain, base, risk, drawn, self.repair, num_samples)

    def find_closed_form(self, base: Target, risk: Risk) -> Target | None:
        """None."""
        return None


class Own(NamedTuple):
    """A function of the user that disturbs positions."""

    disturb: Callable[[Array, Array], Array]
    repair: Repair | None

    @property
    def words(self) -> str:
        """In words."""
        return "the disturbance given" + (" and repair" if self.repair else "")

    @property
    def is_exact(self) -> bool:
        """Never: it is random."""
        return False

    def average(self, base: Target, risk: Risk, key: Array, num_samples: int) -> Average:
        """Over keys drawn at random."""
        keys = jax.random.split(key, num_samples)
        return DisturbedAverage(base.domain, base, risk, self.disturb, self.repair, keys)

    def find_closed_form(self, base: Target, risk: Risk) -> Target | None:
        """None."""
        return None


def draw_scenarios(scenario: Callable[[Array], Target], keys: Array) -> Target:
    """Scenarios of some keys, stacked: mapped in one program where the function can be traced."""
    try:
        return jax.vmap(scenario)(keys)
    except (jax.errors.JAXTypeError, TypeError, ValueError, SteppeError):
        return stack_targets([call_back("scenario", scenario, key) for key in keys])


def stack_targets(targets: Sequence[Target]) -> Target:
    """One target whose arrays have those of all in front of one another."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *targets)
