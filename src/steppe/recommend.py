"""Recommendation of a recipe for a target: rules in the order in which they are asked, with their evidence.

`docs/choose.md` shows the same rules.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from steppe.arguments import checked
from steppe.errors import RecipeError, TargetError
from steppe.kernel.compose import Recipe
from steppe.samplers import (
    chromatic_gibbs,
    dmala,
    gibbs,
    informed_permutation,
    swendsen_wang,
    uniform_permutation,
)
from steppe.samplers.mixed_models import mixed
from steppe.target import Target, hold_reals
from steppe.target.audit import is_gradient_informative
from steppe.target.interactions import color_sites, is_crowded

# Sites that a step of Gibbs changes at most, where a change costs an evaluation of the whole log-density.
MAX_UPDATES = 256


class Recommendation(NamedTuple):
    """A recipe, and why it was chosen.

    Examples
    --------
    >>> import steppe
    >>> recipe, reason = steppe.recommend(steppe.targets.tsp_paper("permutation"))
    >>> recipe.name, reason.startswith("its states are permutations")
    ('informed_permutation', True)
    """

    recipe: Recipe
    reason: str


class Rule(NamedTuple):
    """When a recipe is recommended.

    Attributes
    ----------
    name
        The recipe.
    when
        What is true of the target, in words.
    applies
        Whether it is.
    make
        The recipe for the target.
    reason
        Why, as the end of a sentence that begins with the target.
    evidence
        What was measured.
    """

    name: str
    when: str
    applies: Callable[[Target], bool]
    make: Callable[[Target], Recipe]
    reason: str
    evidence: str


@checked(RecipeError)
def recommend(target: Target) -> Recommendation:
    """Recommend a recipe for a target, with the reason in one sentence.

    Parameters
    ----------
    target
        What is to be sampled; it is looked at, and its gradient compared with differences at random states.

    Returns
    -------
    Recommendation
        `recipe`, which samples `π` exactly, and `reason`.

    Examples
    --------
    >>> import steppe
    >>> from steppe.targets import ising_lattice
    >>> steppe.recommend(ising_lattice((8, 8), 0.3)).recipe.name
    'chromatic_gibbs'
    """
    if target.domain.num_reals:
        within, reason = recommend(hold_reals(target))
        return Recommendation(mixed(within), f"{reason}; its real parts move by Hamiltonian Monte Carlo")
    rule = next(rule for rule in RULES if rule.applies(target))
    return Recommendation(rule.make(target), rule.reason)


def recommend_for_search(target: Target) -> Recommendation:
    """Recommend a recipe to anneal a target with: as for sampling, with two exceptions.

    Clusters do not help to search. And where sites have so many neighbours that they rarely change, going
    from change to change leaves out what colours look at in vain.

    Parameters
    ----------
    target
        What is to be searched.
    """
    left_out = {"swendsen_wang"}
    if target.incremental is not None and (target.incremental.table_size or 1) > 1:
        left_out.add("chromatic_gibbs")
    rule = next(rule for rule in RULES if rule.name not in left_out and rule.applies(target))
    return Recommendation(rule.make(target), rule.reason)


# ---- what rules ask ----------------------------------------------------------------------------------------


def _is_permutation(target: Target) -> bool:
    return not target.domain.is_site_product


def _is_ordering_ferromagnet(target: Target) -> bool:
    """Whether clusters can be joined, no field opposes them, and a tree of that degree would order."""
    form, pairs = target.pair_form, target.interactions
    if form is None or pairs is None or not len(pairs.ends) or np.any(np.asarray(form.field)):
        return False
    try:
        swendsen_wang().build(target)
    except RecipeError:
        return False
    strengths = np.asarray(form.strengths)
    strengths = strengths if pairs.places is None else strengths[np.asarray(pairs.places)]
    gains = np.abs(strengths) * float(form.scale)
    if form.values is None:
        conveyed = np.expm1(gains) / (np.expm1(gains) + target.domain.max_levels)
    else:
        conveyed = np.tanh(gains)
    degrees = np.bincount(pairs.ends, minlength=target.domain.num_sites)
    return bool(np.mean(conveyed) * (degrees * (degrees - 1)).sum() >= degrees.sum())


def _has_sparse_interactions(target: Target) -> bool:
    if target.interactions is None or target.has_constraint:
        return False
    if target.pair_form is None and target.incremental is not None and "conditional" not in target.offers:
        return False  # every colour would weigh all sites, and single changes are followed
    num_sites = target.domain.num_sites
    try:
        colors = color_sites(target.interactions, num_sites)
    except TargetError:
        return False
    return not is_crowded(int(colors.max(initial=0)) + 1, num_sites)


def _has_cheap_differences(target: Target) -> bool:
    """Whether single changes cost less than a gradient of many states, which matrix products make cheap."""
    has_products = "batched_value_and_grad" in target.offers and target.interactions is None
    return target.incremental is not None and not has_products


def _has_informative_gradient(target: Target) -> bool:
    return not target.has_constraint and is_gradient_informative(target)


def _sweep(target: Target) -> Recipe:
    return gibbs(num_updates=target.domain.num_sites)


def _update_some(target: Target) -> Recipe:
    return gibbs(num_updates=min(target.domain.num_sites, MAX_UPDATES))


RULES = (
    Rule(
        name="informed_permutation",
        when="its states are permutations, and it makes tables of what moves change",
        applies=lambda target: _is_permutation(target) and target.has_move_differences,
        make=lambda target: informed_permutation(),
        reason="its states are permutations, and moves weighed by what they change cross fewer bad ones",
        evidence="a tour of 20 places: 5800 effective draws per second, by uniform moves 3300",
    ),
    Rule(
        name="uniform_permutation",
        when="its states are permutations",
        applies=_is_permutation,
        make=lambda target: uniform_permutation(),
        reason="its states are permutations, and to weigh all moves would take an evaluation for each",
        evidence="a ranking of 12 items: 38 000 effective draws per second, by informed moves 13 000",
    ),
    Rule(
        name="swendsen_wang",
        when="its bonds can all be satisfied, are strong enough to order, and no field opposes them",
        applies=_is_ordering_ferromagnet,
        make=lambda target: swendsen_wang(),
        reason="its bonds favour agreement and are strong enough to order, so whole clusters move at once",
        evidence="Ising 24², T = 2.3: 3900 effective draws per second, by `chromatic_gibbs` 1100",
    ),
    Rule(
        name="chromatic_gibbs",
        when="it says which sites interact, and few do, in pairs or by conditionals of its own",
        applies=_has_sparse_interactions,
        make=lambda target: chromatic_gibbs(),
        reason="few of its sites interact, so all sites of a colour move at once",
        evidence="Ising 24², T = 3: 50 000 effective draws per second, by `dmala` 600",
    ),
    Rule(
        name="gibbs",
        when="it weighs changes of single sites incrementally, and is not made of matrix products",
        applies=_has_cheap_differences,
        make=_sweep,
        reason="changes of single sites are cheap to weigh exactly, so every site is resampled in turn",
        evidence="SK, 128 spins: 21 000 effective draws per second, by `dmala` 8300; variable selection of "
        "40 columns: 78 000 and 4700",
    ),
    Rule(
        name="dmala",
        when="its gradient predicts what single changes do",
        applies=_has_informative_gradient,
        make=lambda target: dmala(),
        reason="its gradient predicts what single changes do, so one evaluation moves many sites",
        evidence="RBM of 200 and 100 bits: 7000 effective draws per second, by `gibbs` 3400",
    ),
    Rule(
        name="gibbs",
        when="nothing else is known of it",
        applies=lambda target: True,
        make=_update_some,
        reason="its gradient does not say what single changes do, so they are weighed one by one",
        evidence="30 sites that are compared: 38 000 effective draws per second, by `dmala` 1600",
    ),
)
