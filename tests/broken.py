"""Deliberately wrong kernels: what a gate must be able to see.

Each is a correct recipe, composed of the components in `faulty.py`, with one number turned to a fault.
"""

from typing import NamedTuple

import jax.numpy as jnp

import steppe
from faulty import (
    DecisionPerSite,
    FaultyConditional,
    FaultyDecision,
    FaultyLangevin,
    FaultyMetropolis,
    FaultyRefresh,
    FaultySites,
    FaultyTogether,
    OneSidedCenter,
)
from steppe.kernel.acceptance import Metropolis
from steppe.kernel.blocks.cycle import CycleBlock
from steppe.kernel.blocks.metropolis import ConditionalDraw
from steppe.kernel.compose import Recipe, recipe
from steppe.kernel.coupling import StarCoupling
from steppe.kernel.proposals.center import CenterLangevin
from steppe.kernel.proposals.discrete_langevin import DiscreteFlow, DiscreteLangevin
from steppe.kernel.proposals.gibbs_with_gradients import GibbsWithGradients
from steppe.kernel.proposals.path_auxiliary import PathAuxiliary

STEP, CENTER_STEP, VARIANCE, PERSISTENCE = 0.6, 0.4, 0.4, 0.7
COUPLING = StarCoupling(VARIANCE)

CORRECT = {
    "dmala": steppe.dmala(step_size=STEP),
    "edmala": steppe.edmala(step_size=STEP, center_step_size=CENTER_STEP, coupling_variance=VARIANCE),
    "edmala_glu": steppe.edmala_glu(step_size=STEP, coupling_variance=VARIANCE),
    "edmala_ou": steppe.edmala_ou(step_size=STEP, coupling_variance=VARIANCE, persistence=PERSISTENCE),
    "gwg": steppe.gwg(),
    "gibbs": steppe.gibbs(),
    "hamming_ball": steppe.hamming_ball(block_size=3, radius=1),
}

_decided = FaultyDecision(FaultyLangevin(STEP), FaultyMetropolis())
_together = FaultyTogether(FaultyLangevin(STEP), CenterLangevin(CENTER_STEP))
_dmala = recipe("dmala", _decided)
_edmala = recipe("edmala", FaultyDecision(_together, FaultyMetropolis()), coupling=COUPLING)
_glu = recipe("edmala_glu", ConditionalDraw(FaultyRefresh(0.0)), _decided, coupling=COUPLING)
_ou = recipe("edmala_ou", ConditionalDraw(FaultyRefresh(PERSISTENCE)), _decided, coupling=COUPLING)
_gwg = recipe("gwg", FaultyDecision(GibbsWithGradients(1), FaultyMetropolis()))
_flow = recipe("dlmc", FaultyDecision(DiscreteFlow(STEP), FaultyMetropolis()))
_paths = recipe("pas", FaultyDecision(PathAuxiliary(3), FaultyMetropolis()))
_careful = FaultyDecision(FaultyLangevin(STEP, exponent=0.5), FaultyMetropolis())
_cycle = recipe(
    "dmala_cyclical", CycleBlock(_careful, jnp.array([1.0, 0.6, 0.2]), jnp.array([0.8, 0.6, 0.5]))
)
_gibbs = recipe("gibbs", FaultySites(1))
_events = recipe("gibbs", FaultySites(3, "systematic", table_size=2))
_swaps = recipe("gibbs", FaultySites(1, num_swaps=2))
_ball = recipe("hamming_ball", FaultyConditional(block_size=3, radius=1))

FAULTLESS = {made.name: made for made in (_dmala, _edmala, _glu, _ou, _gwg, _gibbs, _ball)}


class Broken(NamedTuple):
    """A kernel with a fault, and the statistic that must reject it on a smooth target of a domain."""

    recipe: Recipe
    gate: str
    domain: str = "binary"


_per_site = recipe("dmala", DecisionPerSite(DiscreteLangevin(STEP), Metropolis()))
_one_sided = recipe("edmala_glu", OneSidedCenter(DiscreteLangevin(STEP), Metropolis()), coupling=COUPLING)
_edula = _edmala.replace(forced=1.0)

POSITION, OWN, OTHER = (
    "position distribution",
    "residual and own coordinate",
    "residual and other coordinates",
)
DISTRIBUTION, SPREAD, JUMPS, CACHE = "residual distribution", "residual variance", "jump symmetry", "cache"

