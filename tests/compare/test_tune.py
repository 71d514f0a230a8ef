"""Tuning finds what it is asked for, says why, and compiles once."""

import jax
import numpy as np
import pytest

import steppe
from exact_targets import polynomial_target
from programs import count_programs
from steppe.diagnostics.efficiency import efficiency
from steppe.diagnostics.exact import integrated_autocorrelation_time, transition_matrix
from steppe.errors import RunError
from steppe.run.chain_blocks import advance
from steppe.tune.grids import check_values
from steppe.tune.trial import adjust

TARGET = polynomial_target(steppe.Binary(4), 3.0)
KEY = jax.random.key(5)
SHORT = {"key": KEY, "num_chains": 8, "num_warmup": 200, "num_draws": 400}


@pytest.fixture(scope="module")
def by_efficiency():
    return steppe.tune(steppe.dmala(), TARGET, goal="ess", values=[0.05, 0.4, 3.2], **SHORT)


def test_acceptance_goal_reaches_the_wanted_rate():
    found = steppe.tune(steppe.dmala(), TARGET, acceptance=0.8, **SHORT)
    rate = found.best.acceptance_rate
    # Adaptation over 200 steps of 8 chains ends within 0.04; four standard errors on top: false alarm 1e-4.
    assert abs(rate.value - 0.8) < 0.04 + 4 * rate.error
    assert found.recipe.parameters["step_size"] == pytest.approx(found.best.value)
    assert found.num_evaluations == 6 * 8 * 600


def test_sweep_compiles_one_program(by_efficiency):
    before = count_programs(advance)
    steppe.tune(steppe.dmala(step_size=0.7), TARGET, goal="ess", values=[0.1, 0.6], **SHORT)
    assert count_programs(advance) == before


def test_efficiency_goal_takes_the_value_with_most_effective_draws(by_efficiency):
    scores = [trial.ess_per_evaluation.value for trial in by_efficiency.trials]
    assert by_efficiency.chosen == int(np.argmax(scores))
    assert by_efficiency.best.value == by_efficiency.recipe.parameters["step_size"]
    assert scores[0] < min(scores[1:])  # at 0.05 a chain hardly moves


def test_effective_draws_are_counted_per_evaluation_of_kept_steps(by_efficiency):
    for trial in by_efficiency.trials:
        assert trial.ess_per_evaluation.value == pytest.approx(trial.num_effective / (8 * 400))


@pytest.mark.slow
def test_the_balancing_function_is_chosen_by_effective_draws():
    found = steppe.tune(
        steppe.gwg(), TARGET, goal="ess", parameter="balancing", values=["sqrt", "max"], **SHORT
    )
    assert [trial.value for trial in found.trials] == ["sqrt", "max"]
    again = steppe.tune(found.recipe, TARGET, goal="ess", parameter="balancing", **SHORT)
    assert [trial.value for trial in again.trials] == ["sqrt", "barker", "min", "max"]
    assert found.best in again.trials
    worst = min(again.trials, key=lambda trial: trial.ess_per_evaluation.value)
    assert again.best.ess_per_evaluation.value > worst.ess_per_evaluation.value
    assert "edge" not in again.reason
    assert again.plot() is not None
    assert repr(again.best.value).strip("'") in str(again.present())


@pytest.mark.parametrize("values", [["sqrt"], ["sqrt", "square"]])
def test_a_balancing_function_that_does_not_exist_is_refused(values):
    with pytest.raises(RunError, match="at least two of sqrt, barker, min, max"):
        steppe.tune(steppe.gwg(), TARGET, goal="ess", parameter="balancing", values=values, **SHORT)


def test_default_grid_is_in_the_units_of_the_domain():
    grids = [
        check_values(steppe.dmala(), polynomial_target(domain, 1.0), "step_size", None)
        for domain in (steppe.Binary(3), steppe.Spin(3))
    ]
    # A flip of a spin is twice as long.
    np.testing.assert_allclose(np.asarray(grids[1], float), 4 * np.asarray(grids[0], float))


def test_runs_too_short_for_effective_draws_are_judged_by_flips():
    short = {**SHORT, "num_warmup": 10, "num_draws": 10}
    found = steppe.tune(steppe.dmala(), TARGET, goal="ess", values=[0.05, 0.4, 3.2], **short)
    assert "most flips" in found.reason
    assert found.chosen == int(np.argmax([trial.flips_per_step.value for trial in found.trials]))


