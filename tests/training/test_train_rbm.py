"""Training: the gradient against enumeration, learning, any sampler, kills and resumption, refusals."""

import json
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

import steppe
from steppe import targets, training
from steppe.errors import RecipeError, RunError, RunMismatchError, StorageError
from steppe.training import contrastive
from steppe.training.checkpoint import Checkpoint
from steppe.training.protocol import protocol_of

KEY = jax.random.key(3)
STATES = np.asarray(list(product((0.0, 1.0), repeat=6)))
# Two patterns with every bit wrong in one of ten rows: far from independent bits.
PATTERNS = np.asarray([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
RNG = np.random.default_rng(0)
DATA = np.abs(PATTERNS[RNG.integers(0, 2, 400)] - (RNG.uniform(size=(400, 6)) < 0.1))
SHORT = {"num_updates": 30, "batch_size": 20, "key": KEY}


def exact_log_likelihood(trained, rows):
    """By summing over all states of visible and hidden bits."""
    W, b, c = (
        np.asarray(part, float) for part in (trained.weights, trained.hidden_bias, trained.visible_bias)
    )

    def values(v):
        return v @ c + np.logaddexp(0, v @ W.T + b).sum(-1)

    return float(values(rows).mean() - logsumexp(values(STATES)))


def independent_bits_log_likelihood(rows):
    mean = rows.mean(0)
    return float((rows * np.log(mean) + (1 - rows) * np.log(1 - mean)).sum(1).mean())


def entropy_of(rows):
    _, counts = np.unique(rows, axis=0, return_counts=True)
    return -float((counts / len(rows) * np.log(counts / len(rows))).sum())


@pytest.mark.slow
def test_the_gap_has_the_gradient_of_the_likelihood_when_samples_follow_the_distribution():
    # All 64 states, weighted by their probabilities, stand for infinitely many samples.
    rng = np.random.default_rng(1)
    with jax.enable_x64(True):
        start = contrastive.Parameters(*(jnp.asarray(rng.normal(size=s)) for s in ((3, 6), (3,), (6,))))

        def likelihood(parameters):
            values = targets.rbm(*parameters).log_density
            return jnp.mean(values(DATA * 1.0)) - jax.nn.logsumexp(values(STATES))

        distribution = jax.nn.softmax(targets.rbm(*start).log_density(jnp.asarray(STATES)))
        draws = np.repeat(STATES, np.round(np.asarray(distribution) * 100_000).astype(int), axis=0)
        gap = jax.grad(contrastive._gap)(start, jnp.asarray(DATA * 1.0), jnp.asarray(draws))
        exact = jax.grad(likelihood)(start)
    for found, wanted in zip(gap, exact, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-3)  # 64 states, each rounded to 1e-5


@pytest.mark.parametrize("method", ["cd", "pcd"])
def test_training_finds_structure_that_independent_bits_miss(method):
    # Independent bits reach −4.16 nats, the entropy of the data is 3.3; a machine that learns nothing
    # stays at the former. Seeds are fixed; the bound leaves a third of the distance.
    trained = training.train_rbm(
        DATA, 4, key=KEY, method=method, k=2, num_updates=600, batch_size=50, learning_rate=0.02
    )
    floor, ceiling = independent_bits_log_likelihood(DATA), -entropy_of(DATA)
    assert exact_log_likelihood(trained, DATA) > floor + 2 / 3 * (ceiling - floor)
    assert len(trained.history["gap"]) == 100
    assert trained.samples.shape == (50, 6)


def test_the_reported_likelihood_is_the_exact_one_for_small_machines():
    trained = training.train_rbm(DATA, 3, **SHORT)
    found = training.log_likelihood(trained.target, DATA, KEY)
    assert found.value == pytest.approx(exact_log_likelihood(trained, DATA), abs=1e-4)
    assert found.standard_error == 0


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [steppe.edmala(), steppe.gibbs(num_updates=2)], ids=lambda r: r.name)
def test_any_recipe_serves_as_sampler(recipe):
    trained = training.train_rbm(DATA, 3, sampler=recipe, k=2, **SHORT)
    assert np.isfinite(trained.weights).all()
    assert set(np.unique(trained.samples)) <= {0.0, 1.0}


def test_the_paper_preset_is_the_published_protocol():
    protocol = protocol_of("paper", {})
    assert protocol == ("cd", 10, 600, 100, 1e-3, False)
    start = contrastive.start(KEY, np.tile(DATA, (1, 2)).astype(np.uint8), 5, 10)
    assert float(jnp.abs(start.parameters.weights).max()) <= 1 / np.sqrt(12)
    np.testing.assert_allclose(jax.nn.sigmoid(start.parameters.visible_bias)[:6], DATA.mean(0), rtol=1e-5)
    assert not start.parameters.hidden_bias.any()


def test_every_row_is_used_once_per_epoch(monkeypatch):
    # The gap is made to tell which row the batch of one row is; 16 updates are two epochs.
    def which(parameters, batch, _):
        return jnp.sum(batch * jnp.arange(8)) + 0 * parameters.hidden_bias.sum()

    monkeypatch.setattr(contrastive, "_gap", which)
    trained = training.train_rbm(np.eye(8), 2, key=KEY, k=1, num_updates=16, batch_size=1)
    epochs = trained.history["gap"].reshape(2, 8)
    np.testing.assert_array_equal(np.sort(epochs), [range(8)] * 2)
    assert (epochs[0] != epochs[1]).any()


def interrupted(monkeypatch, out, after):
    """Train until a number of commits, and stop there as a kill would."""
    commits = []
    save = Checkpoint.save

    def save_and_stop(self, update, state):
        save(self, update, state)
        commits.append(update)
        if len(commits) == after:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "save", save_and_stop)
        with pytest.raises(KeyboardInterrupt):
            training.train_rbm(DATA, 3, out=out, **SHORT)


