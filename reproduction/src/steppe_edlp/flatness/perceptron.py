"""Teacher–student binary perceptrons: does one flat solution generalise better?

Every method gets the same number of gradients per instance: several chains, or one ensemble of replicas about
a lattice center, cooled along a schedule.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steppe import samplers
from steppe.kernel.compose import Recipe
from steppe.run.anneal import anneal
from steppe.run.schedule import Curves, geometric_schedule, parameter_schedule
from steppe.targets.perceptron import Perceptron, Problem

LOOSE, TIGHT = 0.1, 1.7  # 1/(2η) of the ensemble at the beginning and at the end
NUM_NOISY = 8
Span = tuple[float, float]


class Method(NamedTuple):
    """A recipe and how it spends the budget: chains × steps × replicas."""

    recipe: Recipe
    num_chains: int
    num_steps: int


def make_methods(budget: int, num_replicas: int = 5) -> dict[str, Method]:
    """The three methods compared, at a budget of gradients per instance.

    Parameters
    ----------
    budget
        Gradients.
    num_replicas
        Replicas of the ensemble, and chains of the others.
    """
    tied = samplers.robust_ensemble(
        replicas=num_replicas, coupling_variance=1 / (2 * LOOSE), center="lattice"
    )
    coupled = samplers.edmala(coupling_variance=4.0, center_step_size=0.5)
    return {
        "dmala": Method(samplers.dmala(), num_replicas, budget // num_replicas),
        "edmala": Method(coupled, num_replicas, budget // num_replicas),
        "robust_ensemble": Method(tied, 1, budget // num_replicas),
    }


def cool(recipe: Recipe, span: Span) -> Curves:
    """Inverse temperature rising along a span; an ensemble is tied tighter as well."""
    curves: dict[str, Any] = {"inverse_temperature": geometric_schedule(*span)}
    if recipe.coupling.replicas is not None:
        curves["coupling_variance"] = geometric_schedule(1 / (2 * LOOSE), 1 / (2 * TIGHT))
    return parameter_schedule(**curves)


def solve(
    problem: Problem, target: Perceptron, method: Method, span: Span, seed: int, flips: Sequence[int]
) -> dict[str, Any]:
    """Cool once, and measure the final states.

    Parameters
    ----------
    problem, target
        Patterns, and the log-density made of them.
    method, span
        How.
    seed
        Of the chains, and of the random flips.
    flips
        Numbers of random flips after which training errors are counted.
    """
    found = anneal(
        target,
        method.recipe,
        cool(method.recipe, span),
        key=jax.random.key(seed),
        num_steps=method.num_steps,
        num_chains=method.num_chains,
        progress=False,
    )
    states = jnp.reshape(found.position, (-1, target.domain.num_sites))
    weights = np.asarray(target.weights(states))
    outputs = np.sign(problem.test_patterns.astype(np.float32) @ weights.T)
    vote = np.sign(outputs.sum(axis=1)) != problem.test_labels
    return {
        "log_density": float(jnp.mean(found.log_density)),
        "train_errors": float(jnp.mean(target.training_errors(states))),
        "test_error": float((outputs != problem.test_labels[:, None]).mean()),
        "vote_error": float(vote.mean()),
        "errors_after_flips": disrupt(target, np.asarray(states), seed, flips),
        "acceptance": float(found.history["acceptance_rate"][:, -20:].mean()),
    }


def disrupt(target: Perceptron, states: np.ndarray, seed: int, flips: Sequence[int]) -> list[float]:
    """Mean training errors after random flips of every state, several times each."""
    generator = np.random.default_rng(seed)
    errors = []
    for number in flips:
        noisy = np.repeat(states, NUM_NOISY, axis=0)
        for row in noisy:
            chosen = generator.choice(states.shape[1], number, replace=False)
            row[chosen] = 1 - row[chosen]
        errors.append(float(jnp.mean(target.training_errors(jnp.asarray(noisy)))))
    return errors


def choose_by_others(errors: np.ndarray) -> np.ndarray:
    """Best schedule for every instance, chosen by the mean error on all other instances.

    Parameters
    ----------
    errors
        Schedules × instances. With a single instance the choice is its own best.
    """
    if errors.shape[1] == 1:
        return errors.argmin(axis=0)
    return (errors.sum(axis=1, keepdims=True) - errors).argmin(axis=0)
