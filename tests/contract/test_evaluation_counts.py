"""How often a step calls the user's functions: counted while it runs, and while it is traced."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
import steppe.targets
from contract.cases import one_chain, quick_jit, starts
from exact_targets import polynomial_target
from steppe.kernel.compose import Recipe
from steppe.samplers import ALL_RECIPES

NUM_STEPS = 20
DOMAIN = steppe.Ordinal(6, [-1.0, 0.1, 0.8])
LEVELS = DOMAIN.max_levels
REPLICAS = 3


class Counts:
    """Calls of one user function, by execution and by tracing."""

    def __init__(self, function):
        self.function, self.executed, self.traced = function, 0, 0

    def __call__(self, position, *rest):
        self.traced += 1
        jax.debug.callback(self._execute, jnp.sum(position))
        return self.function(position, *rest)

    def _execute(self, _):
        self.executed += 1


# A large step, so that Metropolis rejects some proposals and accepts others.
GRADIENT_RECIPES = {
    "dula": (steppe.dula(step_size=2.0), 1),
    "dmala": (steppe.dmala(step_size=2.0), 1),
    "edula": (steppe.edula(step_size=2.0, center_step_size=0.1, coupling_variance=1.0), 1),
    "edmala": (steppe.edmala(step_size=2.0, center_step_size=0.1, coupling_variance=1.0), 1),
    "edula_glu": (steppe.edula_glu(step_size=2.0, coupling_variance=1.0), 1),
    "edmala_glu": (steppe.edmala_glu(step_size=2.0, coupling_variance=1.0), 1),
    "hiss": (steppe.hiss(step_size=2.0, coupling_variance=1.0), 1),
    "edmala_ou": (steppe.edmala_ou(step_size=2.0, coupling_variance=1.0, persistence=0.5), 1),
    "roughness_tilted": (steppe.roughness_tilted(strength=1.0, step_size=2.0), 1),
    "robust_ensemble": (
        steppe.robust_ensemble(replicas=REPLICAS, coupling_variance=1.0, step_size=2.0),
        REPLICAS,
    ),
    "dlmc": (steppe.dlmc(step_size=2.0), 1),
    "dmala_cyclical": (steppe.dmala_cyclical(step_size=2.0, cycle_length=4), 4),
    "parallel_tempering": (steppe.parallel_tempering(base=steppe.dmala(step_size=2.0)), 12),
    "gwg": (steppe.gwg(num_flips=3), 1),
    "pas": (steppe.pas(max_flips=3), 1),
}

# Log-densities per step: one per level and update, per joint level of a block, per point of the ball.
CONDITIONAL_RECIPES = {
    "gibbs": (steppe.gibbs(num_updates=2), 2 * LEVELS),
    "block_gibbs": (steppe.block_gibbs(block_size=2), LEVELS**2),
    "hamming_ball": (steppe.hamming_ball(block_size=3, radius=1), 1 + 3 * (LEVELS - 1)),
}


def run_counted(recipe: Recipe, target: steppe.Target):
    """Run one chain and return the flags of its decisions."""
    sampler = recipe.build(target, audit=False)
    run = quick_jit(lambda key, position: one_chain(sampler, key, position, NUM_STEPS))
    _, _, infos = jax.block_until_ready(run(jax.random.key(0), starts(DOMAIN)[0]))
    jax.effects_barrier()
    return np.asarray(infos.is_accepted)


@pytest.mark.parametrize("name", GRADIENT_RECIPES)
def test_gradient_recipe_evaluates_once_per_step_accepted_or_not(name):
    recipe, per_step = GRADIENT_RECIPES[name]
    log_density = Counts(polynomial_target(DOMAIN, 1.0).log_density)
    is_accepted = run_counted(recipe, steppe.Target(log_density, DOMAIN))
    at_start = REPLICAS if name == "robust_ensemble" else 1
    assert log_density.executed == per_step * NUM_STEPS + at_start
    assert recipe.build(polynomial_target(DOMAIN, 1.0), audit=False).evaluations_per_step == per_step
    if name in ("dmala", "edmala", "edmala_glu", "edmala_ou", "roughness_tilted", "dlmc", "gwg", "pas"):
        assert 0 < is_accepted.sum() < NUM_STEPS  # both outcomes were counted


@pytest.mark.parametrize("name", GRADIENT_RECIPES)
def test_gradient_recipe_traces_the_log_density_once_per_step(name):
    log_density = Counts(polynomial_target(DOMAIN, 1.0).log_density)
    sampler = GRADIENT_RECIPES[name][0].build(steppe.Target(log_density, DOMAIN), audit=False)
    state = jax.eval_shape(sampler.init, starts(DOMAIN)[0], jax.random.key(0))
    log_density.traced = 0
    jax.eval_shape(sampler.step, jax.random.key(0), state)
    assert log_density.traced == 1


def test_given_value_and_grad_is_called_and_the_log_density_is_not():
    plain = polynomial_target(DOMAIN, 1.0)
    log_density, value_and_grad = Counts(plain.log_density), Counts(plain.value_and_grad)
    run_counted(
        steppe.dmala(step_size=2.0), steppe.Target(log_density, DOMAIN, value_and_grad=value_and_grad)
    )
    assert (log_density.executed, value_and_grad.executed) == (0, NUM_STEPS + 1)


def test_checked_start_costs_one_log_density_more():
    log_density = Counts(polynomial_target(DOMAIN, 1.0).log_density)
    steppe.dmala().build(steppe.Target(log_density, DOMAIN), audit=False).init(starts(DOMAIN)[0])
    jax.effects_barrier()
    assert log_density.executed == 2  # the check, then value and gradient


@pytest.mark.parametrize("name", CONDITIONAL_RECIPES)
def test_conditional_recipe_evaluates_every_candidate_once(name):
    recipe, per_step = CONDITIONAL_RECIPES[name]
    log_density = Counts(polynomial_target(DOMAIN, 1.0).log_density)
    run_counted(recipe, steppe.Target(log_density, DOMAIN))
    assert log_density.executed == per_step * NUM_STEPS + 1
    assert recipe.build(polynomial_target(DOMAIN, 1.0), audit=False).evaluations_per_step == per_step


@pytest.mark.parametrize(("name", "tables"), [("gibbs", 2), ("hamming_ball", 1)])
def test_difference_table_replaces_log_densities(name, tables):
    plain = polynomial_target(DOMAIN, 1.0)
    log_density, differences = Counts(plain.log_density), Counts(plain.differences)
    recipe, target = CONDITIONAL_RECIPES[name][0], steppe.Target(log_density, DOMAIN, differences=differences)
    run_counted(recipe, target)
    assert log_density.executed == 1  # `init` only
    # Of two updates the second is decided from the same table, if the first changes nothing.
    assert NUM_STEPS <= differences.executed <= tables * NUM_STEPS
    assert recipe.build(target, audit=False).evaluations_per_step == tables


def test_tilt_from_exact_differences_pays_for_its_table():
    recipe, plain = steppe.roughness_tilted(differences="exact"), polynomial_target(DOMAIN, 1.0)
    tabled = steppe.Target(plain.log_density, DOMAIN, differences=plain.differences)
    assert recipe.build(plain).evaluations_per_step == 2 + DOMAIN.num_sites * LEVELS
    assert recipe.build(tabled).evaluations_per_step == 2


@pytest.mark.parametrize("make", [steppe.dmala, steppe.gwg, steppe.pas])
def test_exact_differences_of_informed_proposals_cost_a_table_there_and_one_back(make):
    plain = polynomial_target(DOMAIN, 1.0)
    tabled = steppe.Target(plain.log_density, DOMAIN, differences=plain.differences)
    assert make(differences="exact").build(tabled).evaluations_per_step == 3
    assert make(differences="gradient").build(tabled).evaluations_per_step == 1


def test_incremental_form_counts_as_the_share_of_sites_asked_for():
    target = steppe.targets.ising_lattice((3, 3), 0.3)
    assert target.incremental is not None
    assert steppe.gibbs(num_updates=9).build(target).evaluations_per_step == pytest.approx(1)
    assert steppe.block_gibbs(block_size=2).build(target).evaluations_per_step == pytest.approx(2 * 4 / 9)


def test_weighted_center_costs_one_evaluation_more():
    recipe = steppe.robust_ensemble(replicas=3, center="lattice", center_weight=0.5)
    assert recipe.build(polynomial_target(DOMAIN, 1.0)).evaluations_per_step == 4


def test_informed_order_pays_for_a_table_there_and_back():
    target = steppe.Target(lambda order: order[0] * 1.0, steppe.Permutation(5))
    num_swaps = 10
    recipe = steppe.informed_permutation(moves="swap")
    assert recipe.build(target).evaluations_per_step == 1 + 2 * (1 + num_swaps)


def test_every_recipe_has_its_cost_counted():
    assert set(GRADIENT_RECIPES) | set(CONDITIONAL_RECIPES) == set(ALL_RECIPES)
