"""NumPyro: models as targets, and recipes as kernels beside NUTS."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

import steppe
from steppe.errors import RecipeError, TargetError
from steppe.interop import NumpyroKernel, from_numpyro

numpyro = pytest.importorskip("numpyro", reason="needs NumPyro")
dist = pytest.importorskip("numpyro.distributions", reason="needs NumPyro")
gibbs = pytest.importorskip(
    "numpyro.infer.gibbs", reason="needs NumPyro 0.22, the first with a composite Gibbs"
)

# NumPyro gives away buffers when chains are mapped, and JAX says when it cannot use them.
pytestmark = pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")

SLOPES = np.asarray([1.0, 2.0])
PLACES = np.asarray([-1.0, 0.5, 2.0])
CHANCES = np.asarray([0.2, 0.3, 0.5])


def discrete_model(seen, *, spread=1.0):
    bits = numpyro.sample("bits", dist.Bernoulli(0.3).expand([2]).to_event(1))
    category = numpyro.sample("category", dist.Categorical(jnp.asarray(CHANCES)))
    start = numpyro.sample("start", dist.DiscreteUniform(-1, 2))
    mean = bits @ jnp.asarray(SLOPES) + jnp.asarray(PLACES)[category] * start
    numpyro.sample("seen", dist.Normal(mean, spread), obs=seen)


def test_log_density_and_differences_are_those_of_the_model():
    target = from_numpyro(discrete_model, 1.5, kwargs={"spread": 0.7})
    assert target.domain == steppe.Categorical(4, [2, 2, 3, 4])
    positions = target.domain.draw(jax.random.key(0), (5,))
    both = jax.jit(jax.vmap(lambda x: (target.value_and_grad(x), target.differences(x))))
    (values, gradients), tables = both(positions)
    for row, position in enumerate(positions):
        z = jax.tree.map(np.asarray, target.unpack(position))
        expected = (
            scipy.stats.bernoulli.logpmf(z["bits"], 0.3).sum()
            + np.log(CHANCES[z["category"]])
            - np.log(4)
            + scipy.stats.norm.logpdf(1.5, z["bits"] @ SLOPES + PLACES[z["category"]] * z["start"], 0.7)
        )
        np.testing.assert_allclose(values[row], expected, rtol=1e-5)
        exists = target.domain.level_mask
        slopes = target.domain.slopes(position, gradients[row])
        np.testing.assert_allclose(slopes[exists], tables[row][exists], rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(target.packing.pack(z), position)


def ordered_model(num=3):
    numbers = numpyro.sample("numbers", dist.Binomial(4, jnp.full(num, 0.4)).to_event(1))
    numpyro.sample("seen", dist.Normal(numbers.sum(), 1.0), obs=3.0)


def bits_model():
    bits = numpyro.sample("bits", dist.Bernoulli(logits=jnp.asarray([0.3, -1.0, 2.0])))
    numpyro.sample("seen", dist.Normal(bits @ jnp.asarray([1.0, -1.0, 0.5]), 1.0), obs=0.8)


def test_alike_ordered_sites_are_ordinal_and_two_valued_ones_are_bits():
    assert from_numpyro(ordered_model).domain == steppe.Ordinal(3, 5)
    assert from_numpyro(bits_model).domain == steppe.Binary(3)


def test_gradient_by_autograd_is_that_of_the_model_on_real_numbers():
    target = from_numpyro(bits_model, gradient="autograd")
    bits = jnp.asarray([1.0, 0.0, 1.0])
    residual = 0.8 - bits @ jnp.asarray([1.0, -1.0, 0.5])
    expected = jnp.asarray([0.3, -1.0, 2.0]) + residual * jnp.asarray([1.0, -1.0, 0.5])
    np.testing.assert_allclose(jax.jit(target.value_and_grad)(bits)[1], expected, rtol=1e-5)


def shifted_model():
    steps = numpyro.sample("steps", dist.DiscreteUniform(-1, 2).expand([2]).to_event(1))
    numpyro.sample("seen", dist.Normal(steps @ jnp.asarray(SLOPES), 1.0), obs=0.8)


def test_gradient_by_autograd_is_taken_at_the_values_and_not_at_their_levels():
    target = from_numpyro(shifted_model, gradient="autograd")
    levels = jnp.asarray([0.0, 3.0])  # the values −1 and 2
    expected = (0.8 - jnp.asarray([-1.0, 2.0]) @ SLOPES) * SLOPES
    value, gradient = jax.jit(target.value_and_grad)(levels)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5)
    expected_value = scipy.stats.norm.logpdf(0.8, -SLOPES[0] + 2 * SLOPES[1]) - 2 * np.log(4)
    np.testing.assert_allclose(value, expected_value, rtol=1e-5)


def mixed_model(seen):
    bits = numpyro.sample("bits", dist.Bernoulli(0.3).expand([2]).to_event(1))
    category = numpyro.sample("category", dist.Categorical(jnp.asarray(CHANCES)))
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
    place = mean + bits @ jnp.asarray(SLOPES) + jnp.asarray(PLACES)[category]
    numpyro.sample("seen", dist.Normal(place, 1.0), obs=seen)


def exact_mixed(seen):
    """Distribution of the 12 discrete states with the mean integrated out, and the mean's expectation."""
    bits, categories = np.indices((2, 2, 3))[:2].reshape(2, -1).T, np.indices((2, 2, 3))[2].ravel()
    shifts = bits @ SLOPES + PLACES[categories]
    prior = scipy.stats.bernoulli.logpmf(bits, 0.3).sum(axis=1) + np.log(CHANCES[categories])
    distribution = np.exp(prior + scipy.stats.norm.logpdf(seen, shifts, np.sqrt(5)))
    distribution /= distribution.sum()
    return distribution, distribution @ (4 / 5 * (seen - shifts))


