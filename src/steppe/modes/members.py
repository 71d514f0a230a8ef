"""Which chains look for modes: on the target, on what is left of it after the disturbance, tilted and tied.

A plain chain ends on high states, one on the robust target on states that are worth most after the
disturbance, a tilted one on states whose changes matter little, the replicas of an ensemble where several of
them find room. Together they see modes that none of them would see alone. Annealed chains end in many modes;
a ladder of temperatures finds the highest one more often, and no other.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.kernel.compose import Recipe
from steppe.kernel.cost import evaluations_per_table
from steppe.recommend import recommend_for_search
from steppe.robust.averages import Average, SingleChangeAverage
from steppe.run.cooling import cool
from steppe.run.schedule import Schedule, geometric_schedule, parameter_schedule
from steppe.run.temperature_range import choose_temperatures
from steppe.samplers.baselines import gibbs
from steppe.samplers.flat import robust_ensemble, roughness_tilted
from steppe.samplers.further import can_be_tempered, parallel_tempering
from steppe.samplers.permutations import uniform_permutation
from steppe.samplers.structure import chromatic_gibbs
from steppe.target import Target

# What a tilted chain pays for every nat that one site can lose, in nats.
PRICE = 1 / 2
REPLICAS = 4

# What kinds of chains get of their evaluations; what cannot be afforded leaves its part to plain ones. Where
# the robust target costs no more than the target, the other kinds have nothing to add to chains on it.
PLAIN, ROBUST, TIED, TILTED = "annealed", "annealed after the disturbance", "tied replicas", "tilted"
TEMPERED, TEMPERED_ROBUST = "tempered", "tempered after the disturbance"
FRACTIONS = {PLAIN: 0.25, TEMPERED: 0.25, ROBUST: 0.2, TIED: 0.15, TILTED: 0.15}
FRACTIONS_CLOSED = {PLAIN: 0.2, TEMPERED: 0.2, ROBUST: 0.2, TEMPERED_ROBUST: 0.4}
# Who gets what a ladder cannot use.
STAND_INS = {TEMPERED_ROBUST: ROBUST}
# Steps of a chain: so many for every single change there is, so that chains of large domains are longer. On
# coupling tables of 60 × 20, one chain of 4000 sweeps in five ended in the best state known, and one in five
# hundred of 200.
MIN_STEPS_PER_CHAIN, STEPS_PER_CHANGE = 200, 3
MIN_CHAINS, MAX_CHAINS, MIN_STEPS = 4, 512, 20
# Rungs of a ladder, so many for the root of the number of sites; larger targets have none, for their rungs
# would not swap. It begins a little colder than annealing and ends where it still moves. On eight coupling
# tables of 60 × 20, 15 000 sweeps of 12 replicas met the best state known in 62 of 100 runs, of annealed
# chains in 28.
RUNGS_PER_ROOT, MIN_RUNGS, MAX_RUNGS = 1.5, 5, 24
LADDER_HOT, LADDER_COLD = 1.3, 1 / 3
MIN_ROUNDS, ROUNDS_PER_CHANGE, MAX_LADDERS = 500, 3, 16
# With fewer single changes there is none: on twenty cuts of 40 nodes annealed chains met the best value
# without, and its programs take two seconds to trace.
MIN_CHANGES = 100
# A starting position is evaluated when it is chosen and when the run checks it.
EVALUATIONS_PER_START = 2


class Member(NamedTuple):
    """Chains of one kind.

    Attributes
    ----------
    name
        What tables call it.
    target, recipe, schedule
        What its chains look at and how they move.
    price
        Evaluations of the user's target in one of this target.
    per_step, once
        Evaluations of this target per step of one chain, and besides: its start, the last center of an
        ensemble.
    is_ladder
        Whether a chain has replicas at several temperatures.
    """

    name: str
    target: Target
    recipe: Recipe
    schedule: Schedule
    price: int
    per_step: int
    once: int
    is_ladder: bool = False

    def cost(self, num_steps: int) -> int:
        """Evaluations of the user's target by one chain, its start included."""
        return self.price * (EVALUATIONS_PER_START + self.once + num_steps * self.per_step)

    @property
    def min_cost(self) -> int:
        """Evaluations of the fewest and shortest chains."""
        return self.cost(MIN_ROUNDS) if self.is_ladder else MIN_CHAINS * self.cost(MIN_STEPS)

    def split(self, budget: int) -> tuple[int, int]:
        """Split a budget into chains and steps."""
        changes = count_changes(self.target)
        if self.is_ladder:
            usual = self.cost(max(MIN_ROUNDS, ROUNDS_PER_CHANGE * changes))
            num_chains = int(np.clip(budget // usual, 1, MAX_LADDERS))
            return num_chains, (budget // num_chains - self.cost(0)) // (self.price * self.per_step)
        usual = max(MIN_STEPS_PER_CHAIN, STEPS_PER_CHANGE * changes)
        shortest, longest = (
            (budget // number - self.cost(0)) // (self.price * self.per_step)
            for number in (MAX_CHAINS, MIN_CHAINS)
        )
        num_steps = min(max(usual, shortest), longest)
        return min(MAX_CHAINS, budget // self.cost(num_steps)), num_steps


def price_of_value(target: Target, base: Target) -> int:
    """Evaluations of the base in one of a target made from it."""
    if isinstance(target, SingleChangeAverage):
        return evaluations_per_table(base) + 1
    return target.num_disturbances if isinstance(target, Average) else 1


def list_members(target: Target, after: Target, key: Array, initial: ArrayLike | None = None) -> list[Member]:
    """Return the members for a target and what is left of it after the disturbance.

    Parameters
    ----------
    target
        The user's target.
    after
        The robust target.
    key
        Of the random states at which temperatures are chosen.
    initial
        States to choose them at where no random one is valid.
    """
    temperatures = choose_temperatures(target, key, initial)
    cooling = geometric_schedule(*temperatures)
    members = [_member(PLAIN, target, _choose_recipe(target), {"inverse_temperature": cooling})]
    price = price_of_value(after, target)
    recipe = _choose_recipe(after) if target.domain.is_site_product else uniform_permutation()
    members.append(_member(ROBUST, after, recipe, {"inverse_temperature": cooling}, price=price))
    if not target.domain.is_site_product:
        return members
    members += _list_ladders(members, temperatures)
    if is_closed(after):
        return members
    tied = robust_ensemble(replicas=REPLICAS, center="lattice")
    members.append(_member(TIED, target, tied, cool(tied, target, temperatures).curves, once=REPLICAS + 1))
    strength = PRICE * target.domain.num_sites
    tilted = roughness_tilted(
        strength=strength, differences="exact" if target.has_differences else "gradient"
    )
    rising = {"strength": geometric_schedule(*(strength * beta for beta in temperatures))}
    once = 2 if target.has_differences else 1
    return [*members, _member(TILTED, target, tilted, {"inverse_temperature": cooling, **rising}, once=once)]


def _list_ladders(members: list[Member], temperatures: tuple[float, float]) -> list[Member]:
    """Ladders for the plain chains, and for those on the robust target if it costs no more."""
    if count_changes(members[0].target) < MIN_CHANGES:
        return []
    hot, cold = temperatures
    first, last = LADDER_HOT * hot, max(LADDER_COLD * cold, 2 * LADDER_HOT * hot)
    num_rungs = max(MIN_RUNGS, round(RUNGS_PER_ROOT * members[0].target.domain.num_sites ** 0.5))
    if num_rungs > MAX_RUNGS:
        return []
    betas = tuple(np.geomspace(first / last, 1.0, num_rungs).tolist())
    curves = {"inverse_temperature": geometric_schedule(last, last)}
    names = {PLAIN: TEMPERED, ROBUST: TEMPERED_ROBUST}
    ladders = []
    for member in members:
        if is_closed(member.target) and can_be_tempered(member.recipe):
            recipe = parallel_tempering(base=member.recipe, inverse_temperatures=betas)
            ladder = _member(names[member.name], member.target, recipe, curves)
            ladders.append(ladder._replace(is_ladder=True))
    return ladders


def count_changes(target: Target) -> int:
    """Single changes of a state; none are counted where sites are not free."""
    domain = target.domain
    return int(np.sum(np.asarray(domain.num_levels) - 1)) if domain.is_site_product else 0


def is_closed(after: Target) -> bool:
    """Whether the robust target costs no more than the target itself."""
    return not isinstance(after, Average)


def _choose_recipe(target: Target) -> Recipe:
    """The recipe recommended for a search; of sweeps the one that evaluates less."""
    recipe, sweep = recommend_for_search(target).recipe, gibbs(num_updates=target.domain.num_sites)
    if recipe.name != chromatic_gibbs().name or target.incremental is None:
        return recipe
    costs = (one.build(target, audit=False).evaluations_per_step for one in (recipe, sweep))
    return recipe if next(costs) <= next(costs) else sweep


def _member(
    name: str,
    target: Target,
    recipe: Recipe,
    curves: Mapping[str, Callable[[Array], Array]],
    *,
    price: int = 1,
    once: int = 1,
) -> Member:
    per_step = max(1, round(float(recipe.build(target, audit=False).evaluations_per_step)))
    return Member(name, target, recipe, parameter_schedule(**curves), price, per_step, once)


def share_budget(members: list[Member], budget: int) -> list[tuple[Member, int]]:
    """Members that can be afforded with what each gets; what others leave goes to the plain ones."""
    names = {member.name for member in members}
    fractions = FRACTIONS_CLOSED if names <= set(FRACTIONS_CLOSED) else FRACTIONS
    stand_ins = {name: part if part in names else PLAIN for name, part in STAND_INS.items()}
    shares = dict.fromkeys(names, 0.0)
    for name, fraction in fractions.items():
        shares[name if name in names else stand_ins.get(name, PLAIN)] += budget * fraction
    kept = []
    for member in reversed(members):  # ladders give back before those that stand in for them
        if member.name == PLAIN or member.min_cost <= shares[member.name]:
            kept.append(member)
        else:
            shares[stand_ins.get(member.name, PLAIN)] += shares.pop(member.name)
    return [(member, int(shares[member.name])) for member in reversed(kept)]
