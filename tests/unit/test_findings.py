"""Findings name causes: what follows from one is left out, and advice fits the sampler."""

import numpy as np
import pytest

from steppe import Categorical
from steppe.diagnostics.findings import diagnose
from steppe.diagnostics.mixing import assess
from steppe.diagnostics.swaps import Swaps, judge_swaps
from unit.synthetic import fair_bits, trace_of


def find(trace, **arrays) -> list[str]:
    return diagnose(assess(trace._replace(arrays={**trace.arrays, **arrays}))).findings


def slow_bits(num_draws: int) -> np.ndarray:
    """Four chains whose sites change in a quarter of the steps and wander slowly."""
    rng, shape = np.random.default_rng(5), (4, num_draws, 4)
    favoured = np.repeat(rng.integers(0, 2, (4, 1, 4)), num_draws, axis=1)
    return np.where(rng.random(shape) < 0.8, favoured, 1 - favoured).astype(np.uint8)


def test_sites_that_move_but_disagree_are_to_be_run_longer_and_nothing_else():
    (only,) = find(trace_of(slow_bits(60), log_density=np.random.default_rng(0).normal(size=(4, 60))))[:1]
    assert "they move" in only
    assert only.endswith("Run longer.")


def test_chains_that_accept_nothing_are_one_finding_which_knows_the_sampler():
    levels = np.repeat(fair_bits(num_draws=1), 400, axis=1)
    still = {"acceptance_rate": np.full((4, 400), 1e-4, np.float32)}
    without, having = trace_of(levels), {**still, "step_size": np.full((4, 400), 0.1, np.float32)}
    assert "step size" not in find(without, **still)[0]
    assert "Lower the step size" in find(without, **having)[0]
    assert "gibbs()" in find(without, **still)[0]
    assert not [finding for finding in find(without, **still) if "R-hat" in finding or "converged" in finding]


def test_numbers_that_are_not_finite_come_first_where_they_hold_chains():
    levels = np.repeat(fair_bits(num_draws=1), 400, axis=1)
    findings = find(trace_of(levels), num_nonfinite=np.ones((4, 400), int))
    assert "not a number" in findings[0]
    assert sum("not a number" in finding for finding in findings) == 1
    assert not any("never moved" in finding for finding in findings)


def renamed_chains(orders, num_sites=7, num_draws=400, seed=2) -> np.ndarray:
    """Chains with the same fractions of levels, up to an exchange of levels."""
    rng = np.random.default_rng(seed)
    common = rng.integers(0, 3, num_sites)
    draws = np.where(rng.random((len(orders), num_draws, num_sites)) < 0.8, common, (common + 1) % 3)
    return np.stack([np.asarray(order)[chain] for order, chain in zip(orders, draws, strict=True)]).astype(
        np.uint8
    )


def test_label_switching_is_named_with_the_exchange_instead_of_tempering():
    levels = renamed_chains([(0, 1, 2), (1, 2, 0), (0, 1, 2), (2, 1, 0)])
    log_density = np.random.default_rng(0).normal(size=levels.shape[:2])
    trace = trace_of(levels, Categorical(7, 3), log_density=log_density)
    findings = find(trace)
    assert diagnose(assess(trace)).ok
    assert findings[0].startswith("Converged up to relabelling")
    assert "chain 1 (0, 1, … are 1, 2, 0)" in findings[0]
    assert not any("temper" in finding for finding in findings)


def test_modes_that_no_exchange_of_levels_brings_together_are_no_label_switching():
    levels = renamed_chains([(0, 1, 2)] * 4)
    levels[0, :, :3] = renamed_chains([(2, 0, 1)])[0, :, :3]
    log_density = np.random.default_rng(0).normal(size=levels.shape[:2])
    assert not any(
        "relabelling" in finding
        for finding in find(trace_of(levels, Categorical(7, 3), log_density=log_density))
    )


def test_mirrored_bits_are_label_switching():
    levels = fair_bits(fraction=0.9)
    levels[2] = 1 - levels[2]
    log_density = np.random.default_rng(0).normal(size=levels.shape[:2])
    assert find(trace_of(levels, log_density=log_density))[0].startswith("Label switching")


@pytest.mark.parametrize(
    ("rates", "trips", "said"),
    [
        ([0.02] * 7, [1, 2], ["Λ = 6.9 needs about 15 rungs", "3 round trips in all", "Mend the ladder."]),
        ([0.5] * 14, [1, 2], ["3 round trips in all", "Run longer."]),
        ([0.5] * 14, [10, 10], []),
    ],
    ids=["short ladder", "short run", "good"],
)
def test_ladders_are_judged_by_their_barrier_and_their_round_trips(rates, trips, said):
    found = list(judge_swaps(Swaps(np.array(rates), np.array(trips), 1000)))
    assert len(found) == len([words for words in said if "." not in words[-1]])
    assert all(words in " ".join(found) for words in said)
