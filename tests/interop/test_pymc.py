"""PyMC: the log-density of a model, with differences in place of a gradient that is zero."""

import os

import jax
import numpy as np
import pytest
import scipy.stats

import steppe
from steppe.errors import GradientError, TargetError
from steppe.interop import from_pymc

BIT_CHANCES = np.asarray([0.2, 0.5, 0.7])
CATEGORY_CHANCES = np.asarray([0.2, 0.3, 0.5])


@pytest.fixture(scope="module")
def pymc():
    return pytest.importorskip("pymc", reason="needs PyMC")


def mixed_model(pymc):
    with pymc.Model() as model:
        bits = pymc.Bernoulli("bits", p=BIT_CHANCES)
        category = pymc.Categorical("category", p=CATEGORY_CHANCES)
        number = pymc.Binomial("number", n=3, p=0.4)
        start = pymc.DiscreteUniform("start", 1, 4)
        pymc.Normal("seen", mu=bits.sum() + category + number * start, sigma=1.5, observed=2.0)
    return model


def expected_log_density(values):
    """The same model written with SciPy."""
    mean = values["bits"].sum() + values["category"] + values["number"] * values["start"]
    return (
        scipy.stats.bernoulli.logpmf(values["bits"], BIT_CHANCES).sum()
        + np.log(CATEGORY_CHANCES[values["category"]])
        + scipy.stats.binom.logpmf(values["number"], 3, 0.4)
        + scipy.stats.randint.logpmf(values["start"], 1, 5)
        + scipy.stats.norm.logpdf(2.0, mean, 1.5)
    )


def bits_model(pymc):
    with pymc.Model() as model:
        bits = pymc.Bernoulli("bits", p=BIT_CHANCES)
        pymc.Normal("seen", mu=bits.sum(), sigma=1.0, observed=2.0)
    return model


def test_bridge_to_pymc_leaves_environment_and_precision_as_they_were(pymc):
    before = dict(os.environ), jax.config.read("jax_enable_x64"), jax.device_count()
    from_pymc(bits_model(pymc))
    assert (dict(os.environ), jax.config.read("jax_enable_x64"), jax.device_count()) == before


@pytest.fixture(scope="module")
def target(pymc):
    return from_pymc(mixed_model(pymc))


def test_log_density_is_that_of_the_model_and_slopes_are_exact_differences(target):
    assert target.domain == steppe.Categorical(6, [2, 2, 2, 3, 4, 4])
    positions = target.domain.draw(jax.random.key(0), (4,))
    both = jax.jit(jax.vmap(lambda x: (target.value_and_grad(x), target.differences(x))))
    (values, gradients), tables = both(positions)
    for row, position in enumerate(positions):
        named = jax.tree.map(np.asarray, target.unpack(position))
        # Sums of ten float32 terms of at most 100.
        np.testing.assert_allclose(values[row], expected_log_density(named), rtol=1e-5)
        slopes = target.domain.slopes(position, gradients[row])
        exists = target.domain.level_mask
        np.testing.assert_allclose(slopes[exists], tables[row][exists], rtol=1e-4, atol=1e-4)


def test_values_of_the_model_become_the_position_they_came_from(target):
    positions = target.domain.draw(jax.random.key(1), (5,))
    packed = [target.packing.pack(target.unpack(position)) for position in positions]
    np.testing.assert_array_equal(packed, positions)


def test_gradient_of_bernoulli_is_exactly_zero_in_pymc(pymc):
    target = from_pymc(bits_model(pymc), gradient="autograd")
    positions = target.domain.enumerate()
    values, gradients = jax.jit(jax.vmap(target.value_and_grad))(positions)
    assert np.ptp(values) > 1
    assert not np.any(gradients)


@pytest.mark.slow
def test_audit_finds_the_zero_gradient_of_bernoulli(pymc):
    with pytest.raises(GradientError, match="exactly zero"):
        steppe.audit_gradient(from_pymc(bits_model(pymc), gradient="autograd"), jax.random.key(0))


@pytest.mark.slow
def test_draws_of_a_run_carry_the_names_of_the_model(pymc):
    target = from_pymc(bits_model(pymc))
    run = steppe.sample(
        target, steppe.dmala(), key=jax.random.key(0), num_chains=2, num_warmup=10, num_draws=20
    )
    draws = target.draws(run)["bits"]
    assert draws.shape == (2, 20, 3)
    np.testing.assert_array_equal(draws, run.trace.levels())


def one_variable(pymc, make):
    with pymc.Model() as model:
        make(pymc)
    return model


def dependent_bounds(pymc):
    top = pymc.DiscreteUniform("top", 1, 4)
    pymc.Binomial("count", n=top, p=0.5)


REFUSED = {
    "unbounded": (lambda pm: pm.Poisson("count", 2.0), r"Site 'count' \(Poisson\).*bounded.*Categorical"),
    "continuous": (lambda pm: pm.Normal("mean"), r"Site 'mean' \(Normal\) is continuous.*pymc.do"),
    "bounds of a variable": (dependent_bounds, "bounds of site 'count' depend on other variables"),
    "no choice": (lambda pm: pm.DiscreteUniform("only", 3, 3), "Site 'only' can only be 3"),
    "nothing free": (lambda pm: None, "no free variable"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case, pymc):
    make, message = REFUSED[case]
    with pytest.raises(TargetError, match=message):
        from_pymc(one_variable(pymc, make))


def test_category_is_refused_where_it_would_have_to_be_a_real_number(pymc):
    model = one_variable(pymc, lambda pm: pm.Categorical("color", p=CATEGORY_CHANCES))
    with pytest.raises(TargetError, match=r"Site 'color' is categorical.*gradient='differences'"):
        from_pymc(model, gradient="autograd")


def test_refuses_what_is_no_model(pymc):
    with pytest.raises(TargetError, match=r"needs a `pymc.Model`; got int"):
        from_pymc(3)
