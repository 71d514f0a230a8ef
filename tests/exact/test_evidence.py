"""Log-normalisers against sums over all states.

False alarms: the fast gates compare an estimate with the sum at five standard errors (6e-7 each for normal
errors; with 19 degrees of freedom below 1e-4). The coverage of 200 intervals leaves 90 to 98 % with a chance
of 0.6 % if it is 95 %.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe import targets
from steppe.errors import RunError
from steppe.run.temperature_ladder import adapt_ladder, place_rungs

KEY = jax.random.key(0)


def make_lattice():
    return targets.ising_lattice((3, 3), coupling=0.6, field=0.06)


def make_constrained():
    def log_density(x):
        return jnp.where(jnp.sum(x) > 3, -jnp.inf, x @ jnp.arange(6.0))

    return steppe.Target(log_density, steppe.Binary(6))


@pytest.mark.parametrize("make", [make_lattice, make_constrained])
def test_estimates_agree_with_the_sum(make):
    target = make()
    exact = steppe.log_normalizer(target, key=KEY)
    assert exact.standard_error == 0
    ladder = steppe.parallel_tempering(base=steppe.gibbs(), inverse_temperatures=(0.0, 0.25, 0.5, 1.0))
    found = steppe.log_normalizer(target, key=KEY, recipe=ladder, exact=False)
    assert found.annealed is not None
    for estimate in (found.tempered, found.annealed):
        assert 0 < estimate.standard_error < 0.2
        assert abs(estimate.value - exact.value) <= 5 * estimate.standard_error


def test_difference_of_two_is_the_log_bayes_factor():
    weak, strong = (targets.ising_lattice((3, 3), coupling=J) for J in (0.1, 0.6))
    found = [steppe.log_normalizer(target, key=KEY) for target in (weak, strong)]
    factor = found[1] - found[0]
    assert factor.value == pytest.approx(found[1].value - found[0].value)
    assert factor.standard_error == 0


def test_rungs_stand_at_equal_steps_of_the_barrier():
    betas = np.linspace(0, 1, 41)
    density = 3 * np.exp(-3 * betas)
    rejections = (density[1:] + density[:-1]) / 2 * np.diff(betas)
    placed = place_rungs(betas, rejections, 9)
    assert placed[0] == 0
    assert placed[-1] == 1
    steps = np.diff(1 - np.exp(-3 * placed))
    assert steps == pytest.approx(np.full(8, steps.mean()), rel=0.01)


@pytest.mark.parametrize("num_rungs", [None, 3])
def test_a_tuned_ladder_is_left_as_it_is(num_rungs):
    tempered = steppe.parallel_tempering(base=steppe.gibbs(), num_rungs=num_rungs)
    tuned = steppe.tune_ladder(make_lattice(), tempered, key=KEY, num_steps=50)
    block: Any = tuned.recipe.blocks[0]
    assert block.fate == "fixed"
    assert adapt_ladder(tuned.recipe, make_lattice(), KEY) is tuned.recipe


@pytest.mark.slow
def test_adapted_barrier_is_within_a_tenth_of_the_exact_one():
    target = make_lattice()
    values = np.asarray(jax.vmap(target.log_density)(target.domain.enumerate()), float)
    tuned = steppe.tune_ladder(
        target, steppe.parallel_tempering(base=steppe.gibbs()), key=KEY, num_steps=8000
    )
    exact = integrate_barrier(values)
    assert tuned.barrier == pytest.approx(exact, rel=0.1)
    assert len(tuned.inverse_temperatures) >= 2 * exact


def integrate_barrier(values, num_points=400):
    """`Λ = ½ ∫ E|U − U'| dβ` over independent pairs at the same temperature."""
    levels, counts = np.unique(values.round(4), return_counts=True)
    apart = np.abs(levels[:, None] - levels)
    spread = []
    for beta in np.linspace(0, 1, num_points):
        weights = counts * np.exp(beta * (levels - levels.max()))
        weights /= weights.sum()
        spread.append(weights @ apart @ weights)
    return float(np.trapezoid(spread, dx=1 / (num_points - 1)) / 2)


@pytest.mark.slow
def test_intervals_cover_what_they_promise():
    target = make_lattice()
    exact = steppe.log_normalizer(target, key=KEY).value
    ladder = steppe.tune_ladder(target, steppe.parallel_tempering(base=steppe.gibbs()), key=KEY).recipe
    covered = np.zeros(2)
    for seed in range(200):
        key = jax.random.key(seed)
        found = steppe.log_normalizer(target, key=key, recipe=ladder, exact=False, num_draws=1000)
        assert found.annealed is not None
        covered += [one.low <= exact <= one.high for one in (found.tempered, found.annealed)]
    assert (covered >= 180).all(), covered
    assert (covered <= 196).all(), covered


MISTAKES = {
    "not tempered": ({"recipe": steppe.dmala()}, "parallel_tempering"),
    "not from 0": ({"recipe": steppe.parallel_tempering(inverse_temperatures=(0.2, 1.0))}, "from β = 0"),
    "too many states": ({"exact": True}, "sums at most"),
    "one temperature": ({"num_temperatures": 1}, "num_temperatures"),
    "chains": ({"num_annealed": -1}, "num_annealed"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_bad_request_is_refused(name):
    arguments, message = MISTAKES[name]
    target = steppe.Target(jnp.sum, steppe.Binary(40))
    with pytest.raises(RunError, match=message):
        steppe.log_normalizer(target, key=KEY, **arguments)


@pytest.mark.parametrize("value", [jnp.inf, jnp.nan])
def test_log_densities_that_are_none_are_refused(value):
    broken = steppe.Target(lambda x: jnp.where(jnp.sum(x) > 3, value, 0.0), steppe.Binary(4))
    with pytest.raises(RunError, match="finite number, or −inf"):
        steppe.log_normalizer(broken, key=KEY)
    with pytest.raises(RunError, match="finite number, or −inf"):
        steppe.anneal_population(broken, key=KEY, population=200)


def test_no_allowed_state_has_no_sum():
    empty = steppe.Target(lambda x: jnp.sum(x) - jnp.inf, steppe.Binary(3))
    with pytest.raises(RunError, match="all 8 states are forbidden"):
        steppe.log_normalizer(empty, key=KEY)


def test_target_without_allowed_states_is_refused():
    target = steppe.Target(lambda x: jnp.where(jnp.sum(x) > 38, 0.0, -jnp.inf), steppe.Binary(40))
    ladder = steppe.parallel_tempering(base=steppe.gibbs(), inverse_temperatures=(0.0, 1.0))
    with pytest.raises(RunError, match="uniform states"):
        steppe.log_normalizer(target, key=KEY, recipe=ladder, num_draws=20, num_warmup=0)


@pytest.mark.slow
def test_a_reference_leads_to_the_same_evidence_over_a_lower_barrier():
    """Five standard errors: a false alarm in two million."""
    target = steppe.targets.ising_lattice((3, 3), coupling=0.3, field=0.5)
    exact = steppe.log_normalizer(target, key=KEY).value
    settings = {"key": KEY, "exact": False, "num_draws": 1000, "num_annealed": 0}
    near = steppe.parallel_tempering(reference=steppe.mean_field(target))
    found = steppe.log_normalizer(target, recipe=near, **settings)
    plain = steppe.log_normalizer(target, **settings)
    assert abs(found.value - exact) < 5 * found.standard_error
    assert found.barrier < 0.5 * plain.barrier
    rng = np.random.default_rng(0)
    rbm = steppe.targets.rbm(rng.normal(size=(6, 8)), rng.normal(size=6), rng.normal(size=8))
    of_rbm = steppe.log_normalizer(rbm, **settings)
    assert abs(of_rbm.value - steppe.log_normalizer(rbm, key=KEY).value) < 5 * of_rbm.standard_error
