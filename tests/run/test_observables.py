"""Observables followed while chains run: numbers of kept draws, at fixed memory, through interruptions."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe.diagnostics.quantity import measure
from steppe.domain import Binary, Categorical
from steppe.errors import CallbackError, RunError, RunMismatchError
from steppe.run.observables import NUM_BATCHES, Stream, overlap
from tiers import cases

TARGET = steppe.targets.ising_lattice((4, 4), coupling=0.3)
KEY = jax.random.key(3)


def magnetise(spins):
    return spins.mean()


OBSERVABLES = {
    "m": magnetise,
    "rare": steppe.Observable(magnetise, every=7, bins=16),
    "q": "overlap",
    "product": steppe.Observable(lambda a, b: a[0] * b[0], of_pairs=True, bins=0),
}


def run(keep="none", num_draws=300, recipe=None, **settings):
    settings = {"num_chains": 4, "num_warmup": 50, "observables": OBSERVABLES, **settings}
    sampler = steppe.chromatic_gibbs() if recipe is None else recipe
    return steppe.sample(TARGET, sampler, key=KEY, num_draws=num_draws, keep=keep, **settings)


def follow(values, bins=32):
    add = jax.jit(lambda values: jax.lax.scan(lambda s, x: (s.add(x), None), Stream.start(bins), values)[0])
    return jax.tree.map(np.asarray, add(jnp.asarray(values, jnp.float32)))


def assert_same(first, second):
    for name, one in first.observables.items():
        for field, a, b in zip(one._fields, one, second.observables[name], strict=True):
            assert np.array_equal(a, b, equal_nan=field not in ("name", "every")), (name, field)


@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe",
    [
        steppe.chromatic_gibbs(),
        steppe.dmala(),
        steppe.gibbs(),
    ],
    ids=lambda recipe: recipe.name,
)
def test_statistics_are_those_of_the_kept_draws(recipe):
    done = run(keep="draws", recipe=recipe)
    spins = done.positions.reshape(4, 300, 16)
    m, q = spins.mean(axis=-1), (spins[::2] * spins[1::2]).mean(axis=-1)
    expected = {"m": m, "rare": m[:, ::7], "q": q, "product": spins[::2, :, 0] * spins[1::2, :, 0]}
    for name, values in expected.items():
        found = done.observables[name]
        assert found.num_seen.tolist() == [values.shape[1]] * len(values)
        np.testing.assert_allclose(found.mean, values.mean(axis=1), atol=1e-6)
        np.testing.assert_allclose(found.variance, values.var(axis=1, ddof=1), rtol=1e-4, atol=1e-6)
        size = found.batch_size[0]
        full = values[:, : values.shape[1] // size * size].reshape(len(values), -1, size).mean(axis=2)
        np.testing.assert_allclose(found.batch_means[:, : full.shape[1]], full, atol=1e-5)
        if found.counts.size:
            counted = [np.histogram(chain, found.bin_edges)[0] for chain in values]
            assert np.array_equal(found.counts, counted)


@pytest.mark.slow
@pytest.mark.parametrize("keep", cases(("none", "stats"), fast=("none",)))
def test_what_is_kept_changes_no_number(keep):
    assert_same(run(keep="draws"), run(keep=keep))


@pytest.mark.slow
def test_observables_do_not_change_draws():
    kept = run(keep="draws")
    plain = run(keep="draws", observables=None, chain_block=kept.description.chain_block)
    assert np.array_equal(plain.levels, kept.levels)


def test_a_resumed_run_has_the_numbers_of_one_that_was_never_stopped(tmp_path):
    whole = run(num_draws=300)
    run(num_draws=90, out=tmp_path / "run", commit_seconds=0)
    resumed = run(num_draws=300, out=tmp_path / "run", resume=True)
    assert_same(whole, resumed)
    assert_same(whole, steppe.open_run(tmp_path / "run"))
    assert_same(whole, run(num_draws=90).extend(210))


@pytest.mark.slow
def test_shards_have_the_numbers_of_one_run(tmp_path):
    whole = run(chain_block=2)
    for index in range(2):
        run(chain_block=2, out=tmp_path, shard=(index, 2))
    assert_same(whole, steppe.open_run(tmp_path))
    merged = steppe.merge_shards([tmp_path], tmp_path / "merged")
    assert_same(whole, steppe.open_run(merged))


@pytest.mark.parametrize(
    "changed",
    [{"m": magnetise}, {**OBSERVABLES, "m": lambda spins: spins.sum()}, {**OBSERVABLES, "rare": magnetise}],
    ids=["fewer", "another function", "another interval"],
)
def test_a_run_is_not_continued_with_other_observables(tmp_path, changed):
    run(num_draws=20, out=tmp_path / "run")
    with pytest.raises(RunMismatchError, match="observable"):
        run(num_draws=40, observables=changed, out=tmp_path / "run", resume=True)


def test_batches_histogram_and_moments_of_any_stream_are_exact():
    rng = np.random.default_rng(0)
    for drawn in (
        1e4 + rng.standard_normal(1000),
        rng.standard_cauchy(500),
        np.zeros(200),
        rng.integers(-30, 5, 777).astype(float),
        1e-6 * rng.standard_normal(300),
    ):
        values = drawn.astype(np.float32).astype(float)
        stream = follow(values)
        assert stream.num_seen == len(values)
        np.testing.assert_allclose(stream.origin + stream.mean, values.mean(), rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(stream.sum_of_squares, values.var() * len(values), rtol=1e-3, atol=1e-9)
        edges = np.ldexp(np.arange(33.0) + stream.first_bin, int(stream.exponent))
        places = np.searchsorted(edges, values, side="right") - 1
        assert np.array_equal(np.bincount(places, minlength=32), stream.counts)
        size = int(stream.batch_size)
        assert NUM_BATCHES * size // 2 < len(values) <= NUM_BATCHES * size
        sums = np.add.reduceat(values - values[0], np.arange(0, len(values), size))
        np.testing.assert_allclose(stream.batches[: len(sums)], sums, rtol=1e-3, atol=1e-3)


def test_a_constant_is_one_and_values_that_are_not_finite_count_nowhere_else():
    stream = follow([2.0, np.nan, 2.0, np.inf, 2.0])
    assert (stream.num_seen, stream.num_nonfinite) == (3, 2)
    assert (stream.origin + stream.mean, stream.sum_of_squares, stream.counts.sum()) == (2.0, 0.0, 3)


def test_autocorrelation_time_is_that_of_an_autoregression():
    # x' = a x + noise has τ = (1 + a) / (1 − a); 64 chains, so the mean estimate is known to a few per cent.
    a, rng = 0.9, np.random.default_rng(1)
    values = np.zeros((64, 4096))
    for step in range(1, 4096):
        values[:, step] = a * values[:, step - 1] + rng.standard_normal(64)
    add = jax.jit(jax.vmap(lambda v: jax.lax.scan(lambda s, x: (s.add(x), None), Stream.start(0), v)[0]))
    streams = add(jnp.asarray(values, jnp.float32))
    from steppe.diagnostics.streamed import read_streamed

    saved = {f"readings.streams.0.{name}": np.asarray(leaf)[None] for name, leaf in streams._asdict().items()}
    rows = {f"readings.{name}": np.ones((1, 64)) for name in ("num_rows", "acceptance_rate", "num_flips")}
    read = read_streamed([{**saved, **rows, "chain": np.arange(64)[None]}], [], 64).log_density
    ours, of_draws = read.summarize(), measure("x", values)
    assert values.size / ours.ess == pytest.approx(19, rel=0.1)
    assert np.median(read.autocorrelation_time) == pytest.approx(19, rel=0.2)
    assert ours.mcse == pytest.approx(of_draws.mcse, rel=0.1)
    assert ours.ess == pytest.approx(of_draws.ess, rel=0.2)
    assert ours.rhat == pytest.approx(of_draws.rhat, abs=0.01)


@pytest.mark.parametrize("domain", [Binary(3), Categorical(2, 3), steppe.Spin(3)], ids=repr)
def test_overlap_is_one_of_a_state_with_itself_and_zero_of_all_pairs_on_average(domain):
    states = domain.enumerate()
    table = jax.vmap(lambda a: jax.vmap(lambda b: overlap(domain, a, b))(states))(states)
    np.testing.assert_allclose(np.diag(table), 1)
    np.testing.assert_allclose(table.mean(), 0, atol=1e-6)


def test_summary_report_and_data_show_them(tmp_path):
    done = run(out=tmp_path / "run")
    summary = done.summary()
    assert [one.name for one in summary.mixing.quantities] == ["log_density", *OBSERVABLES]
    assert "autocorrelation time" in json.dumps([t.model_dump() for t in summary.present().tables])
    assert set(summary.to_dict()["observables"]) == {"log_density", *OBSERVABLES}
    tree = done.data["observables"]
    assert set(tree) == {"log_density", *OBSERVABLES}
    np.testing.assert_allclose(tree["m"]["mean"], done.observables["m"].mean)
    from steppe.report.page.gather import gather_run

    section = gather_run(steppe.open_run(tmp_path / "run"))
    assert [figure.key for figure in section.results.figures] == ["observables"]
    assert "observables" in section.pictures


def test_progress_line_shows_the_means(monkeypatch, capfd):
    monkeypatch.setenv("COLUMNS", "200")
    run(progress=True, num_warmup=0)  # the first chunk has draws
    assert "⟨m⟩" in capfd.readouterr().err


def fails(spins):
    raise KeyError("no such spin")


@pytest.mark.parametrize(
    ("observables", "error", "match"),
    [
        ({"m": lambda spins: spins}, RunError, r"into one number; it returned shape \(16,\)"),
        ({"m": lambda spins: "high"}, (RunError, CallbackError), "observables"),
        ({"m": fails}, CallbackError, "raised KeyError"),
        ({"m": lambda spins: spins.sum() * 1j}, RunError, "complex"),
        ({"m": lambda a, b: a.sum()}, CallbackError, "TypeError"),
        ({"two words": magnetise}, RunError, "name"),
        ({"log_density": magnetise}, RunError, "log_density"),
        ({"m": steppe.Observable(magnetise, bins=10**9)}, RunError, r"would take \d+ MB"),
        ({"m": 3}, RunError, "dictionary"),
        ({"m": "energy"}, RunError, "dictionary"),
        (magnetise, RunError, "dictionary"),
    ],
)
def test_observables_that_cannot_be_followed_are_refused_in_a_sentence(observables, error, match):
    with pytest.raises(error, match=match):
        run(observables=observables)


def test_pairs_need_pairs_of_chains():
    with pytest.raises(RunError, match="even `num_chains`"):
        run(num_chains=3)
    with pytest.raises(RunError, match="even `chain_block`"):
        run(chain_block=1)
    for wrong in ({"every": 0}, {"bins": 3}, {"bins": -1}, {"of_pairs": 1}):
        with pytest.raises(RunError, match="Observable"):
            steppe.Observable(magnetise, **wrong)


def test_runs_without_observables_say_how_to_follow_some():
    with pytest.raises(RunError, match="observables="):
        _ = run(observables=None).observables


def test_the_first_draw_after_warm_up_is_seen_and_no_step_before_it():
    target, counts = steppe.targets.paper_bernoulli(), {"num_chains": 2, "num_draws": 5, "num_warmup": 3}
    done = steppe.sample(target, steppe.gibbs(), key=KEY, observables={"m": magnetise}, **counts)
    assert done.observables["m"].num_seen.tolist() == [5] * 2
    means = done.positions.reshape(2, 5, 4).mean(axis=(1, 2))
    np.testing.assert_allclose(done.observables["m"].mean, means, atol=1e-6)
