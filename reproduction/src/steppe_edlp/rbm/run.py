"""An RBM, images of every sampler, and auto-encoders trained on them."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import numpy as np

from steppe import datasets, samplers
from steppe.errors import RunError
from steppe.intervals import estimate_smallest
from steppe.kernel.compose import Recipe
from steppe.results import Estimate
from steppe.targets.rbm import Rbm
from steppe.training import log_likelihood, train_rbm
from steppe_edlp import networks
from steppe_edlp.experiment import Experiment
from steppe_edlp.rbm.drawing import Length, draw_images, draw_reference
from steppe_edlp.rbm.images import (
    CONDITIONS,
    METRICS,
    compare,
    find_log_discrepancy,
    pass_through_pictures,
    spoil,
)
from steppe_edlp.rbm.reference import check_mixing, draw_tempered, evaluate, make_rbm, read_published
from steppe_edlp.request import Found, Request, Row, find_digests
from steppe_edlp.work import Content, Piece, Work

SPOILING_SEED = 1
NUM_CODERS = 5  # auto-encoders per set of images in the paper
NUM_SHOWN = 25
TILT_PER_SITE = 1 / 8
REFERENCE = {"sound": "parallel tempering", "published": "layer-wise Gibbs"}
# Samplers of other distributions than the RBM's.
TILTED = ("robust_ensemble", "roughness_tilted")
AGAINST = {
    "clean": "the clean image",
    "itself": "the spoiled image itself, as the authors did",
    "pictures": "the spoiled image itself, after training on pictures of 21 × 21 points, as the authors did",
}
MEANING = {
    "pictures": "The authors' programs write samples as 21 × 21 points and read them back at 28 × 28.",
    "clean": "A robust network removes the noise or fills the gap, so it is scored against the original.",
    "itself": "Scored this way, a network that copies noise and gaps does best.",
}


class Setting(NamedTuple):
    """What every piece of work shares."""

    request: Request
    size: SimpleNamespace
    data: datasets.Dataset
    find_target: Callable[[], Rbm]

    @property
    def target(self) -> Rbm:
        """The RBM, trained or read when it is first needed."""
        return self.find_target()

    @property
    def mean_image(self) -> np.ndarray:
        """Mean of the bits of the training images."""
        return (self.data.train.x > 0.5).mean(axis=0)


def run(experiment: Experiment, request: Request, work: Work) -> Found:
    """Carry out the experiment on 8 × 8 digits, or on MNIST where data are given."""
    size = experiment.size(request)
    data = datasets.load("digits" if request.data is None else "mnist", data=request.data)

    @cache
    def find_target() -> Rbm:
        trained = work.intermediate("machine", partial(_train, request, size, data))
        return make_rbm(trained)

    work.prepare({"machine": partial(_train, request, size, data)})
    setting, recipes = Setting(request, size, data, find_target), experiment.make_recipes(request)
    if "roughness_tilted" in recipes:
        strength = TILT_PER_SITE * data.train.x.shape[1]
        step_size = experiment.recipes["roughness_tilted"]["step_size"]
        recipes["roughness_tilted"] = samplers.roughness_tilted(strength=strength, step_size=step_size)
    seeds = request.seeds(size.num_seeds)
    reference = partial(_draw_tempered if request.is_sound else _draw_layerwise, setting)
    likelihood = (
        partial(_find_likelihood, setting, work, reference)
        if request.is_sound
        else partial(_anneal_likelihood, setting)
    )
    shared = {"reference": reference, "normalizer": likelihood}
    images = {
        f"images-{name}-{seed}": partial(_draw, setting, recipe, seed)
        for seed in seeds
        for name, recipe in recipes.items()
    }
    work.prepare({"reference": reference})
    work.prepare(shared | images)
    needed = {"normalizer": shared.pop("normalizer")}
    judges = {
        f"judged-{name}-{seed}-{coder}": partial(
            _reconstruct, setting, work, f"images-{name}-{seed}", images[f"images-{name}-{seed}"], coder
        )
        for name in recipes
        for seed in seeds
        for coder in _list_coders(request, seed)
    }
    classify = partial(_classify, setting, work, shared | images, recipes, seeds)
    pieces: dict[str, Piece] = {**needed, **judges, "modes": classify}
    if request.is_sound:
        pieces["mixing"] = partial(_check_mixing, setting, work, shared | images, recipes, seeds)
    answers = work.all(pieces)
    if missing := [key for key in pieces if key not in answers]:
        raise RunError(f"The record of rbm lacks {len(missing)} of {len(pieces)} cells, {missing[0]} first.")
    found = {name: _gather(request, answers, name, seeds) for name in recipes}
    return _describe(experiment, setting, recipes, seeds, found, answers)


# ---- pieces of work --------------------------------------------------------------------------------


def _list_coders(request: Request, seed: int) -> range:
    """The paper trains five auto-encoders on one set of images; soundly, every set has its own."""
    return range(seed, seed + 1) if request.is_sound else range(NUM_CODERS)


def _train(request: Request, size: SimpleNamespace, data: datasets.Dataset) -> Content:
    """Train the RBM; soundly on MNIST, one is read whose likelihood is known."""
    if request.is_sound and request.data is not None:
        return read_published(str(request.data))
    made = train_rbm(
        data.train.x,
        size.num_hidden,
        key=jax.random.key(request.seed),
        preset="persistent" if request.is_sound else "paper",
        num_updates=vars(size).get("num_updates"),
        progress=False,
    )
    parts = {"weights": made.weights, "hidden": made.hidden_bias, "visible": made.visible_bias}
    return {name: np.asarray(part, np.float32) for name, part in parts.items()}


def _draw_tempered(setting: Setting) -> Content:
    """Images by parallel tempering; the halves of the chains say how well sets can agree."""
    found = draw_tempered(setting.target, setting.mean_image, 10_001, **setting.size.tempering)
    images = found["images"]
    half = len(images) // 2
    return {
        **found,
        "floor": find_log_discrepancy(images[:half], images[half:]),
        "shown": images[np.linspace(0, len(images) - 1, NUM_SHOWN).astype(int)],
    }


def _draw_layerwise(setting: Setting) -> Content:
    """Two independent sets of layer-wise Gibbs images: the second says how well sets can agree."""
    size = setting.size
    first, second = (
        draw_reference(setting.target, setting.mean_image, seed, size.num_reference, size.num_reference_steps)
        for seed in (10_001, 10_002)
    )
    return {
        "images": first.images,
        "log_density": np.concatenate([first.log_density, second.log_density]),
        "floor": find_log_discrepancy(second.images, first.images),
        "shown": second.images[:NUM_SHOWN],
    }


def _find_likelihood(setting: Setting, work: Work, draw: Piece) -> Content:
    """Test log-likelihood, with the normalizer of the tempered run."""
    found, tests = work.intermediate("reference", draw), setting.data.test.x > 0.5
    value = float(evaluate(setting.target, tests).mean()) - found["log_normalizer"]
    numbers = {key: float(found[key]) for key in ("log_normalizer", "standard_error", "rhat", "num_rungs")}
    return {"value": value, **numbers}


def _anneal_likelihood(setting: Setting) -> Content:
    """Test log-likelihood, with the normalizer by annealed importance sampling."""
    key, tests = jax.random.key(20_001), setting.data.test.x > 0.5
    found = log_likelihood(setting.target, tests, key, num_temperatures=setting.size.num_temperatures)
    return {name: float(value) for name, value in found._asdict().items()}


def _draw(setting: Setting, recipe: Recipe, seed: int) -> Content:
    length, is_sound = Length(**setting.size.length), setting.request.is_sound
    found = draw_images(setting.target, recipe, setting.mean_image, seed, length, equal_budget=is_sound)
    return {"images": np.packbits(found.images, axis=1), "log_density": found.log_density}


def _unpack(setting: Setting, answer: Content) -> np.ndarray:
    return np.unpackbits(answer["images"], axis=1)[:, : setting.data.train.x.shape[1]]


def _reconstruct(setting: Setting, work: Work, key: str, draw: Piece, coder: int) -> Content:
    """Train an auto-encoder on images and let it reconstruct test images, clean and spoiled."""
    answer = work.intermediate(key, draw)
    images = _unpack(setting, answer).astype(np.float32)
    clean, is_sound = setting.data.test.x, setting.request.is_sound
    inputs = [spoil(clean, condition, SPOILING_SEED) for condition in CONDITIONS]

    def reconstruct(given: np.ndarray) -> list[np.ndarray]:
        network = networks.train_auto_encoder(
            given,
            key=jax.random.key(30_000 + coder),
            num_epochs=setting.size.num_epochs,
            keeps_last=not is_sound,  # the authors' batches include the last, smaller one
            progress=False,
        )
        return [networks.apply(network, part) for part in inputs]

    outputs = reconstruct(images)
    scores = {
        "log_density": float(answer["log_density"].mean()),
        "itself": np.asarray([compare(*pair) for pair in zip(outputs, inputs, strict=True)]),
        "clean": np.asarray([compare(output, clean) for output in outputs]),
    }
    if not is_sound:
        lossy = zip(reconstruct(pass_through_pictures(images)), inputs, strict=True)
        scores["pictures"] = np.asarray([compare(*pair) for pair in lossy])
    return scores


def _classify(
    setting: Setting, work: Work, draws: Mapping[str, Piece], recipes: Mapping[str, Any], seeds: list[int]
) -> Content:
    """Train LeNet on the data and let it say which digits the images show; and compare sets of images."""
    answers = {key: work.intermediate(key, draw) for key, draw in draws.items()}
    train, test = setting.data.train, setting.data.test
    num_epochs = max(1, round(setting.size.num_lessons / len(train.x)))
    key = jax.random.key(40_001)
    network = networks.train_lenet(train.x, train.y, key=key, num_epochs=num_epochs, progress=False)
    ground = answers["reference"]["images"]

    def count(images: np.ndarray) -> np.ndarray:
        digits = np.argmax(networks.apply(network, images.astype(np.float32)), axis=1)
        return np.bincount(digits, minlength=10)

    of_samplers = {}
    for name in recipes:
        sets = [_unpack(setting, answers[f"images-{name}-{seed}"]) for seed in seeds]
        discrepancies = [find_log_discrepancy(part[-len(ground) :], ground) for part in sets]
        of_samplers[name] = {
            "counts": np.asarray([count(part) for part in sets]),
            "discrepancy": np.asarray(discrepancies),
            "shown": sets[0][np.linspace(0, len(sets[0]) - 1, NUM_SHOWN).astype(int)],
        }
    accuracy = networks.find_accuracy(network, test.x, test.y)
    wanted = ("log_density", "floor", "shown", "rhat")
    own = {key: answers["reference"][key] for key in wanted if key in answers["reference"]}
    return {"accuracy": accuracy, "reference": count(ground), "ground": own, "samplers": of_samplers}


def _check_mixing(
    setting: Setting, work: Work, draws: Mapping[str, Piece], recipes: Mapping[str, Recipe], seeds: list[int]
) -> Content:
    """Whether the chains of every sampler have mixed, beside tempered ones."""
    reference = work.intermediate("reference", draws["reference"])
    gates = {}
    for name, recipe in recipes.items():
        keys = [f"images-{name}-{seed}" for seed in seeds]
        found = [work.intermediate(key, draws[key]) for key in keys]
        num_draws = setting.size.length["num_draws"]
        gates[name] = check_mixing(
            np.concatenate([one["log_density"].reshape(num_draws, -1).T for one in found]),
            [_unpack(setting, one) for one in found],
            reference,
            has_distribution=recipe.is_adjusted and name not in TILTED,
        )._asdict()
    return gates


def _gather(request: Request, answers: Mapping[str, Content], name: str, seeds: list[int]) -> Content:
    """Everything about one sampler, the first axis counting seeds (or auto-encoders, as published)."""
    coders = [(seed, coder) for seed in seeds for coder in _list_coders(request, seed)]
    judged = [answers[f"judged-{name}-{seed}-{coder}"] for seed, coder in coders]
    first = {seed: next(iter(_list_coders(request, seed))) for seed in seeds}
    densities = [np.float64(answers[f"judged-{name}-{seed}-{first[seed]}"]["log_density"]) for seed in seeds]
    return {
        **answers["modes"]["samplers"][name],
        **answers.get("mixing", {}).get(name, {}),
        **{scored: np.stack([part[scored] for part in judged]) for scored in AGAINST if scored in judged[0]},
        "log_density": np.stack(densities),
    }


# ---- what came out ---------------------------------------------------------------------------------


def _describe(
    experiment: Experiment,
    setting: Setting,
    recipes: Mapping[str, Recipe],
    seeds: list[int],
    found: Mapping[str, Content],
    answers: Mapping[str, Content],
) -> Found:
    request, length = setting.request, Length(**setting.size.length)
    modes = answers["modes"]
    reference = modes["ground"]
    own, ground = "clean" if request.is_sound else "itself", REFERENCE[request.protocol]
    counts = {
        ground: modes["reference"],
        **{name: part["counts"].sum(axis=0) for name, part in found.items()},
    }
    densities = {
        ground: reference["log_density"],
        **{name: part["log_density"] for name, part in found.items()},
    }
    missing = {name: int((counts[name] == 0).sum()) for name in found}
    lacking = [f"{name} ({number})" for name, number in missing.items() if number]
    not_mixed = [name for name, part in found.items() if not part.get("is_mixed", True)]
    conditions = [setting.data.card.name, *["all_digits"] * (not lacking), *["all_mixed"] * (not not_mixed)]
    facts = {
        "data": setting.data.card.name,
        "training": "CD-10" if not request.is_sound else "PCD-1" if request.data is None else "CD-25",
        "num_images": length.num_images * len(seeds),
        "num_steps": length.num_steps,
        "num_sets": len(next(iter(found.values()))[own]),
        "accuracy": float(modes["accuracy"]),
        "likelihood": answers["normalizer"],
        "num_missing": sum(missing.values()),
        "has_all_digits": not lacking,
        "lacking": ", ".join(lacking),
        "scored": AGAINST[own].split(",")[0],
        "densities": _say_range([float(part.mean()) for part in densities.values()]),
        "not_mixed": ", ".join(not_mixed),
        "ground": ground,
        "effective_digits": _say_range([_find_effective_number(part) for part in counts.values()]),
    }
    of_paper = {row["sampler"] for row in experiment.published}
    mixed = [name for name, part in found.items() if name in of_paper and part.get("is_mixed", True)]
    rivals = [name for name in mixed if name != "edmala"]
    if "edmala" in mixed and rivals:
        facts |= find_lead(found, rivals)
        conditions.append("rivals")
    return Found(
        rows={
            "reconstruction": [
                describe_reconstruction(request, name, part, scored, place)
                for scored in AGAINST
                if scored != ("pictures" if request.is_sound else "clean")
                for name, part in found.items()
                for place in range(len(CONDITIONS))
            ],
            "machine": _describe_distributions(
                ground, found, reference, answers["normalizer"]["log_normalizer"]
            ),
            "digits": [_describe_digits(name, part, name == ground) for name, part in counts.items()],
        },
        facts=facts,
        conditions=conditions,
        arrays={
            "shown": np.stack([reference["shown"], *(part["shown"] for part in found.values())]),
            "mse": np.stack([part[own][:, :, 0] for part in found.values()]),
        },
        recipes=recipes,
        seeds=seeds,
        data=find_digests(setting.data),
        model_evaluations=length.num_steps * length.num_chains * len(seeds) * len(found),
    )


def find_lead(found: Mapping[str, Content], rivals: list[str]) -> dict[str, Any]:
    """By how much the error of EDMALA on clean images is below that of the best of the others."""
    errors = {name: part["clean"][:, 0, 0] for name, part in found.items()}
    leads = {name: errors[name] - errors["edmala"] for name in rivals}
    rival = min(leads, key=lambda name: leads[name].mean())
    return {
        "lead": partial(estimate_smallest, list(leads.values())),
        "rival": rival,
        "num_rivals": len(rivals),
    }


def describe_reconstruction(request: Request, name: str, part: Content, scored: str, place: int) -> Row:
    """Scores of one sampler under one condition, with what they are read beside."""
    scores = dict(zip(METRICS, part[scored][:, place].T, strict=True))
    shown: Row = {key: values if request.is_sound else _with_error(values) for key, values in scores.items()}
    words = {"scored": scored, "against": AGAINST[scored], "meaning": MEANING[scored]}
    row: Row = {"sampler": name, "setting": CONDITIONS[place], "all": scores, **words}
    return {**row, **shown, "log_density": part["log_density"], **describe_gate(part)}


def _with_error(values: np.ndarray) -> Estimate:
    """Mean ± standard error from the population deviation, as the paper has it."""
    mean, error = float(values.mean()), float(values.std() / np.sqrt(len(values)))
    return Estimate(value=mean, low=mean - error, high=mean + error)


def _describe_distributions(
    ground: str, found: Mapping[str, Content], reference: Content, log_normalizer: float
) -> list[Row]:
    """How near the images are to the RBM's own distribution, and whether chains have mixed."""
    densities = np.ravel(reference["log_density"])
    first: Content = {"log_density": densities, "discrepancy": float(reference["floor"])}
    if "rhat" in reference:
        first["rhat"] = reference["rhat"]
    return [
        {
            "sampler": name,
            "is_reference": name == ground,
            "log_density": part["log_density"],
            "log_probability": float(part["log_density"].mean() - log_normalizer),
            "discrepancy": part["discrepancy"],
            **describe_gate(part),
        }
        for name, part in {ground: first, **found}.items()
    ]


def describe_gate(part: Content) -> Row:
    """What is known of the mixing of a sampler's chains."""
    row = {key: part[key] for key in ("rhat", "rhat_reference", "worth") if key in part}
    return row | ({"mixed": "yes" if part["is_mixed"] else "no"} if "is_mixed" in part else {})


def _describe_digits(name: str, counts: np.ndarray, is_reference: bool) -> Row:
    fractions = {f"digit_{digit}": float(part) for digit, part in enumerate(counts / counts.sum())}
    effective = _find_effective_number(counts)
    return {"sampler": name, "is_reference": is_reference, "effective": effective, **fractions}


def _find_effective_number(counts: np.ndarray) -> float:
    """The exponential of the entropy of the fractions."""
    fractions = counts[counts > 0] / counts.sum()
    return float(np.exp(-np.sum(fractions * np.log(fractions))))


def _say_range(values: list[float]) -> str:
    """The first number, and the range of the others."""
    first, *others = values
    return f"{first:.1f}; those of the samplers reach from {min(others):.1f} to {max(others):.1f}"
