"""Recombination: the best of all choices of regions, and never worse than what was there."""

from itertools import product

import jax
import numpy as np
import pytest

import steppe
from steppe.run import rounds
from steppe.run.recombination import list_sparse_pairs, recombine
from steppe.targets import independent_set, max_cut, qubo


def _cycle(size: int) -> np.ndarray:
    return np.stack([np.arange(size), (np.arange(size) + 1) % size], axis=1)


@pytest.mark.parametrize("kind", ["cut", "bits", "set", "qubo"])
def test_it_finds_the_best_side_of_every_region(kind: str) -> None:
    """Against all combinations of the regions in which two random states differ."""
    rng = np.random.default_rng(0)
    edges = _cycle(14)
    target = {
        "cut": lambda: max_cut(edges, rng.normal(size=14)),
        "bits": lambda: max_cut(edges, rng.normal(size=14), spins=False),
        "set": lambda: independent_set(edges, rng.uniform(1, 2, 14)),
        "qubo": lambda: qubo(rng.normal(size=(14, 14)) * (np.eye(14) + np.eye(14)[np.arange(-1, 13)])),
    }[kind]()
    pairs = list_sparse_pairs(target)
    assert pairs is not None
    evaluate = jax.jit(jax.vmap(target.log_density))
    for _ in range(5):
        one, other = np.asarray(target.domain.from_levels(rng.integers(0, 2, (2, 14))), np.float32)
        found = recombine(pairs._replace(has_mirror=False), one, other[None])
        regions = _list_regions(np.flatnonzero(one != other))
        combined = []
        for chosen in product([False, True], repeat=len(regions)):
            state = one.copy()
            for region, is_taken in zip(regions, chosen, strict=True):
                state[region] = other[region] if is_taken else one[region]
            combined.append(state)
        best = float(np.asarray(evaluate(np.stack(combined))).max())
        np.testing.assert_allclose(float(target.log_density(found)), best, atol=1e-4)


def _list_regions(sites: np.ndarray) -> list[list[int]]:
    """Runs of neighbouring sites of a ring of 14."""
    runs = [list(run) for run in np.split(sites, np.flatnonzero(np.diff(sites) > 1) + 1) if len(run)]
    if len(runs) > 1 and runs[0][0] == 0 and runs[-1][-1] == 13:
        runs[0] = runs.pop() + runs[0]
    return runs


def test_crowded_and_other_targets_are_left_alone() -> None:
    assert list_sparse_pairs(max_cut(np.ones((20, 20)) - np.eye(20))) is None
    assert list_sparse_pairs(steppe.targets.paper_bernoulli()) is None
    assert list_sparse_pairs(steppe.targets.potts((4, 4), num_levels=3, coupling=1.0)) is None


def test_the_best_of_an_annealing_has_the_value_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short annealing of a sparse graph, whose chains end in different regions."""
    target = max_cut(np.random.default_rng(1).integers(0, 400, (600, 2)))
    found = steppe.anneal(target, key=jax.random.key(0), num_steps=20, num_chains=8)
    values = jax.vmap(target.log_density)(found.best_position)
    np.testing.assert_allclose(np.asarray(values), np.asarray(found.best_log_density), rtol=1e-6)
    np.testing.assert_array_equal(found.history["best_log_density"][:, -1], found.best_log_density)
    best = float(found.best_log_density.max())
    assert found.trace["best_log_density"][-1] == best
    assert found.local_optima().log_density[0] >= best
    monkeypatch.setattr(rounds, "list_sparse_pairs", lambda target: None)
    alone = steppe.anneal(target, key=jax.random.key(0), num_steps=20, num_chains=8)
    np.testing.assert_array_equal(alone.log_density, found.log_density)
    assert best > float(alone.best_log_density.max())
