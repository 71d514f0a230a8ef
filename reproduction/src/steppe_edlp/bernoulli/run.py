"""The four-bit target: where every sampler spends its time, sampled and exact."""

from functools import partial
from types import SimpleNamespace

import numpy as np

from steppe import samplers
from steppe.kernel.compose import Recipe
from steppe.targets.bernoulli import paper_bernoulli
from steppe.theory import effective_step_size
from steppe_edlp.experiment import Experiment
from steppe_edlp.occupancy import SmallTarget, estimate_noise, visit
from steppe_edlp.request import Found, Request, Row, name_seeds
from steppe_edlp.work import Content, Work

WHY_UNADJUSTED = "It is the bias of a larger step: dula at α_eff has the same."
WHY_ADJUSTED = "Both have stationary distribution π, whatever the coupling."


def run(experiment: Experiment, request: Request, work: Work) -> Found:
    """Carry out the experiment."""
    size, recipes = experiment.size(request), experiment.make_recipes(request)
    # The exact distribution of edula is a power iteration over centers in four dimensions: it takes longest.
    order = sorted(recipes, key=lambda name: name != "edula")
    label = name_seeds(request.seeds(size.num_windows))
    kept = work.all({f"{name}-{label}": partial(_measure, recipes[name], request, size) for name in order})
    recipes = {name: recipe for name, recipe in recipes.items() if f"{name}-{label}" in kept}
    answers = {name: kept[f"{name}-{label}"] for name in recipes}
    known = SmallTarget(paper_bernoulli())
    printed = {row["sampler"]: row for row in experiment.published}
    occupancy = [_describe_exact("π", "what every sampler is meant to sample", known, known.probabilities)]
    target = dict.fromkeys(("std", "std_exact"), float(known.spectrum_std(known.probabilities)))
    target |= dict.fromkeys(("iqr", "iqr_exact"), float(known.spectrum_iqr(known.probabilities)))
    spectrum: list[Row] = [{"sampler": "π", "is_reference": True, **target}]
    for name, recipe in recipes.items():
        occupancy.append(_describe(name, recipe, answers[name], known, request))
        if name == "edula":
            occupancy.append(_describe_effective_step(recipe, known))
        spectrum.append(_describe_spectrum(name, answers[name], known, request, printed.get(name, {})))
    biased = [
        str(row["sampler"]) for row in occupancy if "flat" in row and float(row["distance_exact"]) > 0.1
    ]
    first = next(iter(answers.values()))
    return Found(
        rows={"occupancy": occupancy, "spectrum": spectrum},
        facts={
            "target": {
                "flat": float(known.flat_mass(known.probabilities)),
                "sharp": float(known.sharp_mass(known.probabilities)),
                "log_density": float(known.probabilities @ known.log_density),
            },
            "num_windows": len(first["windows"]),
            "window": "4 chains, 201 steps dropped, 800 kept",
            "run": size.long if request.is_sound else size.window,
            "biased": f"{', '.join(biased) or 'none'} {'leaves' if len(biased) < 2 else 'leave'} π",
        },
        arrays={
            "target": known.probabilities,
            "eigenvalues": known.eigenvalues,
            "fractions": np.stack([_of_protocol(answers[name]["fractions"], request) for name in recipes]),
            "window_std": np.stack([known.spectrum_std(answers[name]["windows"]) for name in recipes]),
        },
        recipes=recipes,
        seeds=list(range(request.seed, request.seed + len(first["fractions"]))),
        model_evaluations=len(recipes) * _count_evaluations(request, first, size),
    )


def _measure(recipe: Recipe, request: Request, size: SimpleNamespace) -> Content:
    """Exact distribution, windows as long as the paper's run, and under the sound protocol long chains."""
    target = paper_bernoulli()
    seeds = range(size.num_windows) if request.is_sound else request.seeds(size.num_windows)
    windows = visit(recipe, target, seeds, **size.window)
    long = visit(recipe, target, request.seeds(size.num_seeds), **size.long) if request.is_sound else windows
    return {
        "distribution": recipe.stationary(target).probabilities(),
        "windows": windows.fractions,
        **long._asdict(),
    }