def composite(recipe):
    ours = NumpyroKernel(mixed_model, recipe, num_steps=2)
    return gibbs.Gibbs([(ours, gibbs.discrete_latent_sites), (numpyro.infer.NUTS(mixed_model), None)])


def run(kernel, num_chains, num_warmup, num_draws, *arguments, key=0, extra_fields=()):
    mcmc = numpyro.infer.MCMC(
        kernel,
        num_warmup=num_warmup,
        num_samples=num_draws,
        num_chains=num_chains,
        chain_method=jax.vmap if num_chains > 1 else "sequential",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(key), *arguments, extra_fields=extra_fields)
    return mcmc


NUM_CHAINS, NUM_DRAWS = 32, 400
# Of all 13 tests together. A state whose probability is off by 0.03, or a mean off by 0.15, is eight
# standard errors away and missed once in a thousand seeds.
FALSE_ALARM = 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe", [steppe.dmala(), steppe.edmala_glu(), steppe.gibbs()], ids=lambda r: r.name
)
def test_mixed_model_beside_nuts_matches_enumeration(recipe):
    distribution, mean = exact_mixed(1.0)
    mcmc = run(composite(recipe), NUM_CHAINS, 150, NUM_DRAWS, 1.0)
    draws = jax.tree.map(np.asarray, mcmc.get_samples(group_by_chain=True))
    assert draws["bits"].shape == (NUM_CHAINS, NUM_DRAWS, 2)
    states = draws["bits"][..., 0] * 6 + draws["bits"][..., 1] * 3 + draws["category"]
    fractions = np.stack([(states == state).mean(axis=1) for state in range(12)], axis=1)
    found = np.concatenate([fractions - distribution, draws["mean"].mean(axis=1)[:, None] - mean], axis=1)
    # Chains are independent, so their averages are a sample for an ordinary t test.
    p_values = np.asarray(scipy.stats.ttest_1samp(found, 0.0)[1], float)
    assert p_values.min() > FALSE_ALARM / found.shape[1], p_values


