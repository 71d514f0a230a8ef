"""Variable selection beside NumPyro and PyMC: effective draws of the log-posterior per CPU second.

    taskset -c 0 python benchmarks/variable_selection.py [--columns 100 500] [--json FILE] [--short]

All sample the same log-posterior from the same data, on one thread, second call, warm-up included, draws
kept. NumPyro and PyMC have no marginal likelihood of their own and no incremental form: NumPyro takes the
log-density of the target, one column after another (`DiscreteHMCGibbs`, modified and not: the better counts),
PyMC the same formula (`BinaryGibbsMetropolis`, every column once a step), once as an expression and once
written by hand in NumPy for the included columns only. Peers begin at the empty model and draw until they
have 400 effective draws; with `--short` one stops after a minute of processor time, and its figure is that of
the draws it has. Inclusion probabilities are held against a run ten times as long.
"""

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import HMC, DiscreteHMCGibbs
from speed.harness import stamp

import steppe
from steppe.targets import VariableSelection, variable_selection

NUM_ROWS = {100: 200, 500: 600}
NUM_SWEEPS = {100: 2000, 500: 300}
NUM_PEER_STEPS = {100: 500, 500: 20}
NUM_CHAINS = 20
MIN_EFFECTIVE = 400
SHORT_SECONDS = 60.0


def make_target(num_columns: int) -> VariableSelection:
    """Ten columns that matter among correlated pairs, one in ten expected beforehand."""
    rng = np.random.default_rng(0)
    num_rows = NUM_ROWS[num_columns]
    design = rng.normal(size=(num_rows, num_columns))
    design[:, 1::2] += 0.5 * design[:, 0::2]
    coefficients = 0.5 * rng.normal(size=10)
    response = design[:, :10] @ coefficients + rng.normal(size=num_rows)
    return variable_selection(design, response, inclusion=0.1)


def effective(values: np.ndarray) -> float:
    """Effective draws of the mean of the log-posterior, chain × draw."""
    return float(arviz_stats.ess(np.asarray(values, float), method="mean"))


