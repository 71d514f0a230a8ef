"""A target's own batched evaluation is what mapped kernels call, with all mapped axes folded into one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import steppe
from contract.cases import chain_keys, quick_jit, run_chains, starts

DOMAIN = steppe.Spin(6)
FIELD = np.linspace(-0.5, 0.7, 6)
BONDS = np.random.default_rng(8).normal(size=(6, 6)) / 6


class Calls:
    """Record the shapes with which a function is executed, not those it is traced with on the way."""

    def __init__(self, function):
        self.function, self.shapes = function, []

    def __call__(self, field, bonds, positions):
        jax.debug.callback(lambda array: self.shapes.append(array.shape), positions)
        return self.function(field, bonds, positions)


def log_density(field, bonds, position):
    return field @ position + position @ bonds @ position


def value_and_grad(field, bonds, position):
    return log_density(field, bonds, position), field + (bonds + bonds.T) @ position


def batched_value_and_grad(field, bonds, stack):
    return stack @ field + jnp.einsum("ci,ij,cj->c", stack, bonds, stack), field + stack @ (bonds + bonds.T)


def make(single=value_and_grad, batched=batched_value_and_grad, field=FIELD, bonds=BONDS):
    return steppe.Target(
        Partial(log_density, field, bonds),
        DOMAIN,
        value_and_grad=Partial(single, field, bonds),
        batched_value_and_grad=None if batched is None else Partial(batched, field, bonds),
    )


def executed(function, *arguments):
    """Shapes with which `function(target)` calls the single and the batched version of the target."""
    single, batched = Calls(value_and_grad), Calls(batched_value_and_grad)
    target = make(single, batched)
    jax.block_until_ready(quick_jit(function(target))(*arguments))
    jax.effects_barrier()
    return single.shapes, batched.shapes


def test_one_position_uses_the_single_version():
    assert executed(lambda target: target.value_and_grad, starts(DOMAIN)[0]) == ([(6,)], [])


def test_nested_maps_are_folded_into_one_stack():
    stack = starts(DOMAIN, 24).reshape(2, 3, 4, 6)
    calls = executed(lambda target: jax.vmap(jax.vmap(jax.vmap(target.value_and_grad))), stack)
    assert calls == ([], [(24, 6)])


@pytest.mark.parametrize(("recipe", "stack"), [(steppe.dmala(), 5), (steppe.robust_ensemble(replicas=3), 15)])
def test_mapped_chains_and_replicas_use_the_batched_version_in_one_stack(recipe, stack):
    def one_step(target):
        sampler = recipe.build(target, audit=False)
        return jax.vmap(lambda key, position: sampler.step(key, sampler.init(position)))

    calls = executed(one_step, chain_keys(0, 5), starts(DOMAIN, 5))
    assert calls == ([], [(stack, 6), (stack, 6)])  # `init` and `step`


@pytest.mark.usefixtures("float64")
def test_batched_version_gives_the_chains_of_the_single_one():
    positions = starts(DOMAIN)
    runs = [
        run_chains(steppe.dmala(step_size=3.0).build(target, audit=False), chain_keys(1), positions)[1]
        for target in (make(), make(batched=None))
    ]
    np.testing.assert_array_equal(runs[0].position, runs[1].position)
    assert np.asarray(runs[0].position).std(axis=1).max() > 0
    # The same six-term sums in another order.
    np.testing.assert_allclose(runs[0].log_density, runs[1].log_density, rtol=1e-13, atol=1e-13)


def test_mapping_over_the_arrays_of_a_target_gives_every_chain_its_own():
    scales = jnp.asarray([1.0, 2.0, -1.0])

    def value(scale, position):
        return make(field=scale * FIELD).value_and_grad(position)

    positions = starts(DOMAIN, 3)
    values, gradients = quick_jit(jax.vmap(value))(scales, positions)
    # float32 sums of 42 terms below one, in another order.
    for scale, position, found, slope in zip(scales, np.asarray(positions), values, gradients, strict=True):
        expected, expected_slope = value_and_grad(float(scale) * FIELD, BONDS, position)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
        np.testing.assert_allclose(slope, expected_slope, rtol=0, atol=1e-5)


def test_mapping_over_arrays_and_chains_at_once_is_right():
    scales, positions = jnp.asarray([1.0, -2.0]), starts(DOMAIN, 3)

    def over_chains(scale):
        return jax.vmap(make(field=scale * FIELD).value_and_grad)(positions)[0]

    found = quick_jit(jax.vmap(over_chains))(scales)
    expected = [
        [log_density(float(scale) * FIELD, BONDS, x) for x in np.asarray(positions)] for scale in scales
    ]
    np.testing.assert_allclose(found, np.asarray(expected), rtol=0, atol=1e-5)