@pytest.mark.slow
def test_kernel_alone_adapts_its_step_size_in_warmup_and_then_keeps_it():
    mcmc = run(NumpyroKernel(bits_model), 1, 60, 20, extra_fields=("step_size", "acceptance_rate"))
    fields = jax.tree.map(np.asarray, mcmc.get_extra_fields())
    assert np.ptp(fields["step_size"]) == 0
    assert fields["step_size"][0] != steppe.dmala().build(from_numpyro(bits_model)).parameters["step_size"]
    assert ((fields["acceptance_rate"] >= 0) & (fields["acceptance_rate"] <= 1)).all()
    assert mcmc.get_samples()["bits"].shape == (20, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe",
    [steppe.edmala(), pytest.param(steppe.gibbs(scan="systematic"), marks=pytest.mark.slow)],
    ids=lambda recipe: recipe.name,
)
def test_refreshed_state_is_evaluated_under_the_new_conditioning_and_keeps_its_own(recipe):
    kernel = NumpyroKernel(mixed_model, recipe).wrap_model(gibbs.conditioned)
    given = [gibbs.with_conditioning({}, {"mean": jnp.asarray(mean)}) for mean in (0.0, 2.0)]

    @jax.jit
    def sweep_and_refresh(key):
        state = kernel.sample(kernel.init(key, 0, None, (1.0,), given[0]), (1.0,), given[0])
        return state, kernel.refresh(state, (1.0,), given[1])

    state, moved = sweep_and_refresh(jax.random.key(0))
    bits, category = np.asarray(state.z["bits"]), int(state.z["category"])
    place = bits @ SLOPES + PLACES[category]
    change = scipy.stats.norm.logpdf(1.0, place + 2.0) - scipy.stats.norm.logpdf(1.0, place)
    change += scipy.stats.norm.logpdf(2.0, 0, 2) - scipy.stats.norm.logpdf(0.0, 0, 2)
    np.testing.assert_allclose(moved.chain.log_density - state.chain.log_density, change, rtol=1e-4)
    np.testing.assert_array_equal(moved.chain.position, state.chain.position)

    # What is the sampler's own: where its center is, and which site is next.
    def kept(chain):
        return chain.center, chain.memory[0].next_site if recipe.name == "gibbs" else None

    own = [kept(chain) for chain in (moved.chain, state.chain)]
    fresh = kernel.init(jax.random.key(0), 0, None, (1.0,), given[0]).chain
    assert jax.tree.all(jax.tree.map(np.array_equal, *own))
    assert not jax.tree.all(jax.tree.map(np.array_equal, own[1], kept(fresh)))


def spike_and_slab(X, y):
    with numpyro.plate("variables", X.shape[1]):  # `DiscreteGibbs` does not know `to_event`
        included = numpyro.sample("included", dist.Bernoulli(0.15))
        slope = numpyro.sample("slope", dist.Normal(0.0, 1.5))
    numpyro.sample("y", dist.Normal(X @ (included * slope), 1.0).to_event(1), obs=y)


def sum_out_slopes(X, y, inclusion, num_sweeps, rng):
    """Inclusion probabilities by Gibbs sampling of inclusions alone; Gaussian slopes are summed out."""
    included, total = np.zeros(X.shape[1], bool), np.zeros(X.shape[1])

    def log_evidence(included):
        Z, size = X[:, included], int(included.sum())
        root = np.linalg.cholesky(np.eye(size) / 1.5**2 + Z.T @ Z)
        fit = np.linalg.solve(root, Z.T @ y)
        prior = size * np.log(inclusion / (1 - inclusion) / 1.5)
        return fit @ fit / 2 - np.log(np.diag(root)).sum() + prior

    value = log_evidence(included)
    for sweep in range(num_sweeps + 100):
        for site in range(len(included)):
            other = included.copy()
            other[site] ^= True
            proposed = log_evidence(other)
            chance = scipy.special.expit(proposed - value)
            total[site] += (sweep >= 100) * (chance if other[site] else 1 - chance)
            if rng.random() < chance:
                included, value = other, proposed
    return total / num_sweeps


