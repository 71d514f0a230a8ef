"""Mistakes that show only when components, numbers and starts meet: each is met by a typed error."""

import jax
import jax.numpy as jnp
import pytest

import steppe
from steppe.errors import CompositionError, DomainError, RecipeError, StartError, TargetError
from steppe.kernel.acceptance import Metropolis
from steppe.kernel.blocks.gibbs import GibbsBlock
from steppe.kernel.blocks.metropolis import ConditionalDraw, ProposalBlock
from steppe.kernel.compose import recipe
from steppe.kernel.coupling import StarCoupling
from steppe.kernel.proposals.center import CenterRefresh
from steppe.kernel.proposals.discrete_langevin import DiscreteLangevin
from steppe.target import Incremental, Target

BITS = steppe.Binary(3)
POSITION = ProposalBlock(DiscreteLangevin(0.1), Metropolis())
CENTER = ConditionalDraw(CenterRefresh())


def total(position):
    return jnp.sum(position)


GOOD = Target(total, BITS)

MISTAKES = {
    "level count missing": (DomainError, lambda: steppe.Categorical(3, None)),
    "level count fractional": (DomainError, lambda: steppe.Categorical(3, 2.5)),
    "level beyond float32": (DomainError, lambda: steppe.Ordinal(3, [0, 1e39])),
    "index of too many states": (DomainError, lambda: steppe.Binary(40).index(jnp.ones(40))),
    "incremental table of wrong shape": (
        TargetError,
        lambda: Target(total, BITS, incremental=Incremental(total, lambda c, x, s: x, lambda c, *_: c)),
    ),
    "incremental update of wrong shape": (
        TargetError,
        lambda: Target(
            total,
            BITS,
            incremental=Incremental(total, lambda c, x, s: jnp.zeros((len(s), 2)), lambda c, x, *_: x),
        ),
    ),
    "start of text": (StartError, lambda: steppe.dmala().build(GOOD).init(["a", "b", "c"])),
    "start of unequal rows": (StartError, lambda: steppe.dmala().build(GOOD).init([[1], [1, 0]])),
    "complex start": (StartError, lambda: steppe.dmala().build(GOOD).init([0, 1, 1j])),
    "key as start": (StartError, lambda: steppe.dmala().build(GOOD).init(jax.random.key(0))),
    "wrong number of replicas": (
        StartError,
        lambda: steppe.robust_ensemble(replicas=2).build(GOOD).init(jnp.zeros((3, 3))),
    ),
    "infinite gradient at the start": (
        StartError,
        lambda: (
            steppe.dmala().build(Target(lambda x: jnp.sum(jnp.sqrt(x)), BITS), audit=False).init(jnp.zeros(3))
        ),
    ),
    "negative replacement": (RecipeError, lambda: steppe.dmala().replace(step_size=-1.0).build(GOOD)),
    "missing replacement": (RecipeError, lambda: steppe.dmala().replace(step_size=None).build(GOOD)),
    "replacement of text": (RecipeError, lambda: steppe.dmala().replace(step_size="a").build(GOOD)),
    "NaN temperature": (
        RecipeError,
        lambda: steppe.dmala().replace(inverse_temperature=float("nan")).build(GOOD),
    ),
    "persistence replaced by 2": (
        RecipeError,
        lambda: steppe.edmala_ou().replace(persistence=2.0).build(GOOD),
    ),
    "step size below float32": (RecipeError, lambda: steppe.dmala(step_size=1e-50).build(GOOD)),
    "variance beyond float32": (
        RecipeError,
        lambda: steppe.edmala_glu(step_size=0.1, coupling_variance=1e39).build(GOOD),
    ),
    "key as step size": (RecipeError, lambda: steppe.dmala(step_size=jax.random.key(0))),
    "block that is none": (CompositionError, lambda: recipe("odd", 3)),
    "replicas without a block for them": (
        CompositionError,
        lambda: recipe("odd", CENTER, POSITION, coupling=StarCoupling(1.0, 3)),
    ),
    "tilt on exact conditionals": (
        CompositionError,
        lambda: recipe("odd", GibbsBlock(1), penalty=steppe.roughness_tilted().penalty),
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_met_by_a_typed_error(name):
    error, mistake = MISTAKES[name]
    with pytest.raises(error):
        mistake()
