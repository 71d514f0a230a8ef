"""Variable selection: the marginal likelihood against its definition, the sweep operator against that."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import betaln

import steppe
from contract.cases import quick_jit, transition_matrix
from steppe.diagnostics.exact import target_distribution
from steppe.errors import TargetError
from steppe.kernel.blocks.table_size import cheapest_table
from steppe.targets import VariableSelection, variable_selection
from steppe.targets.variable_selection import MAX_AGE, Swept

G, VARIANCE, INCLUSION, BETA = 20.0, 0.7, 0.3, (1.5, 4.0)
PRIORS = ("g", "independent")


def data(num_rows=30, num_columns=5, seed=0):
    """Columns of which two are correlated, and a response to three."""
    rng = np.random.default_rng(seed)
    design = rng.normal(size=(num_rows, num_columns))
    design[:, 1] += design[:, 0]
    return design, design[:, 0] - 0.5 * design[:, 3] + rng.normal(size=num_rows)


def made(prior: str, beta=None, **sizes) -> VariableSelection:
    options = {"g": G, "slab_variance": VARIANCE, "inclusion": INCLUSION, "beta": beta}
    return variable_selection(*data(**sizes), prior=prior, **options)


def marginal(prior: str, model: np.ndarray, beta) -> float:
    """Density of the response by a multivariate Student distribution, its n × n matrix written out."""
    design, response = data()
    columns, centred = (design - design.mean(0)) / design.std(0), response - response.mean()
    chosen, size = columns[:, model > 0], int(model.sum())
    slab = G * np.linalg.inv(chosen.T @ chosen) if prior == "g" else VARIANCE * np.eye(size)
    matrix = np.eye(len(response)) + chosen @ slab @ chosen.T
    fit = -0.5 * np.linalg.slogdet(matrix)[1]
    fit -= 0.5 * (len(response) - 1) * np.log(centred @ np.linalg.solve(matrix, centred))
    if beta is not None:
        return fit + betaln(beta[0] + size, beta[1] + len(model) - size)
    return fit + size * np.log(INCLUSION / (1 - INCLUSION))


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("beta", [None, BETA], ids=["fixed", "beta"])
@pytest.mark.parametrize("prior", PRIORS)
def test_log_density_is_the_log_posterior_by_its_definition(prior, beta):
    target = made(prior, beta)
    models = np.asarray(target.domain.enumerate())
    found = np.asarray(quick_jit(jax.vmap(target.log_density))(models))
    expected = np.array([marginal(prior, model, beta) for model in models])
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=0, atol=1e-11)


def swept(target: VariableSelection, model: np.ndarray) -> np.ndarray:
    """`[M b; bᵀ 1]` swept on the columns of a model, written out."""
    matrix, is_in = np.asarray(target.matrix, float), np.append(model, 0) > 0
    inverse = np.linalg.inv(matrix[np.ix_(is_in, is_in)])
    solved = inverse @ matrix[is_in]
    found = matrix - matrix[:, is_in] @ solved
    found[is_in], found[:, is_in] = solved, solved.T
    found[np.ix_(is_in, is_in)] = -inverse
    return found


def error_of(target: VariableSelection, cache: Swept, model: np.ndarray) -> float:
    """Largest deviation of what is remembered from the swept matrix."""
    expected, size = swept(target, model), int(cache.size)
    columns = np.concatenate([cache.columns[0], np.ravel(cache.columns[1])])[:size]
    rows = np.concatenate([cache.rows[0], *cache.rows[1]])[:size]
    assert sorted(columns) == np.flatnonzero(model).tolist()
    pairs = (
        (cache.diagonal, np.diagonal(expected)[:-1]),
        (cache.slopes, expected[:-1, -1]),
        (cache.residual, expected[-1, -1]),
        (rows, expected[columns, :-1]),
    )
    return max(np.abs(np.asarray(found) - wanted).max(initial=0) for found, wanted in pairs)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("prior", PRIORS)
def test_differences_are_those_of_the_log_density(prior):
    target = made(prior, BETA)
    form, sites = target.incremental, jnp.arange(target.domain.num_sites)
    plain = steppe.Target(target.log_density, target.domain)

    def errors(model):
        assert form.all_differences is not None
        cache, expected = form.init(model), plain.differences(model)
        tables = form.differences(cache, model, sites[::-1])[::-1], form.all_differences(cache, model)
        return jnp.stack([jnp.abs(table - expected).max() for table in tables])

    assert np.max(quick_jit(jax.vmap(errors))(target.domain.enumerate())) < 1e-11


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("num_chains", [1, 3])
@pytest.mark.slow
def test_sweeps_follow_every_change_beyond_a_group_of_rows(num_chains):
    target = made("independent", num_rows=90, num_columns=40)
    form, rng = target.incremental, np.random.default_rng(0)
    of = lambda cache, chain: jax.tree.map(lambda array: array[chain], cache)  # noqa: E731
    update, again = quick_jit(jax.vmap(form.update)), quick_jit(jax.vmap(form.refresh))
    models = np.zeros((num_chains, 40))
    cache = jax.vmap(form.init)(jnp.asarray(models))
    for turn in range(60):  # most come in, then most go out; every third chain keeps its level
        levels = np.full(num_chains, int(turn < 38))
        sites = np.where(rng.random(num_chains) < 0.9, turn % 40, rng.integers(40, size=num_chains))
        cache = update(cache, jnp.asarray(models), sites, levels)
        models = models.copy()  # JAX may still be reading the other
        models[np.arange(num_chains), sites] = levels
        if turn % 7 == 0 or turn in (37, 38, 59):
            assert max(error_of(target, of(cache, c), models[c]) for c in range(num_chains)) < 1e-10
    assert models.sum(axis=1).max() < 30
    worn = cache._replace(slopes=cache.slopes + 1e-3, age=cache.age + MAX_AGE)
    assert error_of(target, of(again(worn, jnp.asarray(models)), 0), models[0]) < 1e-11


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("prior", PRIORS)
def test_gibbs_with_swaps_has_the_posterior_as_its_stationary_distribution(prior):
    target = made(prior)
    matrix = transition_matrix(steppe.gibbs(num_updates=5, num_swaps=1), target)
    distribution = target_distribution(target)
    assert np.abs(distribution @ matrix - distribution).max() <= 1e-12


@pytest.mark.slow
def test_cache_of_a_long_run_in_single_precision_stays_exact():
    # 40 000 sweeps of the matrix, computed anew every 64 steps.
    target = made("g", num_rows=60, num_columns=20)
    sampler = steppe.gibbs(num_updates=20, num_swaps=1).build(target)
    start = sampler.init(jnp.zeros(20))

    @quick_jit
    def run(state):
        def step(index, state):
            return sampler.step(jax.random.fold_in(jax.random.key(3), index), state)[0]

        return jax.lax.fori_loop(0, 10_000, step, state)

    state = run(start)
    assert error_of(target, state.memory[0].cache, np.asarray(state.position)) < 2e-5
    assert 1 < int(state.position.sum()) < 19


def test_chains_side_by_side_are_those_that_step_alone():
    target = made("g", num_rows=60, num_columns=20)
    sampler = steppe.gibbs(num_updates=20).build(target)

    def run(key):
        def step(state, index):
            state = sampler.step(jax.random.fold_in(key, index), state)[0]
            return state, state.position

        return jax.lax.scan(step, sampler.init(jnp.zeros(20)), jnp.arange(50))[1]

    keys = jax.random.split(jax.random.key(0), 4)
    together = quick_jit(jax.vmap(run))(keys)
    np.testing.assert_array_equal(together, quick_jit(lambda keys: jax.lax.map(run, keys))(keys))


def test_many_columns_are_decided_from_one_table():
    assert cheapest_table(made("g", num_rows=60, num_columns=20)) >= 8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The gradient explains next to nothing")
def test_proposals_from_exact_differences_are_accepted_more_often_than_from_the_gradient():
    target = made("g", num_rows=60, num_columns=20)

    def accepted(**options) -> float:
        recipe = steppe.gwg(balancing="barker", **options)
        run = steppe.sample(
            target, recipe, key=jax.random.key(0), num_draws=200, num_warmup=20, progress=False, num_chains=2
        )
        return float(np.asarray(run.data["sample_stats"]["acceptance_rate"]).mean())

    gradient, exact = accepted(differences="gradient"), accepted(differences="exact")
    assert exact > gradient + 0.05
    assert accepted(differences="auto") == exact


def test_inclusion_probabilities_average_the_conditionals():
    target = made("g")
    distribution, models = target_distribution(target), np.asarray(target.domain.enumerate())
    draws = models[np.random.default_rng(0).choice(len(models), 4000, p=distribution / distribution.sum())]
    # The mean of 4000 independent probabilities has a standard error below 0.008.
    np.testing.assert_allclose(target.inclusion_probabilities(draws), distribution @ models, atol=0.05)


REFUSED = {
    "singular": (lambda x: np.column_stack([x, x[:, 0] - x[:, 2]]), {}, r"columns \[0, 2, 5\].*depend"),
    "constant": (lambda x: np.column_stack([x, np.full(len(x), 3.0)]), {}, "column 5 is constant"),
    "wide": (lambda x: x[:6], {}, "fewer columns than observations"),
    "certain": (lambda x: x, {"inclusion": 1.0}, r"in \(0, 1\)"),
    "negative": (lambda x: x, {"g": -1.0}, "positive"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_designs_and_priors_that_go_nowhere_are_refused_with_a_remedy(case):
    change, options, message = REFUSED[case]
    design, response = data()
    design = change(design)
    with pytest.raises(TargetError, match=message):
        variable_selection(design, response[: len(design)], **options)


@pytest.mark.parametrize("rows", [6, 30])
def test_independent_prior_allows_any_design(rows):
    design, response = data()
    doubled = np.column_stack([design, design[:, 0] - design[:, 2]])[:rows]
    target = variable_selection(doubled, response[:rows], prior="independent")
    assert np.isfinite(target.log_density(jnp.ones(6)))


def test_responses_must_go_with_the_design():
    design, response = data()
    with pytest.raises(TargetError, match="a response for each"):
        variable_selection(design, response[:-1])
    with pytest.raises(TargetError, match="nothing to explain"):
        variable_selection(design, np.ones(len(design)))
