"""A chain does not depend on how many others run beside it."""

import numpy as np
import pytest

import steppe
from contract.cases import chain_keys, one_chain, quick_jit, run_chains, starts, target_on

CHAIN = 2


@pytest.mark.slow
def test_chain_is_the_same_alone_as_among_four():
    target = target_on("ragged")
    sampler = steppe.edmala().build(target)
    keys, positions = chain_keys(1), starts(target.domain)
    together = run_chains(sampler, keys, positions)[1].position[CHAIN]
    alone = quick_jit(one_chain)(sampler, keys[CHAIN], positions[CHAIN])[1].position
    np.testing.assert_array_equal(together, alone)
