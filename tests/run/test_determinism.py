"""Draws do not depend on how a run was scheduled: one digest, many ways to get it."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest
from small_runs import COUNTS, KEY, RECIPE, TARGET, digest, small_run

import steppe
from steppe.errors import RunMismatchError
from steppe.run import engine as engine_module
from steppe.run import temperature_ladder
from steppe.run.chain_blocks import choose_chain_block
from steppe.run.simulate import simulate
from steppe.targets import ising_lattice
from tiers import cases

RECIPES = {
    "edmala": RECIPE,
    "robust_ensemble": steppe.robust_ensemble(replicas=3, coupling_variance=0.5),
    "gibbs": steppe.gibbs(num_updates=2, scan="systematic"),
    "tempered": steppe.parallel_tempering(inverse_temperatures=(0.0, 0.4, 1.0)),
    "dula": steppe.dula(),
}
# A step of `dula` is one of `edmala` with less in it; copies are chains within a chain.
TEN_RUNGS = steppe.parallel_tempering(
    base=steppe.chromatic_gibbs(), inverse_temperatures=[0.1 * rung for rung in range(1, 10)] + [1.0]
)
CASES = cases(RECIPES, slow=("dula", "robust_ensemble"))
ALL_ROWS = COUNTS["num_warmup"] + COUNTS["num_draws"]


@pytest.mark.parametrize("name", CASES)
def test_any_chunk_length_gives_the_same_draws(name, monkeypatch):
    whole = digest(small_run(RECIPES[name]))
    for length in (1, 7, 64):
        monkeypatch.setattr(engine_module, "FIRST_CHUNK_ROWS", length)
        monkeypatch.setattr(engine_module, "CHUNK_SECONDS", 0.0)  # never grows beyond one row
        assert digest(small_run(RECIPES[name])) == whole


@pytest.mark.parametrize("name", cases(RECIPES, fast=("edmala",)))
def test_a_chain_does_not_depend_on_how_many_others_there_are(name):
    alone = small_run(RECIPES[name], num_chains=1, chain_block=4)
    crowd = small_run(RECIPES[name], num_chains=9, chain_block=4)
    assert digest(alone) == digest(crowd, num_chains=1)
    assert digest(small_run(RECIPES[name], chain_block=4)) == digest(crowd, num_chains=4)


@pytest.mark.parametrize(
    ("recipe", "num_chains", "block"),
    [
        (steppe.dmala(), 1, 1),
        (steppe.dmala(), 5, 5),
        (steppe.dmala(), 100, 15),
        (steppe.chromatic_gibbs(), 20, 7),
        (steppe.chromatic_gibbs(), 1000, 8),
        (steppe.gibbs(), 5, 5),
        (steppe.gibbs(), 64, 8),
        (TEN_RUNGS, 64, 3),
    ],
)
def test_blocks_fit_the_cache_and_have_hardly_an_idle_lane(recipe, num_chains, block):
    sampler = recipe.build(ising_lattice((64, 64), 0.3))
    assert choose_chain_block(sampler, num_chains) == block


@pytest.mark.parametrize("name", cases(RECIPES, fast=("tempered",)))
def test_a_shorter_run_is_the_beginning_of_a_longer_one(name):
    shorter, longer = small_run(RECIPES[name]), small_run(RECIPES[name], num_draws=320)
    assert digest(shorter) == digest(longer, num_rows=ALL_ROWS)


def test_extending_gives_the_draws_of_a_longer_run():
    extended = small_run().extend(160)
    assert digest(extended) == digest(small_run(num_draws=320))


def test_thinning_keeps_every_nth_state_of_the_unthinned_run():
    thinned = small_run(thinning=5, num_draws=32)
    whole = small_run()
    kept = whole.trace.statistic("log_density")[:, 4::5]
    assert (thinned.trace.statistic("log_density") == kept).all()


@pytest.mark.parametrize("draws_before_the_stop", [1, 57, 159])
def test_a_resumed_run_has_the_draws_of_an_uninterrupted_one(tmp_path, draws_before_the_stop):
    small_run(out=tmp_path / "run", num_draws=draws_before_the_stop)
    resumed = small_run(out=tmp_path / "run", resume=True)
    assert digest(resumed) == digest(small_run())
    assert digest(steppe.open_run(tmp_path / "run")) == digest(resumed)


def test_a_resumed_tempered_run_takes_its_stored_ladder_and_has_the_same_draws(tmp_path, monkeypatch):
    adapted = steppe.parallel_tempering(num_rungs=3)
    whole = small_run(adapted)
    small_run(adapted, num_draws=57, out=tmp_path / "run")

    def refuse(*_, **__):
        raise AssertionError("the ladder was adapted again")

    with monkeypatch.context() as patch:
        patch.setattr(temperature_ladder, "tune_ladder", refuse)
        assert digest(small_run(adapted, out=tmp_path / "run", resume=True)) == digest(whole)
    with pytest.raises(RunMismatchError, match="sampler"):
        small_run(steppe.parallel_tempering(num_rungs=4), out=tmp_path / "run", resume=True)


def test_a_fresh_process_with_another_hash_seed_writes_the_same_run(tmp_path):
    """A fresh interpreter with another hash seed writes the same run."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from small_runs import small_run; "
        "small_run(out=sys.argv[2])"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    arguments = [sys.executable, "-c", script, str(Path(__file__).parent), str(tmp_path / "run")]
    subprocess.run(arguments, check=True, env=environment, timeout=300)
    assert digest(steppe.open_run(tmp_path / "run")) == digest(small_run())


def test_other_keys_give_other_draws():
    other = steppe.sample(TARGET, RECIPE, key=jax.random.fold_in(KEY, 1), **COUNTS)
    assert digest(other) != digest(small_run())


def test_step_sizes_are_frozen_after_warm_up():
    steps = small_run().trace.statistic("step_size")
    assert (steps == steps[:, :1]).all()


@pytest.mark.parametrize("every", [2, 3])
def test_rows_of_several_steps_make_the_steps_of_rows_of_one(every):
    sampler = RECIPE.build(TARGET)
    positions = TARGET.domain.draw(KEY, (4,))
    start = jax.jit(jax.vmap(sampler.init))(positions, jax.random.split(KEY, 4))
    one, several = (
        jax.jit(partial(simulate, sampler, num_steps=12, every=size))(key=KEY, state=start).state
        for size in (1, every)
    )
    assert all(map(np.array_equal, jax.tree.leaves(one), jax.tree.leaves(several)))