def run_steppe(target: VariableSelection, num_draws: int) -> tuple[float, np.ndarray, np.ndarray]:
    """CPU seconds of the second call, log-densities, inclusion probabilities."""
    recipe = steppe.recommend(target).recipe
    options = {
        "num_chains": NUM_CHAINS,
        "num_warmup": num_draws // 10,
        "num_draws": num_draws,
        "progress": False,
    }
    steppe.sample(target, recipe, key=jax.random.key(0), **options)
    started = time.process_time()
    run = steppe.sample(target, recipe, key=jax.random.key(1), **options)
    seconds = time.process_time() - started
    every = max(num_draws // 200, 1)
    inclusion = target.inclusion_probabilities(run.positions[:, ::every])
    return seconds, np.asarray(run.data["sample_stats"]["log_density"]), inclusion


def draw_until(draw: Callable[[int], np.ndarray], num_steps: int, limit: float) -> tuple[float, np.ndarray]:
    """CPU seconds and log-densities of a peer, whose first draws are thrown away with what they compile."""
    draw(num_steps // 10)
    seconds, values = 0.0, np.zeros(0)
    while seconds < limit and (len(values) < 8 or effective(values[None]) < MIN_EFFECTIVE):
        started = time.process_time()
        drawn = draw(num_steps)
        seconds += time.process_time() - started
        values = np.concatenate([values, drawn])
    return seconds, values


def numpyro_draws(target: VariableSelection, is_modified: bool) -> Callable[[int], np.ndarray]:
    """Sweeps of single columns, and Hamiltonian steps of a bystander that NumPyro asks for."""

    def model() -> None:
        numpyro.sample("unused", dist.Normal(0.0, 1.0))
        with numpyro.plate("sites", target.domain.num_sites):
            columns = numpyro.sample("columns", dist.Bernoulli(0.5))
        numpyro.factor("posterior", target.log_density(jnp.asarray(columns, float)))

    kernel = DiscreteHMCGibbs(HMC(model, num_steps=1), modified=is_modified)
    kept = {"state": kernel.init(jax.random.key(0), 0, None, (), {})}

    @jax.jit
    def step(state, _):
        state = kernel.sample(state, (), {})
        return state, state.z["columns"]

    def draw(num_steps: int) -> np.ndarray:
        kept["state"], columns = jax.lax.scan(step, kept["state"], length=num_steps)
        values = jax.lax.map(target.log_density, jnp.asarray(columns, float))
        return np.asarray(values)

    return draw


def make_log_posterior(target: VariableSelection) -> Callable[[np.ndarray], float]:
    """The log-density of the target in NumPy: of a g-prior, with the included columns only."""
    matrix, log_odds = np.asarray(target.matrix, float), np.asarray(target.log_odds, float)
    shrinkage, freedom = float(target.shrinkage), float(target.freedom)

    def log_posterior(columns: np.ndarray) -> float:
        (chosen,) = np.nonzero(columns)
        explained = 0.0
        if len(chosen):
            projection = matrix[chosen, -1]
            explained = projection @ np.linalg.solve(matrix[np.ix_(chosen, chosen)], projection)
        return float(log_odds[chosen].sum() - 0.5 * freedom * np.log1p(-shrinkage * explained))

    return log_posterior


def pymc_draws(target: VariableSelection, is_by_hand: bool) -> Callable[[int], np.ndarray]:
    """PyMC's Metropolised Gibbs of single bits, every column once a step."""
    import pymc
    import pytensor.tensor as pt
    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.op import Op

    log_posterior = make_log_posterior(target)
    matrix = np.asarray(target.matrix, float)

    class LogPosterior(Op):
        def make_node(self, columns: Variable) -> Apply:
            return Apply(self, [pt.as_tensor_variable(columns)], [pt.dscalar()])

        def perform(self, node: Apply, inputs: list, output_storage: list) -> None:
            output_storage[0][0] = np.asarray(log_posterior(inputs[0]))

    def express(columns: Variable) -> Variable:
        chosen = matrix[:-1, :-1] * columns * columns[:, None] + pt.diag(1.0 - columns)
        whitened = pt.linalg.solve_triangular(
            pt.linalg.cholesky(chosen), columns * matrix[:-1, -1], lower=True
        )
        fit = -0.5 * float(target.freedom) * pt.log1p(-float(target.shrinkage) * pt.sum(whitened**2))
        return fit + pt.dot(columns, np.asarray(target.log_odds, float))

    with pymc.Model() as model:
        columns = pymc.Bernoulli("columns", 0.5, shape=target.domain.num_sites)
        pymc.Potential("posterior", LogPosterior()(columns) if is_by_hand else express(columns * 1.0))
        method = pymc.BinaryGibbsMetropolis([columns])
    kept = {"columns": np.zeros(target.domain.num_sites, int)}

    def draw(num_steps: int) -> np.ndarray:
        with model:
            trace = pymc.sample(
                num_steps, tune=0, chains=1, cores=1, step=method, initvals=dict(kept), progressbar=False,
                compute_convergence_checks=False, return_inferencedata=False, random_seed=num_steps,
            )  # fmt: skip
        drawn = trace.get_values("columns")
        kept["columns"] = drawn[-1]
        return np.array([log_posterior(bits) for bits in drawn])

    return draw


PEERS: dict[str, Callable[[VariableSelection], Callable[[int], np.ndarray]]] = {
    "NumPyro, modified": lambda target: numpyro_draws(target, True),
    "NumPyro": lambda target: numpyro_draws(target, False),
    "PyMC": lambda target: pymc_draws(target, False),
    "PyMC, log-posterior in NumPy": lambda target: pymc_draws(target, True),
}


def measure(num_columns: int, limit: float, peers: str) -> Iterator[dict]:
    """One row for us and one for every peer."""
    target = make_target(num_columns)
    seconds, values, inclusion = run_steppe(target, NUM_SWEEPS[num_columns])
    _, long_values, long = run_steppe(target, 10 * NUM_SWEEPS[num_columns])
    ours = effective(values) / seconds
    yield {
        "columns": num_columns,
        "name": "steppe",
        "seconds": seconds,
        "effective": effective(values),
        "effective_per_second": ours,
        "mean": float(values.mean()),
        "mean_of_long_run": float(long_values.mean()),
        "largest_error_of_inclusion": float(np.abs(inclusion - long).max()),
    }
    for name, make in PEERS.items():
        if peers not in name:
            continue
        seconds, values = draw_until(make(target), NUM_PEER_STEPS[num_columns], limit)
        number = effective(values[None])
        yield {
            "columns": num_columns,
            "name": name,
            "seconds": seconds,
            "effective": number,
            "effective_per_second": number / seconds,
            "mean": float(values.mean()),
            "ours_over_it": ours * seconds / number,
        }


def report(row: dict) -> None:
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, nargs="+", default=[100, 500])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--peers", default="", help="peers whose name contains this")
    parser.add_argument("--short", action="store_true", help="peers stop after a minute")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    limit = SHORT_SECONDS if given.short else np.inf
    found: list[dict] = []
    for columns in given.columns:
        for row in measure(columns, limit, given.peers):
            found.append({**row, **stamp()})
            report(found[-1])
            if given.json is not None:  # row by row: some peers take long
                given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
