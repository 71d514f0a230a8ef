"""Products and shapes wrap the log-density and the names; kernels see the same flat sites as ever."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from contract.cases import transition_matrix
from exact_targets import polynomial_target
from steppe.domain.from_json import make_domain
from steppe.errors import DomainError, StartError, TargetError
from tiers import cases

PRODUCTS = {
    "real": steppe.Product(a=steppe.Binary(2), b=steppe.Ordinal((1, 2), [-1.0, 0.1, 0.8])),
    "two-level": steppe.Product(a=steppe.Spin(2), b=steppe.Ordinal(1, [0.1, 0.7])),
    "two-level rows": steppe.Product(a=steppe.Categorical(2, 2), b=steppe.Spin(1)),
    "mixed": steppe.Product(a=steppe.Ordinal(1, 4), b=steppe.Categorical(2, [2, 3]), c=steppe.Binary(1)),
}
ADJUSTED = {
    "dmala": steppe.dmala(step_size=0.4),
    "gwg": steppe.gwg(),
    "gibbs": steppe.gibbs(),
    "block_gibbs": steppe.block_gibbs(block_size=2),
}
on_every_product = pytest.mark.parametrize("domain", PRODUCTS.values(), ids=PRODUCTS)
COUNTS = {"num_chains": 2, "num_warmup": 10, "num_draws": 20}
KEY = jax.random.key(3)


def some_position(domain):
    levels = np.random.default_rng(4).integers(0, domain.num_levels)
    return np.asarray(domain.from_levels(levels)), levels


def points(domain) -> list[np.ndarray]:
    return [domain.points(site) for site in range(domain.num_sites)]


# ---- geometry ----------------------------------------------------------------------------------------


@on_every_product
def test_levels_and_positions_are_one_to_one(domain):
    states = domain.enumerate()
    assert len(np.unique(np.asarray(states).reshape(len(states), -1), axis=0)) == domain.num_states
    np.testing.assert_array_equal(domain.index(states), np.arange(domain.num_states))
    assert domain.contains(states)
    np.testing.assert_array_equal(domain.from_levels(domain.to_levels(states)), states)


@on_every_product
def test_slopes_and_squared_jumps_follow_their_definition(domain):
    position, _ = some_position(domain)
    gradient = np.random.default_rng(5).normal(size=domain.shape)
    slopes = domain.slopes(jnp.asarray(position), jnp.asarray(gradient))
    jumps = domain.squared_jumps(jnp.asarray(position))
    for site, levels in enumerate(points(domain)):
        change = levels - position[site].reshape(1, -1)
        np.testing.assert_allclose(
            slopes[site, : len(levels)], change @ gradient[site].reshape(-1), atol=1e-6
        )
        np.testing.assert_allclose(jumps[site, : len(levels)], (change**2).sum(axis=1), atol=1e-6)
        assert (np.asarray(jumps)[site, len(levels) :] > 0).all()


@pytest.mark.parametrize("name", ["two-level", "two-level rows"])
def test_flips_follow_their_definition(name):
    domain = PRODUCTS[name]
    position, levels = some_position(domain)
    gradient = np.random.default_rng(5).normal(size=domain.shape)
    sites = np.asarray([True, False, True])
    flipped = domain.flip(jnp.asarray(position), jnp.asarray(sites))
    np.testing.assert_array_equal(domain.to_levels(flipped), np.where(sites, 1 - levels, levels))
    table = np.asarray(domain.slopes(jnp.asarray(position), jnp.asarray(gradient)))
    expected = table[np.arange(3), 1 - levels]
    np.testing.assert_allclose(
        domain.flip_slopes(jnp.asarray(position), jnp.asarray(gradient)), expected, rtol=1e-5
    )
    jumps = np.asarray(domain.squared_jumps(jnp.asarray(position)))[np.arange(3), 1 - levels]
    np.testing.assert_allclose(np.broadcast_to(domain.squared_flip, 3), jumps, rtol=1e-6)


@on_every_product
def test_replacing_sites_sets_their_levels_and_no_others(domain):
    position, levels = some_position(domain)
    sites = np.asarray([0, domain.num_sites - 1])
    new = (levels[sites] + 1) % np.asarray(domain.num_levels)[sites]
    replaced = domain.replace_sites(jnp.asarray(position), jnp.asarray(sites), jnp.asarray(new))
    expected = levels.copy()
    expected[sites] = new
    np.testing.assert_array_equal(domain.to_levels(replaced), expected)
    np.testing.assert_array_equal(domain.levels_at(replaced, jnp.asarray(sites)), new)


@on_every_product
def test_flattening_undoes_unflattening(domain):
    states = domain.draw(jax.random.key(0), (2, 3))
    structured = domain.unflatten(states)
    assert {name: array.shape for name, array in structured.items()} == {
        name: (2, 3, *part.site_shape, *part.shape[1:]) for name, part in domain.parts.items()
    }
    np.testing.assert_array_equal(domain.flatten(structured), states)


@on_every_product
def test_json_and_representation_make_the_domain_again(domain):
    assert make_domain(domain.to_json()) == domain
    assert eval(repr(domain), vars(steppe)) == domain
    assert hash(make_domain(domain.to_json())) == hash(domain)


def test_the_unit_is_the_shortest_move_of_any_part():
    assert PRODUCTS["two-level"].squared_unit == pytest.approx(0.36)


def test_coordinates_that_stand_for_nothing_are_masked():
    domain = PRODUCTS["mixed"]
    assert domain.shape == (4, 3)
    np.testing.assert_array_equal(domain.coordinate_mask.sum(axis=1), [1, 2, 3, 1])
    assert PRODUCTS["real"].coordinate_mask is None


# ---- targets and samplers ----------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", ADJUSTED)
@on_every_product
def test_adjusted_samplers_leave_the_target_invariant(domain, recipe):
    target = polynomial_target(domain, 2.0)
    states = domain.enumerate()
    log_density = np.asarray(jax.vmap(target.log_density)(states), float)
    distribution = np.exp(log_density - log_density.max())
    distribution /= distribution.sum()
    matrix = transition_matrix(ADJUSTED[recipe], target)
    np.testing.assert_allclose(distribution @ matrix, distribution, atol=2e-6)


@pytest.mark.slow
def test_every_way_to_give_a_function_takes_the_dictionary():
    domain = PRODUCTS["mixed"]
    weights = {"a": jnp.ones(1), "b": jnp.arange(6.0).reshape(2, 3), "c": -jnp.ones(1)}

    def log_density(x):
        return sum(jnp.sum(weights[name] * x[name]) for name in weights)

    def value_and_grad(x):
        return log_density(x), weights

    def batched(x):
        return jax.vmap(log_density)(x), jax.tree.map(
            lambda w: jnp.broadcast_to(w, (len(x["a"]), *w.shape)), weights
        )

    plain = steppe.Target(log_density, domain)
    given = steppe.Target(
        log_density,
        domain,
        value_and_grad=value_and_grad,
        batched_value_and_grad=batched,
        differences=lambda x: plain.differences(domain.flatten(x)),
        is_valid=lambda x: x["a"][0] < 3,
        incremental=steppe.Incremental(
            init=log_density,
            differences=lambda cache, x, sites: plain.differences(domain.flatten(x))[sites],
            update=lambda cache, x, site, level: cache,
        ),
    )
    states = domain.enumerate()
    for expected, found in zip(
        jax.vmap(plain.value_and_grad)(states), jax.vmap(given.value_and_grad)(states), strict=True
    ):
        finite = np.isfinite(found)
        np.testing.assert_allclose(np.asarray(found)[finite], np.asarray(expected)[finite], rtol=1e-6)
    assert np.isneginf(np.asarray(jax.vmap(given.log_density)(states))).any()
    steppe.sample(given, steppe.gibbs(), key=KEY, initial=jnp.zeros((2, 4, 3)).at[:, 1:3, 0].set(1), **COUNTS)


PARTS = {
    "spin": steppe.Spin(5),
    "ordinal": steppe.Ordinal(5, [0.0, 0.5, 2.0]),
    "ragged": steppe.Categorical(5, [2, 3, 4, 2, 3]),
}


@pytest.mark.parametrize("name", cases(PARTS, fast=("ragged",)))
def test_a_product_of_one_part_gives_the_draws_of_the_part(name):
    part = PARTS[name]
    alone = steppe.sample(polynomial_target(part, 1.0), steppe.dmala(), key=KEY, **COUNTS)
    inside = polynomial_target(steppe.Product(only=part), 1.0)
    np.testing.assert_array_equal(
        steppe.sample(inside, steppe.dmala(), key=KEY, **COUNTS).levels, alone.levels
    )


@pytest.mark.slow
def test_shapes_change_what_the_log_density_takes_and_nothing_else():
    flat = steppe.Target(lambda x: jnp.sum(x[:-1] * x[1:]) + 0.1 * x[0], steppe.Spin(6))

    def shaped_log_density(x):
        assert x.shape == (2, 3)
        x = x.reshape(6)
        return jnp.sum(x[:-1] * x[1:]) + 0.1 * x[0]

    shaped = steppe.Target(shaped_log_density, steppe.Spin((2, 3)))
    runs = [steppe.sample(target, steppe.dmala(), key=KEY, **COUNTS) for target in (flat, shaped)]
    np.testing.assert_array_equal(runs[0].levels, runs[1].levels)
    assert runs[1].positions.shape == (2, 20, 2, 3)
    posterior = runs[1].data["posterior"]["position"]
    assert posterior.dims == ("chain", "draw", "position_dim_0", "position_dim_1")
    again = steppe.sample(shaped, steppe.dmala(), key=KEY, **{**COUNTS, "initial": runs[1].positions[:, -1]})
    assert again.positions.shape == (2, 20, 2, 3)


def test_shapes_are_those_of_the_call():
    assert repr(steppe.Categorical((2, 2), 3)) == "Categorical((2, 2), 3)"
    assert steppe.Spin((4,)) == steppe.Spin(4)
    assert steppe.Spin((2, 2)) != steppe.Spin(4)
    for shape in ((), (0, 2), (2, 1.5), [True], "4"):
        with pytest.raises(DomainError, match="num_sites"):
            steppe.Spin(shape)


def test_data_have_a_variable_for_every_part(tmp_path):
    domain = PRODUCTS["mixed"]
    target = polynomial_target(domain, 1.0)
    run = steppe.sample(target, steppe.edmala_glu(), key=KEY, out=tmp_path / "run", **COUNTS)
    for posterior in (run.data["posterior"], steppe.open_run(tmp_path / "run").data["posterior"]):
        assert posterior["a"].shape == (2, 20, 1)
        assert posterior["b"].shape == (2, 20, 2)
        assert posterior["b"].dtype == posterior["c"].dtype == np.uint8
        np.testing.assert_array_equal(posterior["b"], run.levels[..., 1:3])
        np.testing.assert_array_equal(posterior["a"], run.levels[..., :1].astype(float))
    positions = run.positions
    np.testing.assert_array_equal(positions["b"].argmax(axis=-1), run.levels[..., 1:3])
    values = jax.vmap(jax.vmap(lambda x: target.log_density(domain.flatten(x))))(positions)
    np.testing.assert_allclose(values, run.trace.statistic("log_density"), rtol=1e-4, atol=1e-5)
    assert run.summary({"c": lambda x: x["c"].mean(axis=-1)}).mixing.quantities


def test_a_run_on_a_product_is_resumed(tmp_path):
    target = polynomial_target(PRODUCTS["mixed"], 1.0)
    options = {"key": KEY, "num_chains": 2, "num_warmup": 10}
    steppe.sample(target, steppe.dmala(), num_draws=8, out=tmp_path / "run", **options)
    resumed = steppe.sample(
        target, steppe.dmala(), num_draws=20, out=tmp_path / "run", resume=True, **options
    )
    whole = steppe.sample(target, steppe.dmala(), num_draws=20, **options)
    np.testing.assert_array_equal(resumed.levels, whole.levels)


# ---- bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "has no parts"),
        ({"a": 3}, "must be a domain"),
        ({"a": steppe.Permutation(3)}, "no sampler moves a permutation"),
        ({"a": steppe.Product(b=steppe.Binary(1))}, "side by side"),
        ({"a b": steppe.Binary(1)}, "identifiers"),
        ({"": steppe.Binary(1)}, "identifiers"),
        ({"chain": steppe.Binary(1)}, "taken"),
    ],
)
def test_a_product_that_cannot_be_is_refused(parts, message):
    with pytest.raises(DomainError, match=message):
        steppe.Product(**parts)


@pytest.mark.parametrize(
    "start",
    [
        {},
        {"a": np.zeros((2, 2))},
        {"a": np.zeros((2, 2)), "b": np.zeros((2, 1, 2)), "c": np.zeros(2)},
        {"a": np.zeros((2, 3)), "b": np.zeros((2, 1, 2))},
        {"a": np.zeros((2, 2)), "b": np.zeros((3, 1, 2))},
        {"a": "zeros", "b": np.zeros((2, 1, 2))},
        np.zeros((2, 5)),
        [1, 2],
        "start",
        {"a": np.full((2, 2), 0.5), "b": np.zeros((2, 1, 2))},
    ],
)
def test_a_start_of_another_structure_is_refused(start):
    target = polynomial_target(PRODUCTS["real"], 1.0)
    with pytest.raises(StartError):
        steppe.sample(target, steppe.gibbs(), key=KEY, initial=start, **COUNTS)


def test_a_start_may_be_a_dictionary():
    target = polynomial_target(PRODUCTS["real"], 1.0)
    start = {"a": np.zeros((2, 2)), "b": np.full((2, 1, 2), -1.0)}
    run = steppe.sample(target, steppe.gibbs(), key=KEY, initial=start, **COUNTS)
    flat = steppe.sample(target, steppe.gibbs(), key=KEY, initial=target.domain.flatten(start), **COUNTS)
    np.testing.assert_array_equal(run.levels, flat.levels)


def test_a_gradient_of_another_structure_is_refused():
    with pytest.raises(TargetError, match="value_and_grad"):
        steppe.Target(
            lambda x: jnp.sum(x["a"]), PRODUCTS["real"], value_and_grad=lambda x: (jnp.sum(x["a"]), x["a"])
        )


@pytest.mark.parametrize(
    "parts",
    [None, [], [["a", {"id": "binary", "shape": [2]}]] * 2, [["a", 3]], [["a"]], {"a": {}}, "parts"],
)
def test_json_that_is_no_product_is_refused(parts):
    with pytest.raises(DomainError):
        make_domain({"id": "product", "parts": parts})
