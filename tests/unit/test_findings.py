"""Findings name causes: what follows from one is left out, and advice fits the sampler."""

import numpy as np
import pytest

from steppe import Categorical, Ordinal
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


def test_chains_that_never_move_are_told_of_samplers_that_change_several_sites():
    levels = np.repeat(fair_bits(num_draws=1), 400, axis=1)
    (first, *_) = find(trace_of(levels), acceptance_rate=np.ones((4, 400), np.float32))
    assert first.startswith(
        "Chains 0, 1, 2, 3 never moved: every draw is one state. Start elsewhere, or temper"
    )
    assert first.endswith("use a sampler that changes several, such as `hamming_ball(radius=2)`.")


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


def settled_chains(orders, num_draws=400) -> np.ndarray:
    """Chains that are in one state but for a few draws, the last in that state alone, up to names."""
    common = np.array([0, 1, 2, 0, 1, 2])
    draws = np.repeat(np.repeat(common[None, None], num_draws, axis=1), len(orders), axis=0)
    for chain in range(len(orders) - 1):
        draws[chain, 50 * chain + 20 :: 97, chain] = (draws[chain, 0, chain] + 1) % 3
    return np.stack([np.asarray(order)[own] for order, own in zip(orders, draws, strict=True)]).astype(
        np.uint8
    )


ORDERS = [(0, 1, 2), (1, 2, 0), (0, 1, 2), (2, 1, 0)]


def test_chains_that_hardly_leave_one_state_up_to_names_are_label_switching_and_not_to_be_tempered():
    levels = settled_chains(ORDERS)
    heights = np.where((levels == levels[:, :1]).all(axis=2), -3.0, -5.0).astype(np.float32)
    trace = trace_of(levels, Categorical(6, 3), log_density=heights)
    diagnosis = diagnose(assess(trace))
    assert not diagnosis.ok
    assert diagnosis.findings[0].startswith("Label switching: each chain is most of the time in one state")
    assert "chain 1 (0, 1, … are 1, 2, 0); chain 3 (0, 1, … are 2, 1, 0)" in diagnosis.findings[0]
    assert "as chain 3 never left it: run longer" in diagnosis.findings[0]
    assert not any("or temper" in finding or "converged" in finding for finding in diagnosis.findings)


@pytest.mark.parametrize(
    ("orders", "higher", "domain"),
    [
        (ORDERS, 1.0, Categorical(6, 3)),  # the exchange is no symmetry of the target
        ([(0, 1, 2)] * 4, 0.0, Categorical(6, 3)),  # there is none
        (ORDERS, 0.0, Ordinal(6, 3)),  # levels are numbers
        ([(0, 1, 2), (0, 0, 2), (0, 1, 2), (0, 1, 2)], 0.0, Categorical(6, 3)),  # two levels become one
    ],
)
def test_other_chains_that_hardly_move_are_no_label_switching(orders, higher, domain):
    levels = settled_chains(orders)
    heights = np.where((levels == levels[:, :1]).all(axis=2), -3.0, -5.0).astype(np.float32)
    heights[1] += higher
    findings = find(trace_of(levels, domain, log_density=heights))
    assert findings[0].startswith("Chain 3 never moved")
    assert not any("Label switching" in finding for finding in findings)


def test_defects_come_before_chains_that_have_not_converged():
    trace = trace_of(slow_bits(60), log_density=np.random.default_rng(0).normal(size=(4, 60)))
    count = np.zeros((4, 60), int)
    count[1, 7] = 3
    first, second, *rest = find(trace, num_nonfinite=count)
    assert first.startswith("3 proposals had a log-density or gradient that is not a number")
    assert second.endswith("Run longer.")
    assert not any("not a number" in finding for finding in rest)


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