def compare_inclusions(chances, exact):
    """F-test of chain averages against exact probabilities that are not 1.

    The variance of an average is taken as p(1 − p) times one factor, estimated from the spread of chains over
    all variables: that of one variable in four chains may be next to nothing by chance.
    """
    chances, exact = chances[:, exact < 0.9], exact[exact < 0.9]
    num_chains, size = chances.shape
    within = (chances.var(axis=0, ddof=1) / (exact * (1 - exact))).mean()
    between = (num_chains * (chances.mean(axis=0) - exact) ** 2 / (exact * (1 - exact))).mean()
    return scipy.stats.f.sf(between / within, size, size * (num_chains - 1))


@pytest.mark.slow
def test_spike_and_slab_of_40_variables_has_the_exact_inclusion_probabilities():
    """False-alarm rate 1e-3, up to the correlation of variables; a prior of .2 instead of .15 is refused."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 40))
    truth = np.zeros(40)
    truth[[3, 11, 17, 25, 38]] = [1.5, -1.2, 2.0, 1.0, -1.8]
    y = X @ truth + rng.normal(size=100)
    exact, other = (sum_out_slopes(X, y, prior, 1600, np.random.default_rng(1)) for prior in (0.15, 0.2))
    # Exact differences: the gradient with respect to a bit misses the square of its slope, some hundred nats,
    # and chains that are guided by it stay where they start.
    ours = NumpyroKernel(spike_and_slab, num_steps=10)
    kernel = gibbs.Gibbs([(ours, gibbs.discrete_latent_sites), (numpyro.infer.NUTS(spike_and_slab), None)])
    mcmc = run(kernel, 4, 500, 1000, X, y)
    chances = np.asarray(mcmc.get_samples(group_by_chain=True)["included"], float).mean(axis=1)
    assert set(np.flatnonzero(chances.mean(axis=0) > 0.5)) == {3, 11, 17, 25, 38}
    assert compare_inclusions(chances, exact) > 1e-3
    assert compare_inclusions(chances, other) < 1e-3


def one_site(make):
    def model():
        make()

    return model


def dependent_bounds():
    top = numpyro.sample("top", dist.DiscreteUniform(1, 4))
    numpyro.sample("count", dist.Binomial(top, 0.5))


REFUSED = {
    "unbounded": (lambda: numpyro.sample("count", dist.Poisson(2.0)), r"'count' \(Poisson\) has no bounded"),
    "vectors": (lambda: numpyro.sample("v", dist.Multinomial(3, jnp.ones(2) / 2)), r"'v' \(Multinomial\)"),
    "continuous": (
        lambda: numpyro.sample("mean", dist.Normal()),
        r"'mean' \(Normal\) is continuous.*NumpyroK",
    ),
    "enumerated": (
        lambda: numpyro.sample("z", dist.Bernoulli(0.5), infer={"enumerate": "parallel"}),
        r"'z' \(Bernoulli\) is marked for enumeration",
    ),
    "bounds of a draw": (dependent_bounds, "bounds depend on what was drawn before"),
    "no choice": (lambda: numpyro.sample("only", dist.DiscreteUniform(2, 2)), "'only' can only be 2"),
    "nothing latent": (lambda: None, "no latent site"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case):
    make, message = REFUSED[case]
    with pytest.raises(TargetError, match=message):
        from_numpyro(one_site(make))


def test_refuses_what_is_no_model():
    with pytest.raises(TargetError, match=r"must be a function; got 3"):
        from_numpyro(3)


def test_arguments_that_do_not_fit_the_model_are_named():
    with pytest.raises(TargetError, match=r"missing a required argument: 'seen'.*kwargs="):
        from_numpyro(discrete_model)


def test_category_is_refused_where_it_would_have_to_be_a_real_number():
    with pytest.raises(TargetError, match=r"Site 'category' is categorical.*gradient='differences'"):
        from_numpyro(discrete_model, 1.0, gradient="autograd")


@pytest.mark.parametrize("recipe", [steppe.roughness_tilted(), steppe.robust_ensemble()], ids=str)
def test_kernel_refuses_recipes_of_another_distribution(recipe):
    with pytest.raises(RecipeError, match=r"NumpyroKernel\(model, recipe\)"):
        NumpyroKernel(bits_model, recipe)
