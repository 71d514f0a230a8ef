"""A target evaluates one position, masks what is not allowed, and is a pytree of its arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import steppe
from contract.cases import one_chain, quick_jit, starts
from exact_targets import DOMAINS, target_named
from steppe.errors import TargetError

BITS = steppe.Binary(4)
WEIGHTS = np.array([0.5, -1.0, 2.0, 0.25])
POSITION = jnp.asarray([1.0, 0.0, 1.0, 1.0])


def linear(weights, position):
    return weights @ position


def quartic(position):
    return jnp.sum(position) ** 4


def is_small(position):
    return jnp.sum(position) < 3


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("domain", DOMAINS)
def test_table_of_differences_is_that_of_all_neighbours(domain):
    target = target_named(domain, "smooth")
    domain = target.domain
    position = starts(domain)[1]
    here = float(target.log_density(position))
    table = np.asarray(quick_jit(target.differences)(position))
    assert table.shape == (domain.num_sites, domain.max_levels)
    for site in range(domain.num_sites):
        for level in range(domain.max_levels):
            if level >= domain.num_levels[site]:
                assert table[site, level] == -np.inf
                continue
            levels = np.asarray(domain.to_levels(position)).copy()
            levels[site] = level
            expected = float(target.log_density(domain.from_levels(levels))) - here
            assert table[site, level] == pytest.approx(expected, abs=1e-13)


def test_value_and_gradient_are_those_of_the_log_density():
    value, gradient = steppe.Target(quartic, BITS).value_and_grad(POSITION)
    assert float(value) == 81.0
    np.testing.assert_allclose(gradient, np.full(4, 4 * 27.0), rtol=1e-6)


def test_energy_has_the_opposite_sign():
    target = steppe.Target.from_energy(Partial(linear, WEIGHTS), BITS)
    value, gradient = target.value_and_grad(POSITION)
    assert float(target.log_density(POSITION)) == float(value) == -2.75
    np.testing.assert_allclose(gradient, -WEIGHTS)


def test_given_functions_are_used_instead_of_derived_ones():
    table = jnp.arange(8.0).reshape(4, 2)
    target = steppe.Target(
        quartic,
        BITS,
        value_and_grad=lambda x: (jnp.float32(7), 0 * x),
        differences=lambda x: table + 0 * x[0],
    )
    assert float(target.value_and_grad(POSITION)[0]) == 7
    np.testing.assert_array_equal(target.differences(POSITION), table)
    assert target.has_differences
    assert not target.has_constraint


def test_invalid_positions_have_no_density_but_a_gradient():
    target = steppe.Target(quartic, BITS, is_valid=is_small)
    assert float(target.log_density(POSITION)) == -np.inf
    value, gradient = target.value_and_grad(POSITION)
    assert float(value) == -np.inf
    assert np.isfinite(gradient).all()
    assert float(target.log_density(POSITION.at[0].set(0.0))) == 16.0
    assert target.has_constraint


@pytest.mark.parametrize("given", [False, True])
def test_differences_to_invalid_neighbours_are_minus_infinity(given):
    differences = steppe.Target(quartic, BITS).differences if given else None
    target = steppe.Target(quartic, BITS, is_valid=is_small, differences=differences)
    table = np.asarray(target.differences(jnp.asarray([1.0, 1.0, 0.0, 0.0])))
    expected = [[1 - 16.0, 0.0], [1 - 16.0, 0.0], [0.0, -np.inf], [0.0, -np.inf]]
    np.testing.assert_allclose(table, expected)


def test_arrays_of_a_partial_are_leaves_and_plain_functions_have_none():
    target = steppe.Target(Partial(linear, WEIGHTS), BITS)
    leaves, structure = jax.tree.flatten(target)
    assert [leaf.shape for leaf in leaves] == [(4,)]
    doubled = jax.tree.unflatten(structure, [2 * leaves[0]])
    assert float(doubled.log_density(POSITION)) == 2 * 2.75
    assert doubled.domain == BITS
    assert jax.tree.leaves(steppe.Target(quartic, BITS)) == []


def test_targets_of_one_function_share_their_structure():
    structures = [
        jax.tree.structure(steppe.Target(Partial(linear, scale * WEIGHTS), steppe.Binary(4)))
        for scale in (1.0, 3.0)
    ]
    assert structures[0] == structures[1]
    assert hash(structures[0]) == hash(structures[1])
    assert structures[0] != jax.tree.structure(steppe.Target(Partial(linear, WEIGHTS), steppe.Spin(4)))


def test_gradient_with_respect_to_the_arrays_of_a_target_exists():
    target = steppe.Target(Partial(linear, jnp.asarray(WEIGHTS)), BITS)
    slopes = jax.grad(lambda t: t.log_density(POSITION))(target)
    np.testing.assert_array_equal(jax.tree.leaves(slopes)[0], POSITION)


def test_compiled_functions_and_callable_objects_are_targets():
    class Model:
        def __call__(self, position):
            return quartic(position)

    for log_density in (jax.jit(quartic), Model(), quartic):
        assert float(steppe.Target(log_density, BITS).log_density(POSITION)) == 81.0


def test_representation_tells_what_is_on_offer():
    target = steppe.Target(quartic, BITS, is_valid=is_small)
    assert repr(target) == "Target(Binary(4), log_density, is_valid)"


# ---- Subclasses ------------------------------------------------------------------------------------------


class Linear(steppe.Target):
    """A subclass with nothing but what it must have."""

    weights: jax.Array

    def log_density(self, position):
        return self.weights @ position


class Constrained(Linear):
    """A subclass that brings everything; each method says by its result that it was called."""

    def value_and_grad(self, position):
        return self.weights @ position, 2 * self.weights

    def batched_value_and_grad(self, stack):
        return stack @ self.weights, jnp.broadcast_to(3 * self.weights, stack.shape)

    def differences(self, position):
        return self.weights[:, None] * (jnp.arange(2) - position[:, None])

    def is_valid(self, position):
        return is_small(position)


class Doubled(Linear):
    def log_density(self, position):
        return 2 * super().log_density(position)


def test_subclass_of_two_lines_is_the_target_of_its_wrapped_function():
    subclassed, wrapped = Linear(BITS, WEIGHTS), steppe.Target(Partial(linear, WEIGHTS), BITS)
    for name in ("log_density", "value_and_grad", "differences", "is_valid"):
        ours, theirs = (getattr(target, name)(POSITION) for target in (subclassed, wrapped))
        jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    assert [leaf.shape for leaf in jax.tree.leaves(subclassed)] == [(4,)]
    assert subclassed.offers == ("log_density",)
    assert repr(subclassed) == "Linear(Binary(4), log_density)"


def test_methods_of_a_subclass_are_masked_where_the_position_is_not_valid():
    target = Constrained(BITS, WEIGHTS)
    value, gradient = target.value_and_grad(POSITION)
    assert float(target.log_density(POSITION)) == float(value) == -np.inf
    np.testing.assert_array_equal(gradient, 2 * WEIGHTS)
    table = np.asarray(target.differences(jnp.asarray([1.0, 1.0, 0.0, 0.0])))
    assert (table[2:, 1] == -np.inf).all()
    assert np.isfinite(table[:2]).all()


def test_batched_method_of_a_subclass_serves_mapped_chains():
    gradients = jax.vmap(Constrained(BITS, WEIGHTS).value_and_grad)(jnp.zeros((5, 4)))[1]
    np.testing.assert_array_equal(gradients, np.tile(3 * WEIGHTS, (5, 1)))


def test_subclass_of_a_subclass_calls_its_parent():
    target = Doubled(BITS, WEIGHTS)
    assert float(target.log_density(POSITION)) == 5.5
    np.testing.assert_array_equal(target.value_and_grad(POSITION)[1], 2 * WEIGHTS)


def test_changing_arrays_of_a_subclass_does_not_recompile():
    num_traces = 0

    @jax.jit
    def evaluate(target):
        nonlocal num_traces
        num_traces += 1
        return target.log_density(POSITION)

    assert [float(evaluate(Linear(BITS, scale * WEIGHTS))) for scale in (1, 2)] == [2.75, 5.5]
    assert num_traces == 1


def test_subclasses_with_the_same_fields_do_not_share_programs():
    evaluate = jax.jit(lambda target: target.log_density(POSITION))
    assert float(evaluate(Linear(BITS, WEIGHTS))) == 2.75
    assert float(evaluate(Doubled(BITS, WEIGHTS))) == 5.5


def test_subclass_is_refused_as_a_wrapped_function_would_be():
    class Shapeless(Linear):
        def differences(self, position):
            return position

    class Empty(steppe.Target):
        pass

    with pytest.raises(TargetError, match=r"`differences` must return a table .* of shape \(4, 2\)"):
        Shapeless(BITS, WEIGHTS)
    with pytest.raises(TargetError, match="needs a method `log_density"):
        Empty(BITS)
    with pytest.raises(TargetError, match="needs a domain such as"):
        Linear(4, WEIGHTS)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TargetError, match="must return one real number"):
        Linear(BITS, np.ones((2, 4)))


def test_positions_stand_for_themselves_and_differ_by_their_sites():
    target = Linear(BITS, WEIGHTS)
    np.testing.assert_array_equal(target.canonical(POSITION), POSITION)
    assert int(target.distance(POSITION, jnp.zeros(4))) == 3


# ---- Log-densities of an unusual type -----------------------------------------------------------------


def half_precision(position):
    return jnp.sum(position).astype(jnp.bfloat16)


def table_of_ones(position):
    return jnp.ones((4, 2)) * jnp.abs(jnp.arange(2) - position[:, None])


def traces(recipe, target):
    return jax.eval_shape(one_chain, recipe.build(target, audit=False), jax.random.key(0), POSITION)


@pytest.mark.parametrize(
    "recipe", [steppe.dmala(), steppe.edula(), steppe.gwg(), steppe.block_gibbs(block_size=2)]
)
def test_log_density_in_half_precision_can_be_sampled(recipe):
    traces(recipe, steppe.Target(half_precision, BITS))


def test_log_density_in_half_precision_can_have_a_table_in_single():
    traces(steppe.gibbs(), steppe.Target(half_precision, BITS, differences=table_of_ones))


def test_log_density_that_returns_a_python_number_can_be_sampled():
    traces(steppe.dmala(), steppe.Target(lambda position: 0.0, BITS))


def test_target_made_in_single_precision_is_evaluated_in_double():
    weights = np.linspace(-1, 1, 3)
    target = steppe.Target(Partial(lambda weights, x: weights @ x, weights), steppe.Binary(3))
    with jax.enable_x64(True):
        values = jax.jit(lambda target: jax.vmap(target.log_density)(target.domain.enumerate()))(target)
    np.testing.assert_allclose(values, np.asarray(target.domain.enumerate()) @ weights, atol=1e-6)
