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

KEY = jax.random.key(0)


class Counted:
    """A function that counts every position it is evaluated at, also those of mapped and waiting lanes."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *arguments):
        seen = jax.lax.stop_gradient(jnp.sum(arguments[-1]))
        shape = jax.ShapeDtypeStruct((), seen.dtype)
        # A batch is one callback with all lanes; a debug callback would be compiled once per lane.
        zero = jax.pure_callback(self._count, shape, seen, vmap_method="expand_dims")
        return self.function(*arguments) + zero

    def _count(self, seen):
        self.calls += np.size(seen)
        return np.zeros_like(seen)


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


# Rows that fill up a batch and the states at which temperatures are chosen are evaluated and not counted.
FILLED_UP = 3.0
CASES = {
    "bits": (lambda: counted(BITS), 8_000, {}),
    "own table": (lambda: counted(BITS, makes_tables=True), 8_000, {"flips": 1}),
    "constrained": (lambda: counted(BITS, is_valid=lambda x: jnp.sum(x) > 1), 8_000, {"flips": 2}),
    "given starts": (lambda: counted(BITS), 8_000, {"initial": np.zeros((3, 5))}),
    "many bits": (lambda: counted(MANY_BITS), 20_000, {"risk": "cvar:0.2"}),
    "orders": (lambda: counted_orders(own=False), 30_000, {}),
    "orders with own tables": (lambda: counted_orders(own=True), 8_000, {"flips": 2}),
}


@pytest.mark.slow
@pytest.mark.parametrize(("make", "budget", "options"), CASES.values(), ids=CASES)
def test_count_stays_within_the_budget_and_near_what_is_evaluated(make, budget, options):
    target, counters = make()
    before = sum(counter.calls for counter in counters)
    found = steppe.find_flat_modes(target, key=KEY, budget=budget, **options)
    jax.effects_barrier()
    assert found.num_evaluations <= budget
    assert sum(counter.calls for counter in counters) - before <= FILLED_UP * budget


def test_a_budget_too_small_for_one_search_is_refused_before_anything_is_spent():
    value = Counted(order_value)
    target = steppe.Target(value, Permutation(5))
    tried = value.calls
    with pytest.raises(RunError, match="evaluations are the least"):
        steppe.find_flat_modes(target, key=KEY, budget=200)
    jax.effects_barrier()
    assert value.calls == tried


def test_tables_of_orders_cost_every_move_and_the_state_once_per_kind():
    target, (value, _) = counted_orders(own=False)
    jax.block_until_ready(jax.jit(gains)(target, jnp.arange(5.0)))
    jax.effects_barrier()
    assert value.calls == evaluations_per_table(target) == 2 * 5 * 4 + 3
