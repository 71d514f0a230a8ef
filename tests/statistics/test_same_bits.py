"""A step that is repeated gives the same bits: the self-check of everything that rests on fixed seeds.

Once, on a loaded core, a gate with a fixed seed gave another p-value than ever before or since. A seed that
gives two results means that the computation differed. Here the step of that gate, and others, are repeated
on one compiled program, on programs compiled anew, and with and without arrays that are made once; the
integer part of the state must be the same bits every time. `benchmarks/trust_bits.py` does it for longer.
"""

import hashlib

import jax
import numpy as np
import pytest
from test_start_at_stationarity import RECIPES, spread_target

import gates
from steppe import compiling

NUM_CHAINS, NUM_STEPS = 50_000, 2
# A gradient that is summed in another order may move a decision: only whole programs are compared with
# each other, not those with and without arrays that are made once.
CASES = [
    ("edmala, linear coupling", "binary"),
    ("edmala_glu, linear coupling", "ragged"),
    ("dmala", "ordinal"),
    ("gibbs, systematic", "binary"),
    ("gwg-2", "binary"),
]


def digest_of_steps(name: str, domain: str) -> str:
    """SHA-256 of every number after a few steps of many chains from draws of the stationary distribution."""
    target, recipe, key = spread_target(domain, "smooth"), RECIPES[name], jax.random.key(1)
    variance = recipe.parameters.get("coupling_variance")
    sampler = recipe.build(target, audit=False)
    states = gates.stationary_states(sampler, target, variance, NUM_CHAINS, key)
    pair = gates.advance(sampler, states, key, 0, NUM_STEPS)
    total = hashlib.sha256()
    for leaf in jax.tree.leaves(pair):
        total.update(np.ascontiguousarray(leaf).tobytes())
    return total.hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize("is_materialized", [True, False])
@pytest.mark.parametrize(("name", "domain"), CASES)
def test_a_repeated_step_gives_the_same_bits(monkeypatch, name, domain, is_materialized):
    if not is_materialized:
        monkeypatch.setattr(compiling, "_is_compiled_for_cpu", lambda arguments: False)
    found = set()
    for _ in range(3):
        jax.clear_caches()
        found |= {digest_of_steps(name, domain) for _ in range(10)}
    jax.clear_caches()
    assert len(found) == 1
