"""Images of an RBM: spoiling, measures, and the whole experiment at a small size."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from small_experiments import shrink
from steppe.report.cells import to_number
from steppe_edlp.engine import carry_out
from steppe_edlp.experiment import EXPERIMENTS
from steppe_edlp.figures import draw
from steppe_edlp.rbm import run as protocol
from steppe_edlp.rbm.images import (
    compare,
    find_log_discrepancy,
    find_similarity,
    pass_through_pictures,
    spoil,
)
from steppe_edlp.rbm.reference import check_mixing, find_worth
from steppe_edlp.request import Request
from steppe_edlp.work import Work

RNG = np.random.default_rng(0)
IMAGES = RNG.uniform(size=(50, 784)).astype(np.float32)
TINY = shrink(
    "rbm",
    num_hidden=8,
    num_updates=20,
    length={"num_chains": 8, "num_warmup": 5, "thinning": 2, "num_draws": 8},
    num_seeds=2,
    num_epochs=1,
    num_lessons=1000,
    tempering={"num_chains": 4, "num_warmup": 10, "thinning": 1, "num_draws": 20},
    num_reference=25,
    num_reference_steps=10,
    num_temperatures=20,
)


def test_spoiling_adds_the_stated_noise_and_one_black_square():
    grey = np.full((400, 784), 0.5, np.float32)
    noise = spoil(grey, "noisy", 0) - grey
    assert noise.std() == pytest.approx(0.1, rel=0.02)  # 313 600 numbers: five standard errors are 0.6 %
    black = (spoil(grey, "occluded", 0) == 0).reshape(400, 28, 28)
    sides = black.any(axis=1).sum(axis=1)
    np.testing.assert_array_equal(black.sum(axis=(1, 2)), sides**2)
    assert (sides.min(), sides.max()) == (5, 10)
    assert spoil(grey, "clean", 0) is grey


def test_small_images_are_occluded_in_proportion():
    sides = (spoil(np.ones((200, 64), np.float32), "occluded", 0) == 0).reshape(200, 8, 8).any(1).sum(1)
    assert set(sides.tolist()) == {1, 2, 3}


def test_a_perfect_reconstruction_scores_best():
    error, ratio, likeness, brightness = compare(IMAGES, IMAGES)
    assert (error, brightness) == (0, 0)
    assert likeness == pytest.approx(1)
    assert ratio > 100


def test_measures_have_their_definitions():
    error, ratio, _, brightness = compare(IMAGES + 0.1, IMAGES)
    assert error == pytest.approx(0.01, rel=1e-4)
    assert ratio == pytest.approx(20, rel=1e-4)
    assert brightness == pytest.approx(-0.1, rel=1e-4)


def test_similarity_is_that_of_the_formula_on_a_constant_pair():
    black, white = np.zeros((1, 784)), np.ones((1, 784))
    assert find_similarity(black, white)[0] == pytest.approx(1e-4 / (1 + 1e-4))


def test_discrepancy_is_small_for_one_distribution_and_large_for_two():
    first, second = (RNG.random((2, 300, 64)) < 0.3).astype(np.uint8)
    other = (RNG.random((300, 64)) < 0.6).astype(np.uint8)
    assert find_log_discrepancy(first, first) < -20
    assert find_log_discrepancy(first, other) > find_log_discrepancy(first, second) + 1


def draw_bits(num_images, seed=1):
    """Independent images of 30 bits with means between a tenth and nine tenths."""
    rng = np.random.default_rng(seed)
    return (rng.random((num_images, 30)) < np.linspace(0.1, 0.9, 30)).astype(np.uint8)


@pytest.mark.slow
def test_repeated_images_are_worth_what_they_repeat():
    """Means over forty sets; the worth of one varies by about a fifth."""
    reference = draw_bits(2000, 0)
    for repeats in (1, 5):
        sets = [np.repeat(draw_bits(200 // repeats, seed), repeats, axis=0) for seed in range(1, 41)]
        inverse = np.mean([1 / find_worth(images, reference) for images in sets])
        assert 1 / inverse == pytest.approx(200 / repeats, rel=0.1)


@pytest.mark.parametrize(
    "case", ["right", "stuck chains", "wrong height", "wrong images", "own distribution", "bad reference"]
)
def test_only_chains_that_forgot_their_start_and_have_the_distribution_have_mixed(case):
    rng = np.random.default_rng(0)
    reference = {"images": draw_bits(2000), "log_density": rng.normal(size=(8, 250))}
    reference["rhat"] = 1.2 if case == "bad reference" else 1.0
    chains, images = rng.normal(size=(20, 20)), draw_bits(400, 2)
    chains += {"stuck chains": 2 * rng.normal(size=(20, 1)), "wrong height": 1.0}.get(case, 0.0)
    chains += 1.0 * (case == "own distribution")
    images = 1 - images if case == "wrong images" else images
    gate = check_mixing(chains, [images], reference, has_distribution=case != "own distribution")
    assert gate.is_mixed == (case in ("right", "own distribution"))


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["sound", pytest.param("published", marks=pytest.mark.slow)])
def test_everything_is_reported(monkeypatch, tmp_path, asked):
    monkeypatch.setattr(protocol, "NUM_CODERS", 2)
    names = ("dula",) if asked == "sound" else ("dula", "edula")
    request = Request(protocol=asked, samplers=names)
    results = carry_out(TINY, request, tmp_path, progress=False)
    assert len(results.verdicts) == (1 if asked == "sound" else 4)
    assert results.provenance.data["digits"]
    assert set(draw(results)) == {figure.key for figure in results.figures}
    monkeypatch.setattr(protocol, "train_rbm", None)  # finished pieces are not done again: these would fail
    monkeypatch.setattr(protocol, "draw_images", None)
    assert carry_out(TINY, request, tmp_path, progress=False).tables == results.tables


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["sound", "published"])
def test_quick_scale_runs_to_the_end(tmp_path, asked):
    results = carry_out(EXPERIMENTS["rbm"], Request(protocol=asked), tmp_path, progress=False)
    heights = {row["sampler"]: to_number(row["log_density"]) for row in results.table("machine").rows}
    # The reference and block Gibbs have one distribution; means over hundreds of images agree to a nat.
    assert heights["block_gibbs"] == pytest.approx(heights[protocol.REFERENCE[asked]], abs=1.5)
    if asked == "sound":
        assert all(row.get("mixed", "yes") == "yes" for row in results.table("machine").rows)


@pytest.fixture
def copying(monkeypatch):
    """Networks that put out what they are given, and see the digit that is their number of bits."""
    monkeypatch.setattr(protocol.networks, "train_auto_encoder", lambda images, **settings: "copier")
    monkeypatch.setattr(protocol.networks, "train_lenet", lambda x, y, **settings: "counter")
    monkeypatch.setattr(protocol.networks, "find_accuracy", lambda network, x, y: 1.0)

    def apply(network, x):
        return x if network == "copier" else np.eye(10)[np.asarray(x.sum(axis=1), int)]

    monkeypatch.setattr(protocol.networks, "apply", apply)
    size = SimpleNamespace(num_epochs=1, num_lessons=1000)
    return protocol.Setting(Request(), size, protocol.datasets.load("digits"), None)


def packed(bits):
    return {"images": np.packbits(np.asarray(bits, np.uint8), axis=1), "log_density": np.zeros(len(bits))}


def test_a_copier_is_perfect_against_the_spoiled_image_and_not_against_the_clean_one(copying, tmp_path):
    found = protocol._reconstruct(
        copying, Work(tmp_path, "", "", False), "i", lambda: packed(np.ones((4, 64))), 0
    )
    np.testing.assert_allclose(found["itself"][:, 0], 0)
    assert found["clean"][0, 0] == 0
    assert (found["clean"][1:, 0] > 1e-3).all()


def test_digits_are_counted_for_the_sampler_that_drew_them(copying, tmp_path):
    def images(number):
        bits = np.zeros((30, 64))
        bits[:, :number] = 1
        return packed(bits)

    ground = np.zeros((5, 64), np.uint8)
    own = {"images": ground, "log_density": 0.0, "floor": 0.0, "shown": ground}
    answers = {"reference": own, "images-dula-0": images(3), "images-dmala-0": images(7)}
    draws = {key: partial(dict, answer) for key, answer in answers.items()}
    work = Work(tmp_path, "", "", False)
    found = protocol._classify(copying, work, draws, {"dula": None, "dmala": None}, [0])
    dula, dmala = (found["samplers"][name] for name in ("dula", "dmala"))
    assert dula["counts"].tolist() == [[0, 0, 0, 30, 0, 0, 0, 0, 0, 0]]
    assert dmala["counts"].tolist() == [[0, 0, 0, 0, 0, 0, 0, 30, 0, 0]]
    assert found["reference"].tolist() == [5, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    assert dula["discrepancy"] < dmala["discrepancy"]
    assert (dula["shown"].sum(axis=1) == 3).all()


def test_pictures_keep_blank_and_full_images_and_blur_edges():
    bits = np.zeros((3, 784), np.float32)
    bits[1], bits[2].reshape(28, 28)[:, :14] = 1, 1
    found = pass_through_pictures(bits)
    np.testing.assert_allclose(found[:2], bits[:2], atol=1e-6)
    edge = found[2].reshape(28, 28)[5]
    assert (edge[:12] == 1).all()
    assert (edge[16:] == 0).all()
    assert ((edge > 0) & (edge < 1)).any()
