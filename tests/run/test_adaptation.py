"""Warm-up brings a chain to what was asked for, and freezes the numbers that do it.

Every gate averages one statistic over 16 chains × 1000 draws with a fixed seed and compares it with what
was wanted. Standard errors, measured from the spread of the 16 chain means, are 2.6 % of it at an
acceptance of 0.3 (limit 15 %), 2.3 % and 1.8 % at a flip rate of 0.02 (limit 10 %), and at most 1 %
elsewhere. The limits are thus at least 4.4 standard errors away: with 15 degrees of freedom, a false
alarm has probability below 10⁻³ per gate. A search that settles 25 % off is caught with probability
above 0.99.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_runs import TARGET as FOUR_BITS
from small_runs import small_run

import steppe
from steppe.errors import RunError
from steppe.run.adaptation import Adapt
from steppe.run.adaptation.warmup import resolve_adaptation

FIELDS = jax.random.normal(jax.random.key(5), (40,))
TARGET = steppe.Target(lambda x: x @ FIELDS + 0.1 * jnp.sum(x[1:] * x[:-1]), steppe.Binary(40))
MIXED = steppe.Target(
    lambda state: jnp.sum(state["z"]) / 2 - jnp.sum(state["mu"] ** 2) / 2,
    steppe.Product(z=steppe.Binary(2), mu=steppe.Real(2)),
)
COUNTS = {"num_chains": 16, "num_warmup": 1000, "num_draws": 1000, "keep": "stats", "chain_block": 16}


def sampled(recipe, adapt, **options):
    return steppe.sample(TARGET, recipe, key=jax.random.key(3), adapt=adapt, **{**COUNTS, **options}).trace


def mean(trace, name):
    return float(np.mean(trace.statistic(name)))


@pytest.mark.parametrize("wanted", [0.3, pytest.param(0.8, marks=pytest.mark.slow)])
def test_the_acceptance_rate_becomes_the_wanted_one(wanted):
    trace = sampled(steppe.dmala(), Adapt(acceptance=wanted))
    assert mean(trace, "acceptance_rate") == pytest.approx(wanted, rel=0.15)


@pytest.mark.parametrize(
    "recipe", [steppe.dula(), pytest.param(steppe.edula(), marks=pytest.mark.slow)], ids=lambda r: r.name
)
@pytest.mark.parametrize("wanted", [pytest.param(0.02, marks=pytest.mark.slow), 0.15])
def test_the_flip_rate_of_an_unadjusted_sampler_becomes_the_wanted_one(recipe, wanted):
    trace = sampled(recipe, Adapt(flip_rate=wanted))
    assert mean(trace, "num_flips") / 40 == pytest.approx(wanted, rel=0.1)


@pytest.mark.parametrize(
    ("recipe", "wanted"),
    [
        pytest.param(steppe.robust_ensemble(replicas=3, coupling_variance=0.5), 1.5, marks=pytest.mark.slow),
        (steppe.edmala_glu(), 3.0),
        pytest.param(steppe.edmala(), 10.0, marks=pytest.mark.slow),
        pytest.param(steppe.edula(), 4.0, marks=pytest.mark.slow),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_the_distance_of_the_center_becomes_the_wanted_one(recipe, wanted):
    trace = sampled(recipe, Adapt(center_distance=wanted))
    assert mean(trace, "center_distance") == pytest.approx(wanted, rel=0.1)
    variances = trace.statistic("coupling_variance")
    assert (variances == variances[:, :1]).all()


def test_step_size_is_kept_when_no_acceptance_is_wanted():
    trace = sampled(
        steppe.edmala_glu(step_size=0.3), Adapt(acceptance=None, center_distance=3.0), num_draws=10
    )
    assert np.allclose(trace.statistic("step_size"), 0.3)


def test_pooled_chains_share_their_numbers_and_others_do_not():
    pooled = sampled(steppe.dmala(), Adapt(pooled=True), num_warmup=50, num_draws=10)
    alone = sampled(steppe.dmala(), Adapt(), num_warmup=50, num_draws=10)
    assert len(np.unique(pooled.statistic("step_size"))) == 1
    assert len(np.unique(alone.statistic("step_size"))) == COUNTS["num_chains"]


@pytest.mark.slow
def test_pooling_does_not_depend_on_chunks(monkeypatch):
    from steppe.run import engine

    short = {"num_warmup": 50, "num_draws": 10, "chain_block": 4}
    whole = sampled(steppe.dmala(), Adapt(pooled=True), **short)
    monkeypatch.setattr(engine, "FIRST_CHUNK_ROWS", 7)
    monkeypatch.setattr(engine, "CHUNK_SECONDS", 0.0)
    cut = sampled(steppe.dmala(), Adapt(pooled=True), **short)
    assert all((whole.arrays[name] == cut.arrays[name]).all() for name in whole.arrays)


@pytest.mark.parametrize(
    ("recipe", "adapt", "said"),
    [
        (steppe.dula(), Adapt(acceptance=0.3), "flip_rate"),
        (steppe.dmala(), Adapt(flip_rate=0.1), "acceptance"),
        (steppe.gibbs(num_updates=1), Adapt(acceptance=0.3), "no step size"),
        (steppe.gibbs(num_updates=1), Adapt(flip_rate=0.3), "no step size"),
        (steppe.dmala(), Adapt(center_distance=1.0), "center"),
        (steppe.dmala(), 0.5, "adapt"),
        (steppe.dmala(), None, "adapt"),
    ],
)
def test_what_a_sampler_cannot_adapt_is_refused(recipe, adapt, said):
    with pytest.raises(RunError, match=said):
        sampled(recipe, adapt)


@pytest.mark.parametrize("fields", [{"acceptance": 0}, {"acceptance": 1.0}, {"flip_rate": -1}, {"pooled": 1}])
@pytest.mark.parametrize("more", [{}, {"center_distance": float("nan")}])
def test_wishes_out_of_range_are_refused(fields, more):
    with pytest.raises(RunError, match="Adapt"):
        Adapt(**fields, **more)


def test_shards_cannot_pool(tmp_path):
    with pytest.raises(RunError, match="talk"):
        steppe.sample(
            TARGET,
            steppe.dmala(),
            key=jax.random.key(0),
            num_chains=8,
            adapt=Adapt(pooled=True),
            shard=(0, 2),
            out=tmp_path / "run",
        )


def test_the_recipe_of_a_run_carries_what_was_adapted_into_build():
    adapt = Adapt(center_distance=1.5)
    run = small_run(steppe.edmala(center_step_size=0.2, coupling_variance=2.0), adapt=adapt, num_warmup=200)
    found = run.recipe.build(FOUR_BITS).parameters
    last = {name: run.trace.statistic(name)[:, -1] for name in ("step_size", "coupling_variance")}
    for name, values in last.items():
        np.testing.assert_allclose(found[name], np.exp(np.log(values).mean()), rtol=1e-5)
    np.testing.assert_allclose(found["center_step_size"], 0.1 * found["coupling_variance"], rtol=1e-5)


def test_the_recipe_of_a_run_without_adaptation_is_the_one_given():
    given = steppe.edmala(step_size=0.3)
    found = small_run(given, adapt=False).recipe.build(FOUR_BITS).parameters
    for name, value in given.build(FOUR_BITS).parameters.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-6)  # through a mean of logarithms


def test_after_warm_up_every_search_stays_at_its_average():
    sampler = steppe.mixed(steppe.dmala()).build(MIXED)
    adaptation = resolve_adaptation(True, sampler)
    found = adaptation.init(sampler)
    moved = found._replace(
        **{
            name: search._replace(log_value=jnp.asarray(1.0), log_average=jnp.asarray(-2.0))
            for name, search in found._asdict().items()
            if search is not None
        }
    )
    frozen = adaptation.freeze(moved)
    assert float(frozen.step.log_value) == float(frozen.real_step.log_value) == -2.0
    assert adaptation.freeze(found._replace(step=None, real_step=None)) == (None, None, None)