# What is wrong → the kernel and its gate. Kernels of one composition stand together: they share a program.
# Two slips are missing because they change no distribution: a wrong slope that is drawn *and* claimed both
# ways, and a
# way back of `gwg(num_flips=2)` that undoes the changes in the order in which they were made.
BROKEN = {
    # The ratio of the joint decision.
    "q of the center missing in the ratio": Broken(_edmala.replace(center_terms=0.0), SPREAD),
    "q of the position missing in the ratio": Broken(_edmala.replace(position_terms=0.0), POSITION),
    "π(θ) instead of the joint in the ratio": Broken(_edmala.replace(coupling_weight=0.0), JUMPS),
    "half the coupling in the ratio": Broken(_edmala.replace(coupling_weight=0.5), DISTRIBUTION),
    "way back at the old center": Broken(_edmala.replace(stale_center=1.0), OTHER),
    "way back with the old gradient": Broken(_edmala.replace(stale_gradient=1.0), POSITION),
    "way back of the center from the old position": Broken(_edmala.replace(stale_position=1.0), OWN),
    "way back without 1/(2α)": Broken(_edmala.replace(reverse_step=1e6), SPREAD),
    "ratio squared": Broken(_edmala.replace(power=2.0), OWN),
    "u compared with log r": Broken(_edmala.replace(no_log=1.0), DISTRIBUTION),
    "no decision": Broken(_edmala.replace(forced=1.0), POSITION),
    # What the joint proposal draws against what it claims.
    "pull of the center drawn with the wrong sign": Broken(_edmala.replace(sampled_pull=-1.0), JUMPS),
    "drift 1 drawn, ½ claimed": Broken(_edmala.replace(sampled_drift=2.0), POSITION),
    "center drifts to the new θ, claims the old": Broken(_edmala.replace(center_sees_new_position=1.0), OWN),
    "θ drawn at the new center, claims the old": Broken(_edmala.replace(position_sees_new_center=1.0), OTHER),
    "center drift α_a instead of α_a/2": Broken(_edmala.replace(center_drift=2.0), SPREAD),
    "center noise α_a instead of √α_a": Broken(_edmala.replace(center_noise=CENTER_STEP), SPREAD),
    # What is kept of a rejected joint proposal.
    "center not restored": Broken(_edmala.replace(keeps_center=1.0), DISTRIBUTION),
    "position not restored": Broken(_edmala.replace(keeps_position=1.0), POSITION),
    "gradient of the rejected point kept": Broken(_edmala.replace(keeps_gradient=1.0), CACHE),
    "log-density of the rejected point kept": Broken(_edmala.replace(keeps_log_density=1.0), CACHE),
    "one key for flips and decision": Broken(_edmala.replace(reuses_key=1.0), OWN),
    # Unadjusted: the same components with the decision forced, against the exact distribution of one step.
    "edula with drift 1": Broken(_edula.replace(sampled_drift=2.0), "one-step position distribution"),
    "edula with the pull reversed": Broken(
        _edula.replace(sampled_pull=-1.0), "one-step position distribution"
    ),
    "edula with center drift α_a": Broken(_edula.replace(center_drift=2.0), "one-step center mean"),
    "edula with center noise α_a": Broken(
        _edula.replace(center_noise=CENTER_STEP), "one-step center variance"
    ),
    "edula drawing θ at the new center": Broken(
        _edula.replace(position_sees_new_center=1.0), "one-step position distribution"
    ),
    # Center refreshed, position decided.
    "glu with noise η instead of √η": Broken(_glu.replace(variance_factor=VARIANCE), SPREAD),
    "glu with half the coupling in the ratio": Broken(_glu.replace(coupling_weight=0.5), JUMPS),
    "ou with Langevin noise": Broken(_ou.replace(variance_factor=2 / (1 + PERSISTENCE)), SPREAD),
    "ou without √(1 − ρ²)": Broken(_ou.replace(variance_factor=1 / (1 - PERSISTENCE**2)), SPREAD),
    "glu with the new center one way only": Broken(_one_sided, POSITION),
    # No center.
    "dmala with the old gradient on the way back": Broken(_dmala.replace(stale_gradient=1.0), POSITION),
    "dmala without 1/(2α) on the way back": Broken(_dmala.replace(reverse_step=1e6), POSITION),
    "dmala with the ratio upside down": Broken(_dmala.replace(power=-1.0), POSITION),
    "dmala keeping the log-density of a rejected point": Broken(
        _dmala.replace(keeps_log_density=1.0), POSITION
    ),
    "dmala with one key for flips and decision": Broken(_dmala.replace(reuses_key=1.0), POSITION),
    "dmala deciding per site": Broken(_per_site, POSITION),
    "dmala claiming padded levels": Broken(_dmala.replace(claims_padding=1.0), POSITION, "ragged"),
    # Baselines.
    "gwg without the way back": Broken(_gwg.replace(reverse_terms=0.0), POSITION),
    "gwg without q in the ratio": Broken(_gwg.replace(position_terms=0.0), POSITION),
    "gwg with the old weights on the way back": Broken(_gwg.replace(stale_gradient=1.0), POSITION),
    # Further proposals.
    "dlmc that looks back over another time": Broken(_flow.replace(reverse_step=3.0), POSITION),
    "pas with the old weights on the way back": Broken(_paths.replace(stale_gradient=1.0), POSITION),
    "cycle that looks back with another step size": Broken(_cycle.replace(reverse_step=0.3), POSITION),
    "gibbs from U/2": Broken(_gibbs.replace(inverse_temperature=0.5), POSITION, "ordinal"),
    "gibbs that never stays": Broken(_gibbs.replace(excludes_current=1.0), POSITION, "ordinal"),
    "gibbs that picks the site that gains most": Broken(
        _gibbs.replace(picks_by_gain=1.0), POSITION, "ordinal"
    ),
    "gibbs on all sites at once": Broken(_gibbs.replace(draws_all_at_once=1.0), POSITION, "ordinal"),
    "gibbs that rests after a change": Broken(_events.replace(rests_after_change=1.0), POSITION, "ordinal"),
    "gibbs with swaps to any free place": Broken(_swaps.replace(swaps_blindly=1.0), POSITION),
    "ball about θ without the point between": Broken(_ball.replace(skips_intermediate=1.0), POSITION),
}