def _of_protocol(per_seed: np.ndarray, request: Request) -> np.ndarray:
    """The published protocol is one seed; the others show how much it could have been otherwise."""
    return per_seed if request.is_sound else per_seed[:1]


def _describe(name: str, recipe: Recipe, answer: Content, known: SmallTarget, request: Request) -> Row:
    fractions = _of_protocol(answer["fractions"], request)
    return {
        **_describe_exact(name, "", known, answer["distribution"]),
        "is_reference": False,
        "flat": known.flat_mass(fractions),
        "sharp": known.sharp_mass(fractions),
        "log_density": fractions @ known.log_density,
        "distance": known.distance(fractions),
        "noise": estimate_noise(answer["fractions"], None if request.is_sound else 1),
        "acceptance": float(answer["acceptance"].mean()) if recipe.is_adjusted else None,
        "flips": float(answer["flips"].mean()),
        "why": WHY_ADJUSTED if recipe.is_adjusted else WHY_UNADJUSTED,
    }


def _describe_exact(name: str, settings: str, known: SmallTarget, probabilities: np.ndarray) -> Row:
    return {
        "sampler": name,
        **({"settings": settings} if settings else {}),
        "is_reference": True,
        "flat_exact": float(known.flat_mass(probabilities)),
        "sharp_exact": float(known.sharp_mass(probabilities)),
        "log_density_exact": float(probabilities @ known.log_density),
        "distance_exact": known.distance(probabilities),
    }


def _describe_effective_step(recipe: Recipe, known: SmallTarget) -> Row:
    """The `dula` whose stationary distribution `edula` has if `U` is quadratic."""
    built = recipe.build(known.target, audit=False)
    names = ("step_size", "coupling_variance", "center_step_size")
    step = effective_step_size(*(float(built.parameters[name]) for name in names)).value
    exact = samplers.dula(step_size=step).stationary(known.target).probabilities()
    return _describe_exact(f"dula({step:g})", "exact distribution of dula at α_eff", known, exact)


def _describe_spectrum(name: str, answer: Content, known: SmallTarget, request: Request, printed: Row) -> Row:
    fractions, windows = _of_protocol(answer["fractions"], request), known.spectrum_std(answer["windows"])
    return {
        "sampler": name,
        "std": known.spectrum_std(fractions),
        "iqr": known.spectrum_iqr(fractions),
        "std_exact": float(known.spectrum_std(answer["distribution"])),
        "iqr_exact": float(known.spectrum_iqr(answer["distribution"])),
        "window_mean": float(windows.mean()),
        "window_sd": float(windows.std(ddof=1)) if len(windows) > 1 else None,
        **_find_percentiles(answer["windows"], known, printed),
        "window_std": windows,
    }


def _find_percentiles(windows: np.ndarray, known: SmallTarget, printed: Row) -> Row:
    """Where the paper's numbers are among runs of its length; ties count half."""
    if not printed:
        return {}
    found = {"percentile": known.spectrum_std(windows), "percentile_iqr": known.spectrum_iqr(windows)}
    wanted = {"percentile": float(printed["std"]), "percentile_iqr": float(printed["iqr"])}
    return {key: find_percentile(values, wanted[key]) for key, values in found.items()}


def find_percentile(values: np.ndarray, printed: float) -> float:
    """Percentile of a printed number, rounded or cut off, among values; those that print alike count half."""
    below, up_to = ((values < printed + reach).mean() for reach in (-5e-4, 1.5e-3))
    return float(100 * (below + up_to) / 2)


def _count_evaluations(request: Request, answer: Content, size: SimpleNamespace) -> int:
    """One per chain and step for each of these samplers; replicas of an ensemble share the chains."""

    def count(num_seeds: int, run: dict[str, int]) -> int:
        return num_seeds * run["num_chains"] * (run["num_warmup"] + run["num_draws"])

    long = count(len(answer["fractions"]), size.long) if request.is_sound else 0
    return count(len(answer["windows"]), size.window) + long
