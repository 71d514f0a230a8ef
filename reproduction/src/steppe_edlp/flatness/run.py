"""Flatness: distributions that can be enumerated, and binary perceptrons."""

from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace

import jax
import numpy as np

from steppe import samplers, targets
from steppe.targets.bernoulli import paper_bernoulli
from steppe.targets.perceptron import perceptron, teacher_student
from steppe_edlp.experiment import Experiment
from steppe_edlp.flatness.perceptron import choose_by_others, make_methods, solve
from steppe_edlp.occupancy import SmallTarget, visit
from steppe_edlp.request import Found, Request, Row
from steppe_edlp.work import Content, Piece, Work

FIRST_CHAIN_SEED = 1000
# Chains of a seed, and steps dropped.
NUM_CHAINS, NUM_WARMUP = 20, 500


def run(experiment: Experiment, request: Request, work: Work) -> Found:
    """Carry out the experiment; the paper has nothing like it, so both protocols are the sound one."""
    size = experiment.size(request)
    seeds, names = request.seeds(size.num_seeds), request.chosen(make_methods(size.budget))
    is_tilted = bool(request.chosen(("roughness_tilted",)))
    pieces: dict[str, Piece] = {}
    if is_tilted:
        pieces["mixture"] = partial(tilt_mixture, size.mixture_strengths, size.mixture_temperatures)
        pieces["four-bits"] = partial(tilt_four_bits, seeds, size)
    pieces |= {f"{name}-{seed:03d}": partial(_solve, name, seed, size) for seed in seeds for name in names}
    found = work.all(pieces)
    solutions = {name: _choose([found[f"{name}-{seed:03d}"] for seed in seeds]) for name in names}
    rows: dict[str, list[Row]] = {"perceptron": [_describe(*item, size) for item in solutions.items()]}
    arrays: dict[str, np.ndarray] = {}
    if is_tilted:
        rows |= {"tilt": _describe_tilt(found["four-bits"], size)}
        rows |= {"mixture": _describe_mixture(found["mixture"], size)}
        arrays |= {f"mixture_{kind}": found["mixture"][kind] for kind in ("tilted", "tempered")}
    if solutions:
        arrays["flips"] = np.asarray(size.flips, np.int64)
        arrays["after_flips"] = np.stack([one["errors_after_flips"] for one in solutions.values()])
    return Found(
        rows=rows,
        facts={"middle": size.flips[len(size.flips) // 2], "num_instances": len(seeds)},
        conditions=[*["tilt"] * is_tilted, *["perceptron"] * bool(solutions)],
        arrays=arrays,
        seeds=seeds,
        model_evaluations=3 * len(seeds) * len(solutions) * size.budget if solutions else None,
    )


def tilt_four_bits(seeds: Sequence[int], size: SimpleNamespace) -> Content:
    """Time in every state under the tilt, sampled and exact, with tempering at equal `E[U]`.

    Parameters
    ----------
    seeds
        Seeds of the chains.
    size
        Strengths, step size and draws.
    """
    target = paper_bernoulli()
    known = SmallTarget(target)
    run = {"num_chains": NUM_CHAINS, "num_warmup": NUM_WARMUP, "num_draws": size.num_draws}
    fractions, exact = [], []
    for strength in size.strengths:
        recipe = samplers.roughness_tilted(strength=strength, step_size=size.tilt_step_size)
        fractions.append(visit(recipe, target, seeds, **run).fractions)
        exact.append(recipe.stationary(target).probabilities())
    tempered = [temper_to(known.log_density, one @ known.log_density) for one in exact]
    return {
        "fractions": np.asarray(fractions),
        "distributions": np.asarray(exact),
        "tempered": np.asarray(tempered),
    }


def temper_to(log_density: np.ndarray, wanted: float) -> np.ndarray:
    """The distribution `exp(β U)` with a given `E[U]`; it rises with `β`, so `β` is found by bisection."""
    low, high = -50.0, 50.0
    for _ in range(100):
        middle = (low + high) / 2
        is_low = temper(log_density, middle) @ log_density < wanted
        low, high = (middle, high) if is_low else (low, middle)
    return temper(log_density, (low + high) / 2)


def temper(log_density: np.ndarray, beta: float) -> np.ndarray:
    """The distribution `exp(β U)`."""
    logs = beta * log_density
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def tilt_mixture(strengths: Sequence[float], temperatures: Sequence[float]) -> Content:
    """Mass of the one flat component among six sharp ones in ten bits, against `E[U]`; all exact."""
    planted = targets.planted_mixture()
    target = planted.target
    states = target.domain.enumerate()
    log_density = np.asarray(jax.vmap(target.log_density)(states), float)
    responsibilities = targets.mixture_responsibilities(planted.weights, planted.site_probabilities, states)
    fraction = np.asarray(responsibilities[:, planted.flat], float)

    def tilt(strength: float) -> np.ndarray:
        return (
            samplers.roughness_tilted(strength=strength, differences="exact")
            .stationary(target)
            .probabilities()
        )

    found = {
        "tilted": [tilt(strength) for strength in strengths],
        "tempered": [temper(log_density, beta) for beta in temperatures],
    }
    return {key: np.array([(p @ fraction, p @ log_density) for p in many]) for key, many in found.items()}


def _solve(name: str, seed: int, size: SimpleNamespace) -> Content:
    """One method on one instance, along every schedule."""
    problem = teacher_student(seed, size.num_inputs, size.load, size.num_test)
    target = perceptron(problem.patterns, problem.labels, size.loss)
    method = make_methods(size.budget)[name]
    chain_seed = FIRST_CHAIN_SEED + seed
    rows = [solve(problem, target, method, tuple(span), chain_seed, size.flips) for span in size.schedules]
    return {key: np.asarray([row[key] for row in rows]) for key in rows[0]}


def _choose(parts: list[Content]) -> Mapping[str, np.ndarray]:
    """Per instance, at the schedule that is best on the other instances."""
    stacked = {key: np.stack([part[key] for part in parts], axis=1) for key in parts[0]}
    chosen = choose_by_others(stacked["test_error"])
    return {key: values[chosen, np.arange(len(parts))] for key, values in stacked.items()}


def _describe(name: str, solutions: Mapping[str, np.ndarray], size: SimpleNamespace) -> Row:
    after = solutions["errors_after_flips"][:, len(size.flips) // 2]
    return {
        **{key: values for key, values in solutions.items() if key != "errors_after_flips"},
        "sampler": name,
        "after_flips": after,
        "rise": after - solutions["train_errors"],
        "acceptance": float(solutions["acceptance"].mean()),
    }


def _describe_tilt(found: Content, size: SimpleNamespace) -> list[Row]:
    known = SmallTarget(paper_bernoulli())
    parts = (found["fractions"], found["distributions"], found["tempered"])
    return [
        {
            "strength": strength,
            "is_reference": strength == 0,
            "flat": known.flat_mass(fractions),
            "flat_exact": float(known.flat_mass(exact)),
            "flat_tempered": float(known.flat_mass(tempered)),
            "sharp": known.sharp_mass(fractions),
            "sharp_exact": float(known.sharp_mass(exact)),
            "sharp_tempered": float(known.sharp_mass(tempered)),
            "log_density": fractions @ known.log_density,
            "log_density_exact": float(exact @ known.log_density),
        }
        for strength, fractions, exact, tempered in zip(size.strengths, *parts, strict=True)
    ]


def _describe_mixture(found: Content, size: SimpleNamespace) -> list[Row]:
    masses, heights = found["tempered"][np.argsort(found["tempered"][:, 0])].T
    return [
        {
            "strength": strength,
            "is_reference": strength == 0,
            "mass": float(mass),
            "log_density": float(height),
            "tempered": float(np.interp(mass, masses, heights))
            if masses.min() <= mass <= masses.max()
            else None,
        }
        for strength, (mass, height) in zip(size.mixture_strengths, found["tilted"], strict=True)
    ]