def test_effective_draws_are_those_of_the_enumerated_autocorrelation():
    run = steppe.sample(
        TARGET, steppe.dmala(step_size=0.8), key=KEY, num_chains=8, num_draws=2000, adapt=False
    )
    found = efficiency(run.trace)
    matrix = transition_matrix(steppe.dmala(step_size=0.8), TARGET)
    values = np.asarray(jax.vmap(TARGET.log_density)(TARGET.domain.enumerate()), float)
    expected = 16_000 / integrated_autocorrelation_time(matrix, values)
    # The score is the worse of two quantities, so it may be lower than that of the log-density.
    assert found.num_effective < expected + 5 * found.standard_error
    assert found.num_effective > 0.2 * expected


@pytest.mark.slow
def test_coupling_sweep_adapts_the_step_size_for_each_value():
    found = steppe.tune(
        steppe.edmala_glu(), TARGET, goal="ess", parameter="coupling_variance", values=[0.1, 2.0], **SHORT
    )
    steps = [trial.step_size for trial in found.trials]
    assert np.diff(np.array(steps, float)) > 0  # a tight coupling needs small steps
    assert found.recipe.parameters["step_size"] == pytest.approx(found.best.step_size)
    assert found.recipe.parameters["coupling_variance"] == found.best.value


def test_wanted_loss_is_met_by_the_strength():
    def distribution(λ):
        return steppe.roughness_tilted(strength=λ, differences="gradient").stationary(TARGET).probabilities()

    values = np.asarray(jax.vmap(TARGET.log_density)(TARGET.domain.enumerate()), float)
    wanted = float((distribution(0.0) - distribution(1.0)) @ values)
    assert wanted > 0.05
    recipe = steppe.roughness_tilted()
    found = steppe.tune(recipe, TARGET, goal="loss", loss=wanted, values=[0.1, 0.3, 3.0], **SHORT)
    exact = float((distribution(0.0) - distribution(found.best.value)) @ values)
    # Trials are noisy and lie on a grid: the widest gap between neighbours, and four standard errors of each.
    losses = [trial.loss.value for trial in found.trials if float(trial.value) >= 0.3]
    spacing = np.max(np.abs(np.diff(losses)))
    assert abs(exact - wanted) < spacing / 2 + 8 * found.best.loss.error


@pytest.mark.slow
def test_copies_are_swept_by_loss():
    found = steppe.tune(
        steppe.robust_ensemble(coupling_variance=0.3),
        TARGET,
        goal="loss",
        loss=0.1,
        values=[1, 2, 4],
        **SHORT,
    )
    assert found.parameter == "replicas"
    assert found.recipe.coupling.replicas == int(found.best.value)
    assert abs(found.trials[0].loss.value) < 4 * found.trials[0].loss.error  # one copy has distribution π


def test_report_has_a_table_a_picture_and_json(by_efficiency, tmp_path):
    assert "→" in str(by_efficiency)
    by_efficiency.plot(tmp_path / "tuning")
    assert (tmp_path / "tuning.png").stat().st_size > 0
    assert by_efficiency.to_dict()["trials"][0]["value"] == 0.05


def test_adjusted_twin_of_an_unadjusted_recipe_is_its_metropolis_version():
    assert (
        adjust(steppe.dula(step_size=0.3)).blocks
        == steppe.dmala(step_size=0.3, differences="gradient").blocks
    )
    assert adjust(steppe.gibbs()) == steppe.gibbs()


REFUSED = {
    "unadjusted, acceptance": (steppe.dula(), {}, "accepts every proposal"),
    "unadjusted, effective draws": (steppe.edula(), {"goal": "ess"}, "biased"),
    "no step size": (steppe.gibbs(), {}, "no step size"),
    "no flat distribution": (steppe.dmala(), {"goal": "loss", "loss": 1.0}, "roughness_tilted"),
    "loss left out": (steppe.roughness_tilted(), {"goal": "loss"}, "needs `loss`"),
    "loss not positive": (steppe.roughness_tilted(), {"goal": "loss", "loss": -1.0}, "positive"),
    "distribution would change": (
        steppe.roughness_tilted(),
        {"goal": "ess", "parameter": "strength"},
        "goal='loss'",
    ),
    "no such number": (
        steppe.dmala(),
        {"goal": "ess", "parameter": "strength"},
        "has balancing, inverse_temperature",
    ),
    "one value": (steppe.dmala(), {"goal": "ess", "values": [0.3]}, "at least two"),
    "value out of range": (steppe.dmala(), {"goal": "ess", "values": [0.3, -1.0]}, "positive"),
    "goal": (steppe.dmala(), {"goal": "speed"}, "'acceptance'"),
    "one chain": (steppe.dmala(), {"num_chains": 1}, "at least 2"),
    "not a recipe": ("dmala", {}, "must be a recipe"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_request_is_refused_with_a_remedy(name):
    recipe, arguments, message = REFUSED[name]
    with pytest.raises(steppe.errors.SteppeError, match=message):
        steppe.tune(recipe, TARGET, key=KEY, **arguments)
