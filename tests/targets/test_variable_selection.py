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
from steppe.kernel.blocks.site_gibbs import cheapest_table
from steppe.targets import VariableSelection, variable_selection

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


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("prior", PRIORS)
def test_sweeps_follow_every_change_and_know_every_difference(prior):
    target = made(prior, BETA)
    form, models = target.incremental, target.domain.enumerate()
    plain = steppe.Target(target.log_density, target.domain)
    sites = jnp.arange(target.domain.num_sites)

    def errors(model, site):
        cache = form.init(model)
        table = form.differences(cache, model, sites) - plain.differences(model)
        level = (1 - model[site]).astype(int)
        moved = target.domain.replace_sites(model, site, level)
        swept = form.update(cache, model, site, level).matrix - form.init(moved).matrix
        same = form.update(cache, model, site, 1 - level).matrix - cache.matrix
        return jnp.stack([jnp.abs(part).max() for part in (table, swept, same)])

    found = quick_jit(jax.vmap(jax.vmap(errors, (None, 0)), (0, None)))(models, sites)
    assert np.max(found) < 1e-11


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("prior", PRIORS)
def test_gibbs_with_swaps_has_the_posterior_as_its_stationary_distribution(prior):
    target = made(prior)
    matrix = transition_matrix(steppe.gibbs(num_updates=5, num_swaps=1), target)
    distribution = target_distribution(target)
    assert np.abs(distribution @ matrix - distribution).max() <= 1e-12


@pytest.mark.usefixtures("float64")
def test_repair_makes_rows_exact_from_ones_that_are_not():
    target = made("independent", num_columns=8)
    model = target.domain.from_levels(np.array([1, 0, 1, 1, 0, 0, 1, 0]))
    exact = target.sweep_all(model)
    noise = np.random.default_rng(1).normal(size=exact.matrix.shape)
    rounded = exact._replace(matrix=exact.matrix + 1e-5 * (noise + noise.T))
    for _ in range(9):
        rounded = target.repair_row(rounded, model)
    assert np.abs(rounded.matrix - exact.matrix).max() < 1e-8
    assert int(rounded.next_row) == 0


def test_cache_of_a_long_run_in_single_precision_stays_exact():
    # 40 000 sweeps of the matrix. Without repair the error is some 100 times as large.
    target = made("g", num_rows=60, num_columns=20)
    sampler = steppe.gibbs(num_updates=20, num_swaps=1).build(target)
    start = sampler.init(jnp.zeros(20))

    @quick_jit
    def run(state):
        def step(index, state):
            return sampler.step(jax.random.fold_in(jax.random.key(3), index), state)[0]

        return jax.lax.fori_loop(0, 10_000, step, state)

    state = run(start)
    fresh = target.sweep_all(state.position)
    assert np.abs(state.memory[0].cache.matrix - fresh.matrix).max() < 2e-4
    assert 1 < int(state.position.sum()) < 19


def test_many_columns_are_decided_from_one_table():
    assert cheapest_table(made("g", num_rows=60, num_columns=20)) >= 8


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
