"""The audit speaks up when a gradient says nothing, and is silent otherwise."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from exact_targets import target_named
from steppe.errors import GradientError, GradientWarning, PrecisionWarning, TargetError
from steppe.samplers import ALL_RECIPES

KEY = jax.random.key(0)
BITS = steppe.Binary(10)
WEIGHTS = np.linspace(-1, 1, 10)


def linear(position):
    return WEIGHTS @ position


def by_comparison(position):
    return jnp.sum(jnp.where(position == 1, WEIGHTS, 0.0))


def wiggling(position):
    """Right on the lattice; between its points the slope is that of a wave of amplitude 3."""
    return linear(position) + 3 * jnp.sum(jnp.cos(jnp.arange(10.0)) * jnp.sin(2 * jnp.pi * position))


def test_zero_gradient_is_an_error_that_names_the_size_of_the_differences():
    with pytest.raises(GradientError, match=r"exactly zero .* by up to"):
        steppe.audit_gradient(steppe.Target(by_comparison, BITS), KEY)


def test_gradient_that_is_not_finite_is_an_error():
    target = steppe.Target(lambda x: jnp.sum(jnp.sqrt(x)), BITS)
    with pytest.raises(GradientError, match="not finite"):
        steppe.audit_gradient(target, KEY)


def test_uninformative_gradient_is_warned_of_with_its_figures():
    target = steppe.Target(wiggling, BITS)
    with pytest.warns(GradientWarning, match=r"correlation -?0\.\d\d over 80 changes"):
        audit = steppe.audit_gradient(target, KEY)
    assert abs(audit.correlation) < 0.2
    assert audit.mean_error > audit.mean_difference


def test_large_offset_is_warned_of_in_single_precision():
    with pytest.warns(PrecisionWarning, match=r"0\.062 apart"):
        audit = steppe.audit_gradient(steppe.Target(lambda x: linear(x) + 1e6, BITS), KEY)
    assert audit.resolution == 2.0**-4


@pytest.mark.usefixtures("float64")
def test_large_offset_is_no_matter_in_double_precision():
    audit = steppe.audit_gradient(steppe.Target(lambda x: linear(x) + 1e6, BITS), KEY)
    assert audit.resolution < 1e-9
    assert audit.correlation == pytest.approx(1.0)


# Spins share their code with bits, one-hot sites of equal size with ragged ones.
IN_FULL_SUITE = [pytest.param(name, marks=pytest.mark.slow) for name in ("spin", "categorical")]


@pytest.mark.parametrize("domain", ["binary", "ordinal", "ragged", *IN_FULL_SUITE])
def test_smooth_target_is_audited_in_silence(domain):
    audit = steppe.audit_gradient(target_named(domain, "smooth"), KEY)  # a warning would fail the test
    assert audit.correlation > 0.5
    assert audit.num_pairs > 0


def test_figures_of_a_linear_target_are_exact():
    audit = steppe.audit_gradient(steppe.Target(linear, BITS), KEY)
    assert audit.num_pairs == 8 * 10  # eight states, every flip
    assert audit.correlation == pytest.approx(1.0)
    assert audit.mean_error == pytest.approx(0.0, abs=1e-6)
    assert audit.mean_difference == pytest.approx(np.abs(WEIGHTS).mean() / 2, rel=1e-5)


def test_constant_target_is_audited_in_silence():
    audit = steppe.audit_gradient(steppe.Target(lambda x: 0 * jnp.sum(x), BITS), KEY)
    assert audit.mean_difference == 0


def test_states_outside_a_constraint_are_left_out():
    target = steppe.Target(linear, BITS, is_valid=lambda x: jnp.sum(x) < 6)
    audit = steppe.audit_gradient(target, KEY)
    assert 0 < audit.num_pairs < 80
    assert audit.correlation == pytest.approx(1.0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_broken_log_density_is_an_error_of_the_target(value):
    target = steppe.Target(lambda x: jnp.where(x[0] > 0, value, jnp.sum(x)), BITS)
    with pytest.raises(TargetError, match="NaN or"):
        steppe.audit_gradient(target, KEY)


@pytest.mark.parametrize("name", ALL_RECIPES)
def test_build_audits_every_recipe_that_is_guided_by_the_gradient(name):
    recipe, target = ALL_RECIPES[name](), steppe.Target(by_comparison, BITS)
    if name in ("dula", "edula", "edula_glu"):
        with pytest.raises(GradientError):
            recipe.build(target)
    elif recipe.uses_gradient:
        with pytest.warns(GradientWarning, match="exactly zero"):
            recipe.build(target)
    else:
        recipe.build(target)
    recipe.build(target, audit=False)


def test_an_adjusted_recipe_is_refused_where_the_gradient_is_not_finite():
    with pytest.raises(GradientError, match="not finite"):
        steppe.dmala().build(steppe.Target(lambda x: jnp.sum(jnp.sqrt(x)), BITS))


def test_an_adjusted_recipe_is_refused_where_no_gradient_can_be_taken():
    target = steppe.Target(lambda x: jax.lax.fori_loop(0, x.astype(int)[0], lambda _, u: u + x[1], 0.0), BITS)
    with pytest.raises(GradientError, match="cannot be taken"):
        steppe.gwg().build(target)


def test_an_adjusted_recipe_is_warned_of_where_the_gradient_explains_nothing():
    """A step in every site, the gradient of which belongs to a wave: as many nats off as there are."""
    target = steppe.Target(lambda x: 5 * wiggling(x) - 4 * linear(x), BITS)
    with pytest.warns(GradientWarning, match=r"next to nothing .* nats .*`gibbs\(\)`"):
        steppe.gwg().build(target)


def test_the_next_levels_are_compared_where_levels_are_ordered():
    """A Poisson distribution: far away its gradient is nats off, next to a count it says the odds."""
    log_density = lambda x: jnp.sum(x * jnp.log(30.0) - jax.scipy.special.gammaln(x + 1))  # noqa: E731
    target = steppe.Target(log_density, steppe.Counts(3, max_count=60))
    steppe.dmala().build(target)  # a warning would fail the test
    assert steppe.audit_gradient(target, KEY).explained > 0.8


INFORMED = {"dmala": steppe.dmala, "gwg": steppe.gwg, "pas": steppe.pas}


def tabled(log_density) -> steppe.Target:
    return steppe.Target(log_density, BITS, differences=steppe.Target(log_density, BITS).differences)


@pytest.mark.parametrize("name", INFORMED)
def test_exact_differences_are_taken_where_there_are_tables_and_the_gradient_explains_too_little(name):
    sampler = INFORMED[name]().build(tabled(by_comparison))  # a warning would fail the test
    assert not sampler.recipe.uses_gradient
    assert sampler.init(jnp.zeros(10)).gradient is None


@pytest.mark.parametrize("name", INFORMED)
def test_the_gradient_is_taken_where_it_says_enough_or_nothing_better_is_there(name):
    assert INFORMED[name]().build(tabled(linear)).recipe.uses_gradient
    with pytest.warns(GradientWarning, match="exactly zero"):
        assert INFORMED[name]().build(steppe.Target(by_comparison, BITS)).recipe.uses_gradient


@pytest.mark.parametrize("name", INFORMED)
def test_a_gradient_that_is_not_used_is_not_audited(name):
    INFORMED[name](differences="exact").build(steppe.Target(by_comparison, BITS))
    INFORMED[name](differences="exact").build(steppe.Target(lambda x: jnp.sum(jnp.sqrt(x)), BITS))


def test_tables_serve_where_no_gradient_can_be_taken():
    def counting(x):
        return jax.lax.fori_loop(0, x.astype(int)[0], lambda _, u: u + x[1], 0.0)

    sampler = steppe.dmala().build(tabled(counting))
    state, _ = jax.jit(sampler.step)(KEY, sampler.init(jnp.ones(10)))
    assert state.gradient is None


def test_a_constant_error_per_change_is_not_held_against_an_adjusted_recipe():
    """Its step size mends it: the first order of a square is off by the same amount at every flip."""
    steppe.dmala().build(steppe.Target(lambda x: -10 * (jnp.sum(x) - 5) ** 2, BITS))


# A constant slope on every level of a one-hot site predicts nothing, like a zero gradient.
def by_comparison_with_a_constant_slope(position):
    return jnp.sum(jnp.where(position == 1, jnp.arange(3.0), 0.0)) + 3 * jnp.sum(position)


def test_predictions_that_never_vary_are_not_taken_for_perfect():
    target = steppe.Target(by_comparison_with_a_constant_slope, steppe.Categorical(4, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((GradientError, GradientWarning)):
            steppe.audit_gradient(target, KEY)


# ---- Multilinear log-densities ----------------------------------------------------------------------------

rng = np.random.default_rng(4)
COUPLINGS = jnp.asarray(rng.normal(size=(4, 3, 4, 3)) * (1 - np.eye(4))[:, None, :, None])


def pair_sum(position):
    return jnp.einsum("ik,ikjl,jl->", position, COUPLINGS, position) + position[0, 1] * position[2, 2]


def squared_sum(position):
    return jnp.sum(position[:, 0]) ** 2


def test_gradient_of_a_multilinear_target_is_its_table_of_differences():
    domain = steppe.Categorical(4, 3)
    plain, declared = (steppe.Target(pair_sum, domain, multilinear=m) for m in (False, True))
    position = domain.draw(jax.random.key(2))
    assert (plain.has_differences, declared.has_differences) == (False, True)
    np.testing.assert_allclose(declared.differences(position), plain.differences(position), atol=1e-4)
    counts = [steppe.gibbs(num_updates=4).build(target).evaluations_per_step for target in (plain, declared)]
    assert counts == [12, 1]  # levels of every site; a sweep that follows second derivatives is one table


def test_target_that_is_not_multilinear_is_refused_when_a_recipe_is_built():
    declared = steppe.Target(squared_sum, steppe.Categorical(4, 3), multilinear=True)
    with pytest.raises(TargetError, match="not linear in every single site"):
        steppe.gibbs().build(declared)
    with pytest.raises(TargetError, match="True or False"):
        steppe.Target(pair_sum, steppe.Categorical(4, 3), multilinear="yes")  # pyright: ignore[reportArgumentType]
