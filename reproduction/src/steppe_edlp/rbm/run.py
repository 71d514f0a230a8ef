"""What is run: a machine, images of every sampler, and auto-encoders trained on them."""

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from steppe import datasets
from steppe.kernel.compose import Recipe
from steppe.targets.rbm import Rbm, rbm
from steppe.training import log_likelihood, train_rbm
from steppe_edlp import networks
from steppe_edlp.rbm import report
from steppe_edlp.rbm.drawing import PAPER, Length, drawn, reference, sound_recipes
from steppe_edlp.rbm.images import CONDITIONS, compared, log_discrepancy, spoiled
from steppe_edlp.request import Findings, Request
from steppe_edlp.work import Content, Piece, Work

SPOILING_SEED = 1
NUM_CODERS = 5  # auto-encoders per set of images in the paper
NUM_SHOWN = 25


class Size(NamedTuple):
    """How much is run.

    Attributes
    ----------
    num_hidden
        Hidden bits of the machine.
    num_updates
        Updates of its weights; `None` for the preset's.
    length
        Length of the chains of one seed.
    num_seeds
        Seeds of samplers.
    num_epochs
        Passes of an auto-encoder through the images.
    num_lessons
        Images LeNet is trained on, every repetition counted.
    num_reference, num_reference_steps
        Chains of layer-wise Gibbs, and their length.
    num_temperatures
        Of the annealing that estimates the normaliser.
    num_tests
        Test images; `None` for all.
    """

    num_hidden: int
    num_updates: int | None
    length: Length
    num_seeds: int
    num_epochs: int
    num_lessons: int
    num_reference: int
    num_reference_steps: int
    num_temperatures: int
    num_tests: int | None


SIZES = {
    ("sound", "quick"): Size(64, 2000, Length(24, 500, 25, 10), 3, 10, 30_000, 200, 500, 1000, None),
    ("published", "quick"): Size(64, 600, Length(40, 500, 25, 8), 1, 15, 30_000, 200, 500, 1000, None),
    # Ten passes through MNIST, as in the paper.
    ("sound", "full"): Size(500, None, Length(20, 2000, 1000, 50), 5, 25, 600_000, 500, 10_000, 10_000, None),
    ("published", "full"): Size(
        500, None, Length(100, 2000, 1000, 50), 1, 25, 600_000, 500, 10_000, 10_000, None
    ),
}


class Setting(NamedTuple):
    """What every piece of work shares."""

    request: Request
    size: Size
    data: datasets.Dataset
    machine: Rbm

    @property
    def mean_image(self) -> np.ndarray:
        """Mean of the bits of the training images."""
        return (self.data.train.x > 0.5).mean(axis=0)

    @property
    def tests(self) -> np.ndarray:
        """Test images."""
        return self.data.test.x[: self.size.num_tests]


def run(request: Request, work: Work) -> Findings:
    """Carry out the experiment on 8 × 8 digits, or on MNIST where data are given."""
    size = SIZES[request.protocol, request.scale]
    data = datasets.load("digits" if request.data is None else "mnist", data=request.data)
    trained = work.one("machine", partial(_trained, request, size, data))
    setting = Setting(request, size, data, rbm(*(trained[name] for name in ("weights", "hidden", "visible"))))
    known = sound_recipes(data.train.x.shape[1]) if request.is_sound else PAPER
    recipes = {name: known[name] for name in request.chosen(known)}
    seeds = request.seeds(size.num_seeds)
    shared = {"reference": partial(_reference, setting), "normalizer": partial(_likelihood, setting)}
    images = {
        f"images-{name}-{seed}": partial(_images, setting, recipe, seed)
        for seed in seeds
        for name, recipe in recipes.items()
    }
    answers = work.all(shared | images)
    judges: dict[str, Piece] = {"modes": partial(_modes, setting, answers, recipes, seeds)}
    judges |= {
        f"judged-{name}-{seed}-{coder}": partial(_judged, setting, answers[f"images-{name}-{seed}"], coder)
        for name in recipes
        for seed in seeds
        for coder in _coders(request, seed)
    }
    answers = answers | work.all(judges)
    found = [_gathered(request, answers, name, seeds) for name in recipes]
    return report.findings(
        request,
        report.Context(
            size, data, recipes, seeds, answers["normalizer"], answers["modes"], answers["reference"]
        ),
        dict(zip(recipes, found, strict=True)),
        _digests(data),
    )


def _coders(request: Request, seed: int) -> range:
    """The paper trains five auto-encoders on one set of images; soundly, every set has its own."""
    return range(seed, seed + 1) if request.is_sound else range(NUM_CODERS)


def _digests(data: datasets.Dataset) -> dict[str, str]:
    if data.card.sha256:
        return dict(data.card.sha256)
    content = data.train.x.tobytes() + data.test.x.tobytes()
    return {data.card.name: hashlib.sha256(content).hexdigest()}


