"""`robust`: the value after a disturbance is that by enumeration, and its derived forms are exact."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import steppe
from exact_targets import DOMAINS, polynomial_target
from steppe.diagnostics.flatness import local_entropy_enumerated, single_site_differences
from steppe.errors import TargetError
from steppe.robust.averages import FlippedAverage, SingleChangeAverage
from steppe.robust.risk import Risk
from steppe.samplers.flip_fraction import coupling_variance_from_flip_fraction
from steppe.targets import (
    ising,
    ising_lattice,
    max_cut,
    paper_bernoulli,
    planted_mixture,
    potts,
    potts_tables,
    qubo,
    tsp_paper,
)
from steppe.targets.pairwise import Pairwise
from tiers import cases

RNG = np.random.default_rng(0)
MATRIX = np.triu(RNG.normal(size=(5, 5)), 1)
RATES = np.array([0.0, 0.1, 0.3, 0.5, 1.0])
SYMMETRIC = MATRIX + MATRIX.T
RING = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]])
PAIRWISE = {
    "qubo": qubo(MATRIX + np.diag(RNG.normal(size=5)), offset=1.5, inverse_temperature=2.0),
    "spins": ising(SYMMETRIC, RNG.normal(size=5)),
    "bits as spins": ising(SYMMETRIC, RNG.normal(size=5), spins=False),
    "cut": max_cut(SYMMETRIC, spins=True),
    "lattice": ising_lattice(5, 0.7, RNG.normal(size=5)),
    "graph": steppe.targets.ising_graph(RING, RNG.normal(size=5), field=RNG.normal(size=5)),
    "potts": potts(RING, 3, RNG.normal(size=5), RNG.normal(size=(5, 3))),
    "tables": potts_tables(RNG.normal(size=(5, 3, 3)), RNG.normal(size=(5, 3)), edges=RING),
}


def cubic_bits(x):
    return 2 * x[0] * x[1] * x[2] - x[1] * x[3] + 0.3 * x[0] - 1.5 * x[2] * x[3] * x[0]


def one_hot_product(weights, rows):
    return (weights[0] @ rows[0]) * (weights[1] @ rows[1]) - (weights[2] @ rows[2]) * (weights[3] @ rows[0])


WAYS = {
    "rate": {"flip_rate": 0.2},
    "rates": {"flip_rate": RATES},
    "one": {"flips": 1},
    "three": {"flips": 3},
}
WEIGHTS = jnp.asarray(RNG.normal(size=(4, 4)), jnp.float32)
MULTILINEAR = {
    "bits": steppe.Target(cubic_bits, steppe.Binary(4), multilinear=True),
    "ordinal": steppe.Target(cubic_bits, steppe.Ordinal(4, [-1.0, 0.1, 0.8]), multilinear=True),
    "ragged": steppe.Target(
        Partial(one_hot_product, WEIGHTS), steppe.Categorical(3, [2, 3, 4]), multilinear=True
    ),
}


def flip_probabilities(domain, rates):
    """Matrix over all states, row before and column after."""
    table = np.ones((1, 1))
    for size, rate in zip(domain.num_levels, np.broadcast_to(rates, domain.num_sites), strict=True):
        table = np.kron(table, (1 - rate) * np.eye(size) + rate / (size - 1) * (1 - np.eye(size)))
    return table


def choice_probabilities(domain, flips):
    """The same where a number of sites flips."""
    choices = list(itertools.combinations(range(domain.num_sites), flips))
    chosen = [np.isin(np.arange(domain.num_sites), sites).astype(float) for sites in choices]
    return np.mean([flip_probabilities(domain, rates) for rates in chosen], axis=0)


def values_of(target):
    return np.asarray(evaluate(target, target.domain.enumerate()), float)


class Plain(steppe.Target):
    """Another target without anything but its log-density."""

    base: steppe.Target

    def log_density(self, position):
        return self.base.log_density(position)


@jax.jit
def evaluate(target, states):
    return jax.vmap(target.log_density)(states)


@jax.jit
def tabulate(target, states):
    return jax.vmap(target.differences)(states)


def check_derived_forms(target, states=None):
    """Gradient of multilinear targets, differences and incremental form agree with evaluated neighbours."""
    plain, domain = Plain(target.domain, target), target.domain
    states = domain.enumerate()[::7] if states is None else states
    expected = np.asarray(tabulate(plain, states))
    np.testing.assert_allclose(tabulate(target, states), expected, atol=2e-4)
    if target.is_multilinear or isinstance(target, Pairwise):
        gradients = jax.vmap(target.value_and_grad)(states)[1]
        slopes = np.where(domain.level_mask, jax.vmap(domain.slopes)(states, gradients), -np.inf)
        np.testing.assert_allclose(slopes, expected, atol=2e-4)
    if target.incremental is not None:
        before, after = follow_a_change(target, states)
        mask = np.broadcast_to(domain.level_mask, before.shape)
        moved = jax.vmap(lambda state: domain.replace_sites(state, jnp.asarray(1), jnp.asarray(1)))(states)
        later = np.asarray(tabulate(plain, moved))
        np.testing.assert_allclose(np.asarray(before)[mask], expected[mask], atol=2e-4)
        np.testing.assert_allclose(np.asarray(after)[mask], later[mask], atol=2e-4)


@jax.jit
def follow_a_change(target, states):
    """Tables from the incremental form, before and after site 1 takes level 1."""
    init, differences, update, *_ = target.incremental
    every, site = jnp.arange(target.domain.num_sites), jnp.asarray(1)

    def one(state):
        cache = init(state)
        moved = target.domain.replace_sites(state, site, site)
        later = update(cache, state, site, site)
        return differences(cache, state, every), differences(later, moved, every)

    return jax.vmap(one)(states)


@pytest.mark.parametrize("name", cases(PAIRWISE, fast=("qubo", "potts")))
@pytest.mark.parametrize("how", cases(WAYS, fast=("rates", "three")))
def test_mean_of_pairs_after_flips_is_again_pairwise_and_exact(name, how):
    base, stated = PAIRWISE[name], WAYS[how]
    after = steppe.robust(base, **stated)
    rate, flips = stated.get("flip_rate"), stated.get("flips")
    kernel = choice_probabilities(base.domain, flips) if flips else flip_probabilities(base.domain, rate)
    assert type(after) is type(base)
    np.testing.assert_allclose(values_of(after), kernel @ values_of(base), atol=2e-5)
    check_derived_forms(after)


@pytest.mark.slow
def test_recommended_sampler_of_damped_pairs_is_that_of_the_base():
    glass = ising_lattice((4, 4), -0.4, 0.3)
    assert (
        steppe.recommend(steppe.robust(glass, flip_rate=0.1)).recipe.name
        == steppe.recommend(glass).recipe.name
    )
    run = steppe.sample(
        steppe.robust(glass, flip_rate=0.1), key=jax.random.key(0), num_chains=2, num_warmup=5, num_draws=5
    )
    assert run.levels.shape == (2, 5, 16)


@pytest.mark.parametrize("name", cases(MULTILINEAR, fast=("ragged",)))
@pytest.mark.parametrize("how", [{"flip_rate": 0.3}, {"flips": 1}], ids=str)
def test_mean_of_multilinear_targets_after_flips_is_multilinear_and_exact(name, how):
    base = MULTILINEAR[name]
    after = steppe.robust(base, **how)
    rate = how.get("flip_rate")
    kernel = flip_probabilities(base.domain, rate) if rate else choice_probabilities(base.domain, 1)
    np.testing.assert_allclose(values_of(after), kernel @ values_of(base), atol=1e-5)
    assert after.is_multilinear
    check_derived_forms(after)
    steppe.dmala().build(after)  # compares its gradient with differences


RISKS = ["mean", "quantile:0.25", "cvar:0.3", "worst"]


def risk_by_hand(risk, values, probabilities):
    values, probabilities = values[probabilities > 0], probabilities[probabilities > 0]
    order = np.argsort(values)
    values, probabilities = values[order], probabilities[order]
    if risk == "mean":
        return values @ probabilities
    if risk == "worst":
        return values[0]
    level = float(risk.split(":")[1])
    reached = np.cumsum(probabilities)
    if risk.startswith("quantile"):
        return values[np.argmax(reached >= level - 1e-6)]
    taken = np.clip(level - (reached - probabilities), 0, probabilities)
    return values @ taken / level


@pytest.mark.parametrize("risk", cases(RISKS, fast=("mean", "quantile:0.25")))
@pytest.mark.parametrize("name", cases(("binary", "ordinal", "ragged"), fast=("ragged",)))
def test_single_changes_are_weighed_exactly(name, risk):
    base = polynomial_target(DOMAINS[name], 2.0)
    after = steppe.robust(base, flips=1, risk=risk)
    assert isinstance(after, SingleChangeAverage)
    values, kernel = values_of(base), choice_probabilities(base.domain, 1)
    expected = [risk_by_hand(risk, values, row) for row in kernel]
    np.testing.assert_allclose(values_of(after), expected, atol=1e-4)


@pytest.mark.slow
def test_single_moves_of_a_permutation_are_weighed_exactly():
    cities = tsp_paper("permutation")
    order = jnp.arange(8.0)
    found = float(steppe.robust(cities, flips=1).log_density(order))
    values = {"swap": [], "two_opt": [], "insert": []}
    for i, j in itertools.combinations(range(8), 2):
        swapped, turned = np.arange(8), np.arange(8)
        swapped[[i, j]] = j, i
        turned[i : j + 1] = turned[i : j + 1][::-1]
        values["swap"].append(swapped)
        values["two_opt"].append(turned)
        for a, b in ((i, j), (j, i)):
            rest = np.delete(np.arange(8), a)
            values["insert"].append(np.insert(rest, b, a))
    means = [float(jnp.mean(jax.vmap(cities.log_density)(jnp.asarray(v, float)))) for v in values.values()]
    assert found == pytest.approx(np.mean(means), rel=1e-5)
    several: Any = steppe.robust(cities, flips=2, num_samples=2000)
    error = float(several.standard_error(order))
    again = steppe.robust(cities, flips=2, num_samples=2000, key=jax.random.key(1))
    assert abs(float(several.log_density(order) - again.log_density(order))) < 5 * 2**0.5 * error


@pytest.mark.parametrize("risk", cases(RISKS, fast=("cvar:0.3",)))
@pytest.mark.parametrize("name", cases(DOMAINS, fast=("binary", "ragged")))
def test_derived_forms_of_drawn_flips_are_exact(name, risk):
    base = polynomial_target(DOMAINS[name], 1.0)
    own = steppe.Target(base.log_density, base.domain, differences=base.differences)
    after = steppe.robust(own, flip_rate=0.4, risk=risk, num_samples=5)
    assert isinstance(after, FlippedAverage)
    assert after.has_differences
    check_derived_forms(after)


@pytest.mark.parametrize("risk", cases(RISKS, fast=("quantile:0.25",)))
def test_incremental_form_of_drawn_flips_follows_changes(risk):
    after = steppe.robust(PAIRWISE["potts"], flip_rate=0.3, risk=risk, num_samples=4)
    if risk == "mean":
        after = FlippedAverage(
            PAIRWISE["potts"].domain, PAIRWISE["potts"], Risk("mean"), jnp.asarray(RNG.integers(0, 3, (4, 5)))
        )
    assert after.incremental is not None
    check_derived_forms(after, after.domain.enumerate()[::40])


@pytest.mark.slow
def test_gradient_of_drawn_flips_is_that_of_the_affine_maps():
    after = FlippedAverage(
        MULTILINEAR["bits"].domain, MULTILINEAR["bits"], Risk("mean"), jnp.asarray(RNG.integers(0, 2, (3, 4)))
    )
    states = after.domain.enumerate()
    gradients = jax.vmap(after.value_and_grad)(states)[1]
    plain = steppe.Target(after.log_density, after.domain)
    slopes = jax.vmap(after.domain.slopes)(states, gradients)
    np.testing.assert_allclose(slopes, jax.vmap(plain.differences)(states), atol=1e-5)


@pytest.mark.parametrize("how", [{"flip_rate": 0.3}, {"flips": 2}], ids=str)
@pytest.mark.parametrize("name", cases(DOMAINS, fast=("ordinal",)))
def test_drawn_flips_estimate_the_expectation_with_the_error_they_state(name, how):
    # 5 domains x 2 ways, one state each: |z| > 4.5 with probability 7e-5 in all.
    base = polynomial_target(DOMAINS[name], 1.0)
    state, flips = base.domain.enumerate()[3], how.get("flips")
    kernel = choice_probabilities(base.domain, flips) if flips else flip_probabilities(base.domain, 0.3)
    measured = steppe.measure_robustness(base, state, key=jax.random.key(3), num_samples=4000, **how)
    exact = kernel[3] @ values_of(base)
    spread = (kernel[3] @ (values_of(base) - exact) ** 2) ** 0.5
    assert measured.standard_error[0] == pytest.approx(spread / 4000**0.5, rel=0.15)
    assert abs(measured.value[0] - exact) < 4.5 * measured.standard_error[0]


def test_measured_robustness_is_exact_where_there_is_a_closed_form():
    base = PAIRWISE["spins"]
    states = base.domain.enumerate()[:3]
    measured = steppe.measure_robustness(base, states, key=jax.random.key(0), flip_rate=0.2, num_samples=50)
    np.testing.assert_allclose(measured.value, values_of(steppe.robust(base, flip_rate=0.2))[:3], atol=1e-5)
    assert (measured.standard_error == 0).all()
    assert measured.outcomes.shape == (3, 50)


# ---- limits: roughness and local entropy ------------------------------------------------------------


def test_at_a_mode_the_mean_after_one_flip_is_the_roughness_tilted_density_of_strength_one(float64):
    base = paper_bernoulli()
    states = base.domain.enumerate()
    is_mode = np.asarray(jax.vmap(base.differences)(states)).max(axis=(1, 2)) <= 0
    after = steppe.robust(base, flips=1)
    tilted = steppe.roughness_tilted(strength=1.0, differences="exact").stationary(base)
    np.testing.assert_allclose(
        values_of(after)[is_mode], np.asarray(jax.vmap(tilted.log_prob)(states))[is_mode], atol=1e-6
    )
    assert is_mode.sum() == 4


def test_slope_of_the_mean_at_flip_rate_zero_is_minus_the_sum_of_drops(float64):
    base = planted_mixture().target
    state = jnp.asarray(planted_mixture().patterns[6], float)
    values, row = values_of(base), int(base.domain.index(state))
    roughness = single_site_differences(base, state, exact=False).mean_absolute
    for rate, tolerance in ((1e-3, 5e-3), (1e-5, 5e-5)):
        after = flip_probabilities(base.domain, rate)[row] @ values
        assert (after - values[row]) / rate == pytest.approx(-10 * float(roughness), rel=tolerance)


def test_local_entropy_is_the_log_of_the_mean_of_exp_u_after_flips(float64):
    base, rate = planted_mixture().target, 0.1
    states = base.domain.enumerate()[::100]
    variance = coupling_variance_from_flip_fraction(rate)
    entropy = local_entropy_enumerated(base, states, variance).value
    kernel = flip_probabilities(base.domain, rate)[::100]
    values = values_of(base)
    np.testing.assert_allclose(entropy + 10 * np.log(1 - rate), np.log(kernel @ np.exp(values)), atol=1e-6)
    # Jensen: the mean is less; as U is scaled down, the two agree.
    mean = kernel @ values
    assert (mean <= entropy + 10 * np.log(1 - rate)).all()
    for scale in (1e-2, 1e-4):
        flattened = np.log(kernel @ np.exp(scale * values)) / scale
        np.testing.assert_allclose(flattened, mean, atol=30 * scale)


# ---- scenarios, own functions, constraints ------------------------------------------------------------


def quadratic(m, x):
    return -(x @ m @ x)


def scenario(key):
    noise = jax.random.normal(key, (5, 5))
    return steppe.Target(Partial(quadratic, jnp.asarray(MATRIX, jnp.float32) + 0.5 * noise), steppe.Binary(5))


SCENARIOS = [scenario(key) for key in jax.random.split(jax.random.key(5), 6)]
NOMINAL = steppe.Target(Partial(quadratic, jnp.asarray(MATRIX, jnp.float32)), steppe.Binary(5))


@pytest.mark.parametrize("risk", cases(RISKS, fast=("worst",)))
def test_risk_over_scenarios_is_that_of_their_values(risk):
    after = steppe.robust(NOMINAL, scenarios=SCENARIOS, risk=risk)
    values = np.stack([values_of(one) for one in SCENARIOS])
    expected = [risk_by_hand(risk, column, np.full(6, 1 / 6)) for column in values.T]
    np.testing.assert_allclose(values_of(after), expected, atol=1e-5)
    pairs = [qubo(MATRIX + 0.5 * RNG.normal(size=(5, 5))) for _ in range(3)]
    derived = steppe.robust(pairs[0], scenarios=pairs, risk=risk)
    assert derived.has_differences
    assert derived.incremental is not None
    check_derived_forms(derived)
    if risk == "mean":
        gradient = derived.value_and_grad(jnp.ones(5))[1]
        np.testing.assert_allclose(
            gradient, sum(p.value_and_grad(jnp.ones(5))[1] for p in pairs) / 3, rtol=1e-5
        )


@pytest.mark.slow
def test_scenarios_of_a_function_are_drawn_in_one_program_and_fresh_for_another_key():
    first, second = (
        steppe.robust(NOMINAL, scenario=scenario, num_samples=8, key=jax.random.key(k)) for k in (0, 1)
    )
    np.testing.assert_allclose(
        values_of(first),
        np.mean([values_of(scenario(k)) for k in jax.random.split(jax.random.key(0), 8)], 0),
        atol=1e-4,
    )
    assert not np.allclose(values_of(first), values_of(second))


@pytest.mark.slow
def test_repair_is_done_after_the_disturbance_is_known():
    def switch_off(position, now):  # one step of what the user would do: undo the worst bit
        return now.domain.replace_sites(
            position, *jnp.unravel_index(jnp.argmax(now.differences(position)), (5, 2))
        )

    after = steppe.robust(NOMINAL, scenarios=SCENARIOS, repair=switch_off)
    without = steppe.robust(NOMINAL, scenarios=SCENARIOS)
    assert (values_of(after) >= values_of(without) - 1e-6).all()
    state = NOMINAL.domain.enumerate()[11]
    best = [float(jnp.max(one.differences(state)) + one.log_density(state)) for one in SCENARIOS]
    assert float(after.log_density(state)) == pytest.approx(np.mean(best), rel=1e-5)
    flipped = steppe.robust(NOMINAL, flips=2, repair=switch_off, num_samples=16)
    assert float(flipped.log_density(state)) >= float(
        steppe.robust(NOMINAL, flips=1, risk="worst").log_density(state)
    )


def rotate(key, position):
    return jnp.roll(position, jax.random.randint(key, (), 1, 3))


def test_own_disturbance_meets_every_position_with_the_same_keys():
    after = steppe.robust(NOMINAL, disturb=rotate, num_samples=6)
    state, keys = NOMINAL.domain.enumerate()[11], jax.random.split(jax.random.key(0), 6)
    expected = np.mean([float(NOMINAL.log_density(rotate(key, state))) for key in keys])
    assert float(after.log_density(state)) == pytest.approx(expected, rel=1e-5)


KNAPSACK = steppe.Target(jnp.sum, steppe.Binary(6), is_valid=lambda x: jnp.sum(x) <= 3)


def test_flips_that_break_the_constraint_do_not_happen_and_are_counted():
    full = jnp.asarray([1.0, 1, 1, 0, 0, 0])
    after = steppe.robust(KNAPSACK, flips=1)
    assert float(after.log_density(full)) == 2.0  # one of three comes out; none fits in
    assert float(after.log_density(jnp.ones(6))) == -np.inf
    assert after.has_constraint
    measured = steppe.measure_robustness(KNAPSACK, full, key=jax.random.key(0), flips=1)
    assert measured.broken_fraction[0] == 0.5
    drawn = steppe.measure_robustness(KNAPSACK, full, key=jax.random.key(0), flips=2, num_samples=4000)
    assert drawn.broken_fraction[0] == pytest.approx(3 / 15, abs=0.03)  # both of those that are out
    assert drawn.value[0] == pytest.approx((3 * 1 + 9 * 3) / 12, abs=0.1)
    out = steppe.robust(KNAPSACK, scenarios=[KNAPSACK])
    assert float(out.log_density(full)) == 3.0


def turn_off(key, position: Any):
    return {**position, "on": 1 - position["on"]}


def test_sites_with_names_and_shapes_are_given_as_the_log_density_takes_them():
    domain = steppe.Product(on=steppe.Binary(3), size=steppe.Ordinal(2, 3))
    target = steppe.Target(lambda x: jnp.sum(x["on"]) * x["size"][0] - x["size"][1], domain)
    after = steppe.robust(target, flip_rate=0.2, num_samples=4)
    check_derived_forms(after)
    turned = steppe.robust(target, disturb=turn_off, num_samples=2)
    assert float(turned.log_density(domain.flatten({"on": jnp.zeros(3), "size": jnp.ones(2)}))) == 2.0


MISTAKES = {
    "nothing": ({}, "exactly one disturbance"),
    "two": ({"flips": 1, "flip_rate": 0.1}, "flips and flip_rate"),
    "flips": ({"flips": 0}, "at least 1"),
    "too many flips": ({"flips": 9}, "at most the number of sites, 5"),
    "rate": ({"flip_rate": 1.5}, r"in \(0, 1\]"),
    "no rate": ({"flip_rate": 0.0}, r"in \(0, 1\]"),
    "shape of rates": ({"flip_rate": np.full(4, 0.1)}, r"of shape \(5,\)"),
    "level": ({"flips": 1, "risk": "cvar:1.5"}, r"level in \(0, 1\)"),
    "level 0": ({"flips": 1, "risk": "quantile:0"}, r"level in \(0, 1\)"),
    "risk": ({"flips": 1, "risk": "median"}, "'mean', 'worst'"),
    "samples": ({"flips": 2, "num_samples": 1}, "at least 2"),
    "no scenarios": ({"scenarios": []}, "at least one target"),
    "other domain": ({"scenarios": [polynomial_target(steppe.Binary(4), 1.0)]}, "lives on Binary\\(4\\)"),
    "other forms": ({"scenarios": [NOMINAL, qubo(MATRIX)]}, "entry 1 differs"),
    "recompiles": (
        {"scenario": lambda key: steppe.Target(lambda x: x @ jax.random.normal(key, (5,)), steppe.Binary(5))},
        "another form for every key",
    ),
    "same": ({"scenario": lambda key: NOMINAL}, "none of its numbers depends on the key"),
    "no target": ({"scenario": lambda key: 3.0}, "must be a `steppe.Target`"),
    "leaves the domain": ({"disturb": lambda key, x: x + 0.5}, "leaves Binary\\(5\\) at 16 of 16"),
    "wrong shape": ({"disturb": lambda key, x: x[:2]}, "must have shape"),
    "raises": ({"disturb": lambda key, x: x["a"]}, "failed at random positions"),
    "repair leaves": ({"flips": 1, "repair": lambda x, now: x * 2}, "leaves Binary\\(5\\)"),
}


@pytest.mark.parametrize(("arguments", "said"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_met_by_name(arguments, said):
    with pytest.raises(TargetError, match=said):
        steppe.robust(NOMINAL, **arguments)


def test_own_disturbances_that_break_the_constraint_more_often_than_not_ask_for_repair():
    with pytest.raises(TargetError, match="of 16 valid positions"):
        steppe.robust(KNAPSACK, disturb=lambda key, x: jnp.ones_like(x))
    kept = steppe.robust(
        KNAPSACK, disturb=lambda key, x: jnp.ones_like(x), repair=lambda x, now: x.at[:3].set(0.0)
    )
    assert float(kept.log_density(jnp.zeros(6))) == 3.0


def test_rates_have_no_meaning_on_permutations():
    with pytest.raises(TargetError, match="flips=1"):
        steppe.robust(tsp_paper("permutation"), flip_rate=0.1)
    with pytest.raises(TargetError, match="need none"):
        steppe.robust(tsp_paper("permutation"), flips=1, repair=lambda x, now: x)