def test_a_resumed_training_ends_bit_for_bit_where_an_uninterrupted_one_does(tmp_path, monkeypatch):
    whole = training.train_rbm(DATA, 3, **SHORT)
    interrupted(monkeypatch, tmp_path, after=7)
    resumed = training.train_rbm(DATA, 3, out=tmp_path, resume=True, **SHORT)
    for name in ("weights", "hidden_bias", "visible_bias", "samples"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))
    np.testing.assert_array_equal(resumed.history["gap"], whole.history["gap"])
    again = training.train_rbm(DATA, 3, out=tmp_path, resume=True, **SHORT)  # already complete
    np.testing.assert_array_equal(again.weights, whole.weights)
    assert [path.suffix for path in sorted(tmp_path.glob("0*"))] == [".bin"]


def test_damage_and_other_trainings_are_refused(tmp_path, monkeypatch):
    interrupted(monkeypatch, tmp_path, after=2)
    with pytest.raises(StorageError, match=r"already holds a training.*`resume=True`"):
        training.train_rbm(DATA, 3, out=tmp_path, **SHORT)
    with pytest.raises(RunMismatchError, match="num_hidden = 3, and 4 was asked for"):
        training.train_rbm(DATA, 4, out=tmp_path, resume=True, **SHORT)
    with pytest.raises(RunMismatchError, match="data = "):
        training.train_rbm(1 - DATA, 3, out=tmp_path, resume=True, **SHORT)
    record = json.loads((tmp_path / "training.json").read_text())
    arrays = tmp_path / record["arrays"]["file"]
    arrays.write_bytes(arrays.read_bytes()[:-1] + b"x")
    with pytest.raises(StorageError, match="does not match its recorded digest"):
        training.train_rbm(DATA, 3, out=tmp_path, resume=True, **SHORT)
    (tmp_path / "training.json").write_text("{}")
    with pytest.raises(StorageError, match=r"training\.json"):
        training.train_rbm(DATA, 3, out=tmp_path, resume=True, **SHORT)


def test_a_directory_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("…")
    with pytest.raises(StorageError, match=r"already holds 'thesis\.tex'"):
        training.train_rbm(DATA, 3, out=tmp_path, **SHORT)


REFUSED = {
    "grey levels up to 255": ({"data": DATA * 255}, RunError, r"\[0, 1\]; got 0 to 255"),
    "one row": ({"data": DATA[0]}, RunError, r"rows × visible bits; got an array of shape \(6,\)"),
    "no hidden bit": ({"num_hidden": 0}, RecipeError, "num_hidden=.*at least 1; got 0"),
    "no such method": ({"method": "ml"}, RunError, "method=.*'cd' or 'pcd'.*got 'ml'"),
    "no such preset": ({"preset": "best"}, RunError, "preset=.*'persistent' or 'paper'"),
    "a target for a sampler": ({"sampler": "gibbs"}, RunError, "sampler=.*recipe"),
    "a batch beyond the data": ({"batch_size": 500}, RunError, "batch of 500.*have 400"),
    "negative learning rate": ({"learning_rate": -1.0}, RecipeError, "learning_rate=.*positive"),
    "a number for a key": ({"key": 0}, RunError, "key=.*random key"),
    "resumption from nowhere": ({"resume": True}, RunError, "`resume=True` needs"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused(case):
    changes, kind, complaint = REFUSED[case]
    with pytest.raises(kind, match=complaint):
        training.train_rbm(**{"data": DATA, "num_hidden": 3, **SHORT, **changes})


def test_grey_levels_are_cut_at_one_half():
    grey = np.where(DATA == 1, 0.51, 0.5)
    np.testing.assert_array_equal(
        training.train_rbm(grey, 3, **SHORT).weights, training.train_rbm(DATA, 3, **SHORT).weights
    )