def _trained(request: Request, size: Size, data: datasets.Dataset) -> Content:
    made = train_rbm(
        data.train.x,
        size.num_hidden,
        key=jax.random.key(request.seed),
        preset="persistent" if request.is_sound else "paper",
        num_updates=size.num_updates,
        progress=False,
    )
    parts = {"weights": made.weights, "hidden": made.hidden_bias, "visible": made.visible_bias}
    return {name: np.asarray(part, np.float32) for name, part in parts.items()}


def _reference(setting: Setting) -> Content:
    """Two independent sets of layer-wise Gibbs images: the second says how well sets can agree."""
    size = setting.size
    first, second = (
        reference(setting.machine, setting.mean_image, seed, size.num_reference, size.num_reference_steps)
        for seed in (10_001, 10_002)
    )
    return {
        "images": first.images,
        "log_density": np.concatenate([first.log_density, second.log_density]),
        "floor": log_discrepancy(second.images, first.images),
        "shown": second.images[:NUM_SHOWN],
    }


def _likelihood(setting: Setting) -> Content:
    found = log_likelihood(
        setting.machine,
        setting.tests > 0.5,
        jax.random.key(20_001),
        num_temperatures=setting.size.num_temperatures,
    )
    return {key: float(value) for key, value in found._asdict().items()}


def _images(setting: Setting, recipe: Recipe, seed: int) -> Content:
    length = setting.size.length
    found = drawn(
        setting.machine,
        recipe,
        setting.mean_image,
        seed,
        length,
        equal_budget=setting.request.is_sound,
    )
    return {"images": np.packbits(found.images, axis=1), "log_density": found.log_density}


def unpacked(setting: Setting, answer: Content) -> np.ndarray:
    """Images as rows of bits."""
    return np.unpackbits(answer["images"], axis=1)[:, : setting.data.train.x.shape[1]]


def _judged(setting: Setting, answer: Content, coder: int) -> Content:
    """Train an auto-encoder on images and let it reconstruct test images, clean and spoiled."""
    network = networks.train_auto_encoder(
        unpacked(setting, answer).astype(np.float32),
        key=jax.random.key(30_000 + coder),
        num_epochs=setting.size.num_epochs,
        progress=False,
    )
    clean = setting.tests
    against_itself, against_clean = [], []
    for condition in CONDITIONS:
        inputs = spoiled(clean, condition, SPOILING_SEED)
        outputs = networks.apply(network, inputs)
        against_itself.append(compared(outputs, inputs))
        against_clean.append(compared(outputs, clean))
    return {"itself": np.asarray(against_itself), "clean": np.asarray(against_clean)}


def _modes(
    setting: Setting, answers: Mapping[str, Content], recipes: Mapping[str, Any], seeds: list[int]
) -> Content:
    """Train LeNet on the data and let it say which digits the images show; and compare sets of images."""
    train, test = setting.data.train, setting.data.test
    num_epochs = max(1, round(setting.size.num_lessons / len(train.x)))
    network = networks.train_lenet(
        train.x, train.y, key=jax.random.key(40_001), num_epochs=num_epochs, progress=False
    )
    found: Content = {"accuracy": networks.accuracy(network, test.x, test.y)}
    ground = answers["reference"]["images"]
    for name in recipes:
        sets = [unpacked(setting, answers[f"images-{name}-{seed}"]) for seed in seeds]
        digits = [np.argmax(networks.apply(network, part.astype(np.float32)), axis=1) for part in sets]
        found[f"counts_{name}"] = np.asarray([np.bincount(part, minlength=10) for part in digits])
        found[f"discrepancy_{name}"] = np.asarray(
            [log_discrepancy(part[-len(ground) :], ground) for part in sets]
        )
        found[f"shown_{name}"] = sets[0][np.linspace(0, len(sets[0]) - 1, NUM_SHOWN).astype(int)]
    digits = np.argmax(networks.apply(network, ground.astype(np.float32)), axis=1)
    found["counts_reference"] = np.bincount(digits, minlength=10)[None]
    return found


def _gathered(
    request: Request, answers: Mapping[str, Content], name: str, seeds: list[int]
) -> dict[str, np.ndarray]:
    """Everything about one sampler, the first axis counting seeds (or auto-encoders, as published)."""
    judged = [answers[f"judged-{name}-{seed}-{coder}"] for seed in seeds for coder in _coders(request, seed)]
    heights = [answers[f"images-{name}-{seed}"]["log_density"] for seed in seeds]
    return {
        "itself": np.stack([part["itself"] for part in judged]),
        "clean": np.stack([part["clean"] for part in judged]),
        "log_density": np.stack([part.mean() for part in heights]),
        "discrepancy": answers["modes"][f"discrepancy_{name}"],
        "counts": answers["modes"][f"counts_{name}"],
    }
