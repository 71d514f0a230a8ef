"""Orders as a domain: counted, numbered, drawn, stored and refused right."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import steppe
from contract.cases import are_identical, quick_jit
from steppe import targets
from steppe.domain import Permutation
from steppe.domain.permutation import check_permutation
from steppe.errors import DomainError, RecipeError, StartError
from steppe.kernel.proposals.permutation_moves import KINDS, Move, apply_move, invert
from steppe.samplers.permutations import informed_permutation, uniform_permutation


def small_tsp(size=6, seed=0):
    return targets.tsp(np.random.default_rng(seed).uniform(0, 1, (size, size)))


def test_orders_are_listed_lexicographically_and_numbered_in_that_order():
    domain = Permutation(5)
    orders = np.asarray(domain.enumerate())
    np.testing.assert_array_equal(orders, list(itertools.permutations(range(5))))
    np.testing.assert_array_equal(domain.index(orders), np.arange(120))
    assert domain.num_states == math.factorial(5)


def test_drawn_orders_are_uniform():
    # χ² of 24 orders over 24 000 draws; false alarm 1e-6. An order half as likely as it should be adds
    # 250 to a statistic of mean 23.
    counts = np.bincount(
        Permutation(4).index(Permutation(4).draw(jax.random.key(0), (24_000,))), minlength=24
    )
    assert stats.chi2.sf(((counts - 1000) ** 2 / 1000).sum(), 23) > 1e-6


def test_levels_of_an_order_are_small_integers_that_come_back():
    for size, dtype in ((7, np.uint8), (256, np.uint8), (257, np.uint16)):
        domain = Permutation(size)
        position = domain.draw(jax.random.key(size))
        assert domain.level_dtype == dtype
        np.testing.assert_array_equal(domain.from_levels(domain.to_levels(position)), position)
        assert domain.contains(position)


def test_only_orders_are_members():
    domain = Permutation(3)
    assert domain.contains([2, 0, 1])
    for wrong in ([0, 0, 1], [0, 1, 3], [0, 1], [0.5, 1, 2], [-1, 0, 1]):
        assert not domain.contains(wrong)
    np.testing.assert_array_equal(domain.is_member(np.asarray([0, 2, 0])), [False, True, False])


@quick_jit
def there_and_back(position, moves):
    def one(move):
        end = apply_move(KINDS, position, move)
        return end, apply_move(KINDS, end, invert(move))

    return jax.vmap(one)(moves)


def test_every_move_gives_an_order_and_its_inverse_leads_back():
    domain = Permutation(7)
    position = domain.draw(jax.random.key(0))
    cases = [
        (kind, first, last, shift)
        for kind in range(len(KINDS))
        for first, last in itertools.combinations(range(7), 2)
        for shift in (-3, -2, -1, 1, 2, 3)
    ]
    ends, starts = there_and_back(position, Move(*jnp.asarray(cases).T))
    assert domain.contains(ends)
    np.testing.assert_array_equal(starts, np.broadcast_to(position, starts.shape))


def test_moves_do_what_their_names_say():
    order = jnp.arange(6.0)
    move = {kind: index for index, kind in enumerate(KINDS)}
    results = {
        "swap": ((1, 4, 0), [0, 4, 2, 3, 1, 5]),
        "two_opt": ((1, 4, 0), [0, 4, 3, 2, 1, 5]),
        "insert": ((1, 4, 1), [0, 2, 3, 4, 1, 5]),
        "or_opt": ((0, 5, -2), [4, 5, 0, 1, 2, 3]),
    }
    for kind, (places, expected) in results.items():
        np.testing.assert_array_equal(apply_move(KINDS, order, Move(move[kind], *places)), expected)


def test_any_log_density_of_an_order_can_be_sampled_and_is_stored_as_small_integers():
    # Not a tour: items have a place they like. The fallback evaluates every neighbour.
    wishes = jnp.asarray([3.0, 0, 2, 1])
    target = steppe.Target(lambda order: -jnp.sum(jnp.abs(order - wishes)), Permutation(4))
    run = steppe.sample(
        target,
        informed_permutation(moves="swap"),
        key=jax.random.key(0),
        num_chains=2,
        num_warmup=10,
        num_draws=300,
    )
    levels = run.trace.levels()
    assert levels.dtype == np.uint8
    assert levels.shape == (2, 300, 4)
    assert (np.sort(levels, axis=-1) == np.arange(4)).all()
    np.testing.assert_allclose(
        run.trace.statistic("log_density"), -np.abs(levels - wishes).sum(-1), rtol=1e-6
    )
    assert str(run.summary())


def test_the_center_is_drawn_about_the_one_hot_matrix():
    target = small_tsp()
    sampler = informed_permutation(moves="two_opt", coupling_variance=0.01).build(target)
    position = target.domain.draw(jax.random.key(0))
    state = quick_jit(type(sampler).init)(sampler, position, jax.random.key(1))
    # 36 normals of deviation 0.1 all lie within 0.6 with a false alarm of 1e-7.
    assert np.abs(state.center - jax.nn.one_hot(position.astype(int), 6)).max() < 0.6
    assert state.center.shape == (6, 6)


def test_blackjax_runs_the_recipe():
    run_inference_algorithm = pytest.importorskip("blackjax.util").run_inference_algorithm
    target = small_tsp()
    sampler = informed_permutation(moves="two_opt", coupling_variance=1.0).build(target)

    def chain(sampler, key):
        start = target.domain.draw(key)
        return run_inference_algorithm(key, sampler, 20, initial_position=start)

    final, (states, _) = quick_jit(chain)(sampler, jax.random.key(4))
    np.testing.assert_array_equal(states.position[-1], final.position)
    assert target.domain.contains(states.position)


@quick_jit
def steps(sampler, keys, positions):
    def one(key, position):
        state = sampler.init(position, key)
        return jax.lax.fori_loop(0, 20, lambda i, s: sampler.step(jax.random.fold_in(key, i), s)[0], state)

    return jax.vmap(one)(keys, positions)


def test_chains_keep_to_orders_and_to_the_value_of_their_order():
    target = small_tsp(9)
    keys = jax.random.split(jax.random.key(0), 8)
    positions = jax.vmap(target.domain.draw)(keys)
    sampler = uniform_permutation(moves=KINDS).build(target)
    ends = steps(sampler, keys, positions)
    assert target.domain.contains(ends.position)
    np.testing.assert_allclose(ends.log_density, -target.cost(ends.position), rtol=1e-6)
    assert are_identical(ends, steps(sampler, keys, positions))


@pytest.mark.slow
def test_an_infinite_coupling_variance_is_no_coupling():
    # The center only adds gains over η, so at a huge η the same keys make the same moves.
    target = small_tsp(7)
    keys = jax.random.split(jax.random.key(3), 4)
    positions = jax.vmap(target.domain.draw)(keys)
    plain = steps(informed_permutation(moves="two_opt").build(target), keys, positions)
    loose = steps(
        informed_permutation(moves="two_opt", coupling_variance=1e12).build(target), keys, positions
    )
    np.testing.assert_array_equal(plain.position, loose.position)


def test_recipes_of_sites_and_of_orders_are_not_mixed_up():
    with pytest.raises(
        RecipeError, match=r"`dmala` moves single sites.*Permutation\(6\).*informed_permutation"
    ):
        steppe.dmala().build(small_tsp())
    sites = steppe.Target(jnp.sum, steppe.Binary(6))
    with pytest.raises(RecipeError, match=r"moves permutations.*Binary\(6\).*dmala"):
        informed_permutation().build(sites)


REFUSED = {
    "unknown move": (lambda: informed_permutation(moves="3-opt"), RecipeError, r"moves=.*'two_opt'.*'3-opt'"),
    "no move": (lambda: uniform_permutation(moves=()), RecipeError, r"moves=.*got \(\)"),
    "move twice": (lambda: uniform_permutation(moves=("swap", "swap")), RecipeError, "each once"),
    "or_opt has no table": (lambda: informed_permutation(moves="or_opt"), RecipeError, r"got 'or_opt'"),
    "negative variance": (
        lambda: informed_permutation(moves="swap", coupling_variance=-1.0),
        RecipeError,
        "positive number; got -1",
    ),
    "one item": (lambda: Permutation(1), DomainError, "at least 2; got 1"),
    "too many to list": (lambda: Permutation(10).enumerate(), DomainError, "at most 9 items"),
    "too many to number": (lambda: Permutation(13).index(np.arange(13)), DomainError, "fit an index"),
    "one-site change": (
        lambda: Permutation(4).replace_sites(np.arange(4), 0, 1),
        DomainError,
        "no one-site changes",
    ),
    "doubled item": (
        lambda: check_permutation("tour", [0, 1, 1], 3),
        DomainError,
        "item 1 is there 2 times and item 2",
    ),
    "unknown item": (lambda: check_permutation("tour", [0, 1, 3], 3), DomainError, "from 0 to 2; got 3"),
    "too short": (lambda: check_permutation("tour", [0, 1], 3), DomainError, "must list 3 items"),
    "words": (lambda: check_permutation("tour", ["a", "b", "c"], 3), DomainError, "must list 3 items"),
    "start that is no order": (
        lambda: informed_permutation().build(small_tsp()).init(jnp.zeros(6)),
        StartError,
        "not a level of Permutation",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_by_name(name):
    make, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        make()
