"""Components are pytrees whose structure tells classes and static fields apart."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

import steppe
from steppe.kernel.acceptance import Metropolis, Unadjusted
from steppe.targets import paper_bernoulli


class Example(eqx.Module):
    number: float
    kind: str = eqx.field(static=True, default="plain")


def test_classes_with_the_same_fields_have_different_structures():
    assert jax.tree.structure(Unadjusted()) != jax.tree.structure(Metropolis())


def test_adjusted_and_unadjusted_samplers_have_different_structures():
    target = paper_bernoulli()
    made = [make(step_size=0.1, center_step_size=0.1) for make in (steppe.edula, steppe.edmala)]
    unadjusted, adjusted = (recipe.build(target, audit=False) for recipe in made)
    assert jax.tree.structure(unadjusted) != jax.tree.structure(adjusted)


def test_numbers_are_not_part_of_the_structure_but_static_fields_are():
    assert jax.tree.structure(Example(1.0)) == jax.tree.structure(Example(2.0))
    assert jax.tree.structure(Example(1.0)) != jax.tree.structure(Example(1.0, "other"))


def test_a_component_survives_a_round_trip_and_stays_frozen():
    doubled = jax.tree.map(lambda leaf: 2 * leaf, Example(1.5, "kept"))
    assert doubled == Example(3.0, "kept")
    with pytest.raises(AttributeError):
        doubled.number = 1.0


def test_jit_never_runs_the_program_of_another_component():
    run = jax.jit(lambda node, x: x + (1 if isinstance(node, Metropolis) else 0))
    for _ in range(50):
        assert int(run(Unadjusted(), jnp.asarray(0))) == 0
        assert int(run(Metropolis(), jnp.asarray(0))) == 1


def test_paths_name_the_fields():
    (path, _), *_ = jax.tree_util.tree_flatten_with_path(Example(1.0))[0]
    assert jax.tree_util.keystr(path) == ".number"
