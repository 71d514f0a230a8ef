"""`find_flat_modes` spends no more than its budget, and says exactly what it spent."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from exact_targets import polynomial_target
from steppe.diagnostics.neighbours import gains
from steppe.domain import Permutation
from steppe.errors import RunError
from steppe.kernel.cost import evaluations_per_table
from steppe.kernel.proposals.permutation_moves import differences
from steppe.modes import measure

KEY = jax.random.key(0)


class Counted:
    """A function that counts every position it is evaluated at, also those of mapped and waiting lanes."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *arguments):
        jax.debug.callback(self._count, jnp.sum(arguments[-1]))
        return self.function(*arguments)

    def _count(self, _):
        self.calls += 1


class CountedOrders(steppe.Target):
    """A target on permutations that makes its own tables."""

    value: Callable = eqx.field(static=True)

    def log_density(self, position):
        return self.value(position)

    def move_differences(self, kind, position):
        return MOVES(kind, position)


ORDER_WEIGHTS = jnp.asarray(np.random.default_rng(0).normal(size=(5, 5)), jnp.float32)


def order_value(order):
    return jnp.sum(ORDER_WEIGHTS[jnp.arange(5), order.astype(jnp.int32)])


def made_tables(kind, order):
    plain = steppe.Target(order_value, Permutation(5))
    return differences(plain, kind, order)


MOVES = Counted(made_tables)
BITS = polynomial_target(steppe.Binary(5), 2.0)
FRUSTRATED = jnp.asarray(np.random.default_rng(0).normal(size=(17, 17)), jnp.float32)
MANY_BITS = steppe.Target(lambda x: (2 * x - 1) @ FRUSTRATED @ (2 * x - 1), steppe.Binary(17))
ORDINAL = polynomial_target(steppe.Ordinal(3, [-1.0, 0.1, 0.8]), 1.0)


def counted(target, *, makes_tables=False, is_valid=None):
    """A target whose functions count, and all its counters."""
    value, table = Counted(target.log_density), Counted(target.differences)
    given = {"differences": table} if makes_tables else {}
    return steppe.Target(value, target.domain, is_valid=is_valid, **given), (value, table)


def counted_orders(*, own):
    value = Counted(order_value)
    domain = Permutation(5)
    made = CountedOrders(domain, value) if own else steppe.Target(value, domain)
    return made, (value, MOVES)


# Most of the time is spent compiling five kinds of chains, or the one of orders.
CASES = {
    "summed": (lambda: counted(BITS), 5_000, {}),
    "own table": (lambda: counted(BITS, makes_tables=True), 6_000, {}),
    "levels": (lambda: counted(ORDINAL), 4_000, {"flatness": "local_entropy"}),
    "constrained": (lambda: counted(BITS, is_valid=lambda x: jnp.sum(x) > 1), 5_000, {}),
    "given starts": (lambda: counted(BITS), 5_000, {"initial": np.zeros((3, 5))}),
    "estimated": (lambda: counted(MANY_BITS), 8_000, {}),
    "estimated with own table": (lambda: counted(MANY_BITS, makes_tables=True), 12_000, {"num_modes": 2}),
    "too little left for an estimate": (lambda: counted(MANY_BITS), 3_480, {}),
    "orders": (lambda: counted_orders(own=False), 5_000, {}),
    "orders with own tables": (lambda: counted_orders(own=True), 2_000, {}),
}


@pytest.mark.slow
@pytest.mark.parametrize(("make", "budget", "options"), CASES.values(), ids=CASES)
def test_evaluations_are_counted_one_by_one_and_stay_within_the_budget(make, budget, options):
    target, counters = make()
    before = sum(counter.calls for counter in counters)
    found = steppe.find_flat_modes(target, key=KEY, budget=budget, **options)
    jax.effects_barrier()
    assert found.num_evaluations == sum(counter.calls for counter in counters) - before
    assert found.num_evaluations <= budget


@pytest.mark.slow
@pytest.mark.parametrize("budget", [3_480, 5_000, 12_345])
@pytest.mark.parametrize("target", [BITS, MANY_BITS, ORDINAL], ids=["bits", "many bits", "ordinal"])
def test_count_stays_within_any_budget_that_is_accepted(target, budget):
    assert steppe.find_flat_modes(target, key=KEY, budget=budget).num_evaluations <= budget


@pytest.mark.slow
def test_modes_whose_entropy_cannot_be_paid_for_are_kept_and_say_so():
    found = steppe.find_flat_modes(MANY_BITS, key=KEY, budget=3_480)
    records = found.to_records()
    assert any(np.isnan(mode.local_entropy) for mode in found)
    assert any(record["local_entropy"] is None for record in records)
    assert "–" in str(found)


@pytest.mark.slow
def test_ranking_by_entropy_without_evaluations_left_asks_for_a_larger_budget(monkeypatch):
    monkeypatch.setattr(measure, "NUM_PARTICLES", (64,))  # 2049 evaluations, more than chains leave
    with pytest.raises(RunError, match="too few to estimate one local entropy"):
        steppe.find_flat_modes(MANY_BITS, key=KEY, budget=3_480, flatness="local_entropy")


def test_tables_of_orders_cost_every_move_and_the_state_once_per_kind():
    target, (value, _) = counted_orders(own=False)
    jax.block_until_ready(jax.jit(gains)(target, jnp.arange(5.0)))
    jax.effects_barrier()
    assert value.calls == evaluations_per_table(target) == 2 * 5 * 4 + 3
