"""Log-densities of integer levels, and counts that are cut off."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import gammaln

import steppe
from steppe.diagnostics.tails import estimate_tail
from steppe.domain.from_json import make_domain
from steppe.errors import DomainError, TargetError

KEY = jax.random.key(0)
LOGITS = jnp.asarray(np.random.default_rng(0).normal(size=(3, 4)), jnp.float32)


def test_a_look_up_by_levels_is_the_same_target_as_one_hot_rows() -> None:
    domain = steppe.Categorical(3, 4)
    looked_up = steppe.Target(lambda z: LOGITS[jnp.arange(3), z].sum(), domain, as_levels=True)
    one_hot = steppe.Target(lambda z: jnp.sum(LOGITS * z), domain)
    states = domain.enumerate()
    np.testing.assert_allclose(
        jax.vmap(looked_up.log_density)(states), jax.vmap(one_hot.log_density)(states), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(looked_up.differences(states[5]), one_hot.differences(states[5]), atol=1e-5)
    assert steppe.recommend(looked_up).recipe.name == "gibbs"


def test_levels_of_parts_have_names_and_shapes() -> None:
    domain = steppe.Product(a=steppe.Spin((2, 2)), b=steppe.Categorical(2, 3))
    table = jnp.arange(6.0).reshape(2, 3)
    target = steppe.Target(
        lambda x: x["a"][1, 0] * table[jnp.arange(2), x["b"]].sum(), domain, as_levels=True
    )
    position = domain.from_levels(jnp.asarray([0, 0, 1, 0, 2, 1]))
    assert float(target.log_density(position)) == 2 + 4


def test_permutations_are_indices() -> None:
    lengths = jnp.asarray(np.random.default_rng(1).random((4, 4)), jnp.float32)
    target = steppe.Target(
        lambda order: -lengths[order, jnp.roll(order, 1)].sum(), steppe.Permutation(4), as_levels=True
    )
    assert float(target.log_density(jnp.asarray([2.0, 0.0, 3.0, 1.0]))) == pytest.approx(
        -float(lengths[2, 1] + lengths[0, 2] + lengths[3, 0] + lengths[1, 3])
    )


def test_indexing_by_a_position_is_answered_with_both_ways_to_write_it() -> None:
    with pytest.raises(TargetError, match=r"jnp.sum\(table \* z\).*as_levels=True"):
        steppe.Target(lambda z: LOGITS[jnp.arange(3), z].sum(), steppe.Categorical(3, 4))
    with pytest.raises(TargetError, match="does not go with as_levels"):
        steppe.Target(
            lambda z: LOGITS[0, z[0]],
            steppe.Categorical(3, 4),
            as_levels=True,
            value_and_grad=lambda z: (0.0, z),
        )
    with pytest.raises(TargetError, match="no gradient"):
        steppe.Target(lambda z: 0.0 * z[0], steppe.Binary(3), as_levels=True, multilinear=True)


def test_the_tail_of_geometric_counts_is_found() -> None:
    domain, rng = steppe.Counts(2, max_count=6), np.random.default_rng(0)
    drawn = rng.geometric(0.5, size=(400_000, 2)) - 1
    kept = drawn[(drawn <= 6).all(axis=1)]
    tail = estimate_tail(domain, kept)
    assert tail is not None
    assert tail.beyond == pytest.approx(0.5**7, rel=0.1)  # three standard errors at the worst of two sites
    assert estimate_tail(steppe.Ordinal(2, 7), kept) is None
    mixed = steppe.Product(on=steppe.Binary(1), size=domain)
    with_bit = np.concatenate([np.zeros((len(kept), 1), int), kept], axis=1)
    assert estimate_tail(mixed, with_bit) == tail._replace(site=tail.site + 1)


@pytest.mark.parametrize(
    ("max_count", "says", "holds"),
    [(3, "Raise `max_count`", False), (40, "less than 0.00075 of the mass", True)],
)
def test_a_run_says_how_much_lies_beyond_the_largest_count(max_count: int, says: str, holds: bool) -> None:
    def poisson(x):
        return jnp.sum(x * jnp.log(3.0) - gammaln(x + 1))

    target = steppe.Target(poisson, steppe.Counts(2, max_count=max_count))
    run = steppe.sample(target, steppe.gibbs(num_updates=2), key=KEY, num_draws=1000, num_warmup=50)
    diagnosis = run.diagnose()
    assert any(says in finding for finding in diagnosis.findings)
    assert diagnosis.ok == holds


def test_counts_are_what_they_say_they_are() -> None:
    domain = steppe.Counts((2, 2), max_count=5)
    assert make_domain(domain.to_json()) == domain
    assert domain != steppe.Ordinal((2, 2), 6)
    assert domain.values(np.asarray([[0, 1, 5, 2]]))["position"].dtype.kind in "ui"
    with pytest.raises(DomainError, match="max_count"):
        steppe.Counts(2, max_count=0)
