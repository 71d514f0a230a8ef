"""Variable selection beside NumPyro: effective draws of the log-posterior per CPU second, one thread.

    python benchmarks/variable_selection.py [--columns 100 500]

Both sample the same log-posterior from the same data, warm-up and compiling left out, each with draws kept.
NumPyro has no marginal likelihood of its own: it takes the log-density of the target, one column at a time
(`DiscreteHMCGibbs`, modified). Inclusion probabilities are held against a run ten times as long.
"""

import argparse
import os
import sys
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import arviz
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, DiscreteHMCGibbs

import steppe
from steppe.targets import VariableSelection, variable_selection

NUM_ROWS = {100: 200, 500: 600}
NUM_SWEEPS = {100: 2000, 500: 300}
NUM_STEPS = {100: 500, 500: 25}


def make_target(num_columns: int) -> VariableSelection:
    """Ten columns that matter among correlated pairs, one in ten expected beforehand."""
    rng = np.random.default_rng(0)
    num_rows = NUM_ROWS[num_columns]
    design = rng.normal(size=(num_rows, num_columns))
    design[:, 1::2] += 0.5 * design[:, 0::2]
    coefficients = 0.5 * rng.normal(size=10)
    response = design[:, :10] @ coefficients + rng.normal(size=num_rows)
    return variable_selection(design, response, inclusion=0.1)


def run_steppe(target: VariableSelection, num_draws: int) -> tuple[float, float, np.ndarray]:
    """CPU seconds of the second call, effective draws, inclusion probabilities."""
    recipe = steppe.gibbs(num_updates=target.domain.num_sites, num_swaps=1)
    options = {"num_chains": 20, "num_warmup": num_draws // 10, "num_draws": num_draws, "progress": False}
    steppe.sample(target, recipe, key=jax.random.key(0), **options)
    started = time.process_time()
    run = steppe.sample(target, recipe, key=jax.random.key(1), **options)
    seconds = time.process_time() - started
    values = np.asarray(run.data["sample_stats"]["log_density"])
    return seconds, float(arviz.ess(values)), target.inclusion_probabilities(run.positions[:, ::50])


def run_numpyro(target: VariableSelection, num_steps: int) -> tuple[float, float]:
    """CPU seconds after compiling, and effective draws of the log-posterior."""

    def model() -> None:
        columns = numpyro.sample("columns", dist.Bernoulli(0.5).expand([target.domain.num_sites]).to_event(0))
        numpyro.sample("unused", dist.Normal(0.0, 1.0))
        numpyro.factor("posterior", target.log_density(jnp.asarray(columns, float)))

    sampler = MCMC(
        DiscreteHMCGibbs(NUTS(model), modified=True),
        num_warmup=num_steps // 10,
        num_samples=num_steps,
        progress_bar=False,
    )
    sampler.warmup(jax.random.key(0))
    sampler.run(jax.random.key(1))
    started = time.process_time()
    sampler.run(jax.random.key(2))
    seconds = time.process_time() - started
    draws = np.asarray(sampler.get_samples()["columns"], float)
    values = np.asarray(jax.lax.map(target.log_density, draws))
    return seconds, float(arviz.ess(values[None]))


def main(columns: list[int]) -> None:
    """One row per number of columns."""
    for num_columns in columns:
        target = make_target(num_columns)
        seconds, effective, inclusion = run_steppe(target, NUM_SWEEPS[num_columns])
        _, _, long = run_steppe(target, 10 * NUM_SWEEPS[num_columns])
        peer_seconds, peer_effective = run_numpyro(target, NUM_STEPS[num_columns])
        ours, theirs = effective / seconds, peer_effective / peer_seconds
        sys.stdout.write(
            f"p = {num_columns}: steppe {ours:.0f} effective draws of U per CPU s ({effective:.0f} in "
            f"{seconds:.2f} s), NumPyro {theirs:.2g} ({peer_effective:.0f} in {peer_seconds:.1f} s): "
            f"{ours / theirs:.0f} times; inclusion within {np.abs(inclusion - long).max():.3f}\n"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, nargs="+", default=[100, 500])
    main(parser.parse_args().columns)
