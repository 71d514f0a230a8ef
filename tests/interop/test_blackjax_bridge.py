"""BlackJAX: its loop, thinning, progress bar and sequential Monte Carlo run our kernels."""

import importlib.util
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import steppe
from steppe.errors import TargetError
from steppe.interop import to_blackjax

DOMAIN = steppe.Binary(4)
PAIRS = jnp.triu(jax.random.normal(jax.random.key(1), (4, 4)))
NUM_STEPS = 30


def log_density(x):
    return x @ PAIRS @ x


@pytest.fixture(scope="module")
def blackjax():
    return pytest.importorskip("blackjax", reason="needs BlackJAX")


@pytest.fixture(scope="module")
def sampler():
    return steppe.edmala().build(steppe.Target(log_density, DOMAIN))


def test_mapped_loop_over_a_thinned_kernel_keeps_every_fifth_state_of_every_chain(blackjax, sampler):
    thinned = blackjax.util.thin_algorithm(
        sampler, thinning=5, info_transform=lambda info: info.acceptance_rate.mean()
    )

    def one_chain(key, state):
        return blackjax.util.run_inference_algorithm(key, thinned, 6, initial_state=state)[1]

    keys = jax.random.split(jax.random.key(4), 3)
    starts = jax.vmap(sampler.init)(DOMAIN.draw(jax.random.key(3), (3,)))
    states, rates = jax.vmap(one_chain)(keys, starts)
    assert rates.shape == (3, 6)
    state, kept = jax.tree.map(lambda leaf: leaf[1], starts), []
    for key in jax.random.split(keys[1], 6):
        for inner in jax.random.split(key, 5):
            state, _ = compiled_step(sampler, inner, state)
        kept.append(state.position)
    np.testing.assert_array_equal(states.position[1], kept)


@jax.jit
def compiled_step(sampler, key, state):
    return sampler.step(key, state)


class StandInTap:
    """The part of jaxtap that the bar uses: a call back from every step of the outermost `jax.lax.scan`."""

    def __init__(self, monkeypatch):
        self._monkeypatch = monkeypatch

    def record(self, on_step, *, select, ops, max_depth):
        assert (ops, max_depth) == (("scan",), 0)
        scan = jax.lax.scan
        is_inside = False

        def tapped(body, init, xs=None, length=None, **options):
            nonlocal is_inside
            if is_inside:
                return scan(body, init, xs, length, **options)
            total = len(jax.tree.leaves(xs)[0]) if length is None else length

            def counting(carry, x):
                step, state = carry
                jax.debug.callback(lambda s: on_step(SimpleNamespace(step=int(s), total=total)), step)
                state, out = body(state, x)
                return (step + 1, state), out

            is_inside = True
            try:
                (_, state), outs = scan(counting, (jnp.zeros((), int), init), xs, length, **options)
            finally:
                is_inside = False
            return state, outs

        @contextmanager
        def patched():
            with self._monkeypatch.context() as patch:
                patch.setattr(jax.lax, "scan", tapped)
                yield

        return patched()


@pytest.fixture
def tap(monkeypatch):
    """The package that the progress bar of BlackJAX needs; not every index of packages has it."""
    if importlib.util.find_spec("jaxtap") is None:
        monkeypatch.setitem(sys.modules, "jaxtap", StandInTap(monkeypatch))


@pytest.mark.filterwarnings("ignore:IProgress not found")  # of tqdm, where notebooks have no widgets
def test_progress_bar_counts_every_step_and_changes_no_draw(blackjax, sampler, tap):
    def run():
        key, start = jax.random.key(5), jnp.zeros(4)
        return blackjax.util.run_inference_algorithm(key, sampler, NUM_STEPS, initial_position=start)

    with blackjax.progress_bar(print_rate=1) as bar:
        _, (seen, _) = run()
        jax.effects_barrier()
    assert (bar.current_step + 1, bar.n_steps) == (NUM_STEPS, NUM_STEPS)
    _, (expected, _) = run()
    np.testing.assert_array_equal(seen.position, expected.position)


def test_numbers_that_blackjax_passes_replace_those_of_the_recipe():
    kernel = to_blackjax(steppe.dmala(), DOMAIN)
    state = kernel.init(jnp.zeros(4), log_density)
    target = steppe.Target(log_density, DOMAIN)
    # At a step of 0.01 a flip has a chance of exp(−50); at the default it is made now and then.
    for step_size in (0.01, 0.7):
        step = steppe.dmala(step_size=step_size).build(target).step
        for key in jax.random.split(jax.random.key(7), 5):
            _, info = kernel.step(key, state, log_density, step_size=jnp.asarray(step_size))
            np.testing.assert_array_equal(info.acceptance_rate, step(key, state)[1].acceptance_rate)
            np.testing.assert_array_equal(info.num_flips, step(key, state)[1].num_flips)


NUM_RUNS, NUM_PARTICLES = 24, 200


def tempered(blackjax, key):
    """Weighted fraction of every state among particles tempered from uniform to `log_density`."""
    kernel = to_blackjax(steppe.dmala(), DOMAIN)
    smc = blackjax.tempered_smc(
        logprior_fn=lambda x: jnp.zeros(()),
        loglikelihood_fn=log_density,
        mcmc_step_fn=kernel.step,
        mcmc_init_fn=kernel.init,
        mcmc_parameters={"step_size": jnp.asarray([0.5])},
        resampling_fn=blackjax.smc.resampling.systematic,
        num_mcmc_steps=3,
    )
    key_start, key_steps = jax.random.split(key)
    state = smc.init(DOMAIN.draw(key_start, (NUM_PARTICLES,)))

    def warm(state, inputs):
        return smc.step(inputs[0], state, inputs[1])[0], None

    ladder = jnp.linspace(0.25, 1.0, 4)
    state, _ = jax.lax.scan(warm, state, (jax.random.split(key_steps, 4), ladder))
    return jnp.zeros(DOMAIN.num_states).at[DOMAIN.index(state.particles)].add(state.weights)


def test_tempered_smc_with_our_kernel_ends_at_the_target(blackjax):
    # Runs are independent: a t test per state. All 16 together raise a false alarm once in 10 000 seeds
    # and see, nearly always, a probability off by 0.03; the bias of 200 particles is below 0.002.
    fractions = jax.jit(lambda keys: jax.lax.map(lambda key: tempered(blackjax, key), keys))(
        jax.random.split(jax.random.key(6), NUM_RUNS)
    )
    distribution = jax.nn.softmax(jax.vmap(log_density)(DOMAIN.enumerate()))
    p_values = np.asarray(scipy.stats.ttest_1samp(np.asarray(fractions - distribution, float), 0.0)[1], float)
    assert p_values.min() > 1e-4 / DOMAIN.num_states, p_values


def test_refuses_what_is_no_recipe():
    with pytest.raises(TargetError, match=r"to_blackjax\(recipe=...\)"):
        to_blackjax("dmala", DOMAIN)
