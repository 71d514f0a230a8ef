"""Which chains look for modes: plain, tilted and tied ones, each annealed from hot to cold.

A plain chain ends on high states, a tilted one on states whose changes matter little, the copies of an
ensemble where several of them find room. JointProposal they see modes that none of them would see alone.
"""

from typing import NamedTuple

from steppe.kernel.compose import Recipe
from steppe.run.schedule import Schedule, geometric_schedule, parameter_schedule
from steppe.samplers.flat import robust_ensemble, roughness_tilted
from steppe.samplers.flip_fraction import coupling_variance_from_flip_fraction
from steppe.samplers.langevin import dmala
from steppe.samplers.permutations import informed_permutation
from steppe.target import Target

# Inverse temperatures at the beginning and at the end. At 3 a chain stays within a nat or so of a mode.
HOT, COLD = 0.3, 3.0

# What a tilted chain pays for every nat that one site can lose, in nats. At ½, a mode that is higher by the
# half of what its sites lose in sum is not preferred.
PRICES = (1 / 8, 1 / 2)

COPIES = (2, 4)
# Fraction of sites in which a copy differs from the center on flat ground, at the beginning and at the end.
LOOSE, TIGHT = 0.25, 0.05


class Member(NamedTuple):
    """Chains of one kind.

    Attributes
    ----------
    name
        What tables call it.
    recipe, schedule
        How its chains move.
    evaluations_per_step
        What a step of one chain costs.
    evaluations_once
        What a chain costs besides: its first state, and the last center of an ensemble.
    """

    name: str
    recipe: Recipe
    schedule: Schedule
    evaluations_per_step: int
    evaluations_once: int


def ladder(target: Target) -> list[Member]:
    """Return the members for a target."""
    if not target.domain.is_site_product:
        cooling = parameter_schedule(inverse_temperature=geometric_schedule(HOT, COLD))
        return [_member(target, "informed moves", informed_permutation(moves="two_opt"), cooling)]
    return [
        _member(
            target, "plain", dmala(), parameter_schedule(inverse_temperature=geometric_schedule(HOT, COLD))
        ),
        *(_tilted(target, price) for price in PRICES),
        *(_tied(target, copies) for copies in COPIES),
    ]


def _tilted(target: Target, price: float) -> Member:
    strength = price * target.domain.num_sites
    cooling = parameter_schedule(
        inverse_temperature=geometric_schedule(HOT, COLD),
        strength=geometric_schedule(HOT * strength, COLD * strength),
    )
    differences = "exact" if target.has_differences else "gradient"
    recipe = roughness_tilted(strength=strength, differences=differences)
    once = 2 if target.has_differences else 1
    return _member(target, f"tilted {strength:g}", recipe, cooling, once)


def _tied(target: Target, copies: int) -> Member:
    unit = target.domain.squared_unit
    loose, tight = (coupling_variance_from_flip_fraction(f, squared_unit=unit) for f in (LOOSE, TIGHT))
    cooling = parameter_schedule(
        inverse_temperature=geometric_schedule(HOT, COLD), coupling_variance=geometric_schedule(loose, tight)
    )
    recipe = robust_ensemble(replicas=copies, coupling_variance=loose, center="lattice")
    return _member(target, f"{copies} copies", recipe, cooling, copies + 1)


def _member(target: Target, name: str, recipe: Recipe, cooling: Schedule, once: int = 1) -> Member:
    per_step = int(recipe.build(target, audit=False).evaluations_per_step)
    return Member(name, recipe, cooling, per_step, once)
