"""BlackJAX: its loop, thinning, progress bar and sequential Monte Carlo run our kernels."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import steppe
from steppe.errors import RecipeError
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


def test_progress_bar_counts_every_step(blackjax, sampler, tmp_path):
    pytest.importorskip("jaxtap", reason="the progress bar of BlackJAX needs jaxtap")
    seen = tmp_path / "progress"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the bar's own: which widget it can draw
        with blackjax.progress_bar(output_file=str(seen)):
            blackjax.util.run_inference_algorithm(
                jax.random.key(5), sampler, NUM_STEPS, initial_position=jnp.zeros(4)
            )
    assert str(NUM_STEPS) in seen.read_text()


NUM_RUNS, NUM_PARTICLES = 24, 200


def tempered(blackjax, key):
    """Weighted share of every state among particles tempered from the uniform law to `log_density`."""
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
    shares = jax.jit(lambda keys: jax.lax.map(lambda key: tempered(blackjax, key), keys))(
        jax.random.split(jax.random.key(6), NUM_RUNS)
    )
    law = jax.nn.softmax(jax.vmap(log_density)(DOMAIN.enumerate()))
    p_values = scipy.stats.ttest_1samp(np.asarray(shares - law, float), 0.0).pvalue
    assert p_values.min() > 1e-4 / DOMAIN.num_states, p_values


def test_refuses_what_is_no_recipe():
    with pytest.raises(RecipeError, match=r"to_blackjax\(recipe, domain\)"):
        to_blackjax("dmala", DOMAIN)
