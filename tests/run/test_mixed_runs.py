"""Runs of mixed models: stored, resumed, summed up; refused where nothing moves or keeps the real parts."""

from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

import steppe
from steppe.domain.from_json import make_domain
from steppe.errors import (
    CompositionError,
    DomainError,
    RecipeError,
    RunError,
    RunMismatchError,
    StartError,
    SteppeError,
    TargetError,
)

pytest.importorskip("blackjax")

DATA = jnp.asarray([-2.1, -0.9, 0.3, 2.0])
DOMAIN = steppe.Product(z=steppe.Binary(4), mu=steppe.Real(2, scale=3.0))
KEY = jax.random.key(0)
SMALL = {"key": KEY, "num_chains": 2, "num_warmup": 20, "progress": False}


def log_density(x: dict[str, Array]) -> Array:
    means = x["mu"][0] + x["z"] * (x["mu"][1] - x["mu"][0])
    return -0.5 * jnp.sum((DATA - means) ** 2) - 0.5 * jnp.sum((x["mu"] / 3) ** 2)


TARGET = steppe.Target(log_density, DOMAIN)
RECIPE = steppe.mixed(steppe.dmala())


@pytest.fixture(scope="module")
def run() -> steppe.Run:
    return steppe.sample(TARGET, RECIPE, num_draws=30, **SMALL)


def test_real_parts_are_kept_under_their_names(run: steppe.Run) -> None:
    posterior = run.data.posterior
    assert posterior["z"].shape == (2, 30, 4)
    assert posterior["mu"].dims == ("chain", "draw", "mu_dim_0")
    assert np.array_equal(run.positions["mu"], posterior["mu"])
    held = TARGET.given({"mu": run.positions["mu"][1, 7]})
    value = held.log_density(held.domain.flatten({"z": run.positions["z"][1, 7]}))
    assert float(value) == pytest.approx(float(run.data.sample_stats["log_density"][1, 7]), abs=1e-5)


def test_warm_up_adapts_the_step_size_of_the_real_parts(run: steppe.Run) -> None:
    sizes = run.data.sample_stats["real_step_size"].to_numpy()
    assert (sizes[:, 0] == sizes[:, -1]).all()
    assert (sizes != 0.1).all()
    assert run.recipe.parameters["real_step_size"] == pytest.approx(np.exp(np.log(sizes[:, -1]).mean()))


def test_a_run_on_disk_that_is_resumed_has_the_same_draws(run: steppe.Run, tmp_path: Path) -> None:
    steppe.sample(TARGET, RECIPE, num_draws=10, out=tmp_path / "run", **SMALL)
    again = steppe.sample(TARGET, RECIPE, num_draws=30, out=tmp_path / "run", resume=True, **SMALL)
    for name in ("z", "mu"):
        assert np.array_equal(again.data.posterior[name], run.data.posterior[name])
    read = steppe.open_run(tmp_path / "run")
    assert not read.problems
    assert np.array_equal(read.positions["mu"], run.positions["mu"])
    other = steppe.Target(lambda x: log_density(x) + 0.1 * x["mu"][0] ** 2, DOMAIN)
    with pytest.raises(RunMismatchError, match="another target"):
        steppe.sample(other, RECIPE, num_draws=30, out=tmp_path / "run", resume=True, **SMALL)


def test_a_summary_has_every_real_coordinate_and_functions_of_all_parts(run: steppe.Run) -> None:
    lowest = run.summary({"lowest": lambda x: x["mu"].min(axis=-1) + 0 * x["z"][:, 0]})
    assert [quantity.name for quantity in lowest.mixing.quantities] == [
        "log_density",
        "mu[0]",
        "mu[1]",
        "lowest",
    ]


@pytest.mark.slow
def test_label_switching_is_named_where_chains_keep_their_labels_apart() -> None:
    far = steppe.Target(
        lambda x: (
            -8 * jnp.sum((jnp.asarray([-3.0, -3.1, 3.0]) - x["mu"][0] - x["z"] * x["mu"][1]) ** 2)
            - 0.02 * jnp.sum(x["mu"] ** 2)
        ),
        steppe.Product(z=steppe.Binary(3), mu=steppe.Real(2)),
    )
    initial = {"z": np.asarray([[0, 0, 1], [1, 1, 0]]), "mu": np.asarray([[-3.0, 6.0], [3.0, -6.0]])}
    apart = steppe.sample(far, steppe.mixed(), num_draws=1000, initial=initial, **SMALL)
    said = " ".join(str(apart.summary()).split())
    assert "label switching" in said
    assert "never moved" not in said


@pytest.mark.slow
def test_chains_start_where_they_are_told() -> None:
    initial = {"z": np.zeros((2, 4)), "mu": np.asarray([[1.0, 2.0], [3.0, 4.0]])}
    placed = steppe.sample(
        TARGET, steppe.mixed(real_step_size=1e-4), num_draws=1, **SMALL | {"num_warmup": 0}, initial=initial
    )
    np.testing.assert_allclose(placed.positions["mu"][:, 0], initial["mu"], atol=0.1)


def test_recommended_for_a_mixed_model_is_a_mixed_recipe() -> None:
    recipe, reason = steppe.recommend(TARGET)
    assert recipe.name == "mixed"
    assert "Hamiltonian" in reason


def test_holding_real_parts_fixed_leaves_an_ordinary_target() -> None:
    held = TARGET.given({"mu": [-1.0, 1.5]})
    assert held.domain == steppe.Product(z=steppe.Binary(4))
    exact = steppe.gibbs().stationary(held).probabilities()
    logits = 0.5 * (DATA + 1) ** 2 - 0.5 * (DATA - 1.5) ** 2
    chance = 1 / (1 + np.exp(-logits))
    np.testing.assert_allclose(exact.reshape(2, 2, 2, 2)[1].sum(), chance[0], rtol=1e-5)


def test_a_domain_with_real_parts_comes_back_from_json() -> None:
    assert make_domain(DOMAIN.to_json()) == DOMAIN
    assert make_domain(DOMAIN.to_json()) != steppe.Product(z=steppe.Binary(4), mu=steppe.Real(2))
    for wrong in ({"id": "real", "shape": [2]}, {"id": "real", "shape": [0], "scale": 1.0}):
        with pytest.raises(DomainError):
            make_domain({"id": "product", "parts": [["z", {"id": "binary", "shape": [2]}], ["x", wrong]]})


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: steppe.sample(TARGET, steppe.gibbs(), **SMALL), RecipeError, "nothing moves the real parts"),
        (lambda: steppe.sample(TARGET, RECIPE, keep="stats", **SMALL), RunError, "keep='draws'"),
        (
            lambda: steppe.sample(TARGET, RECIPE, observables={"on": lambda x: x["z"].sum()}, **SMALL),
            RunError,
            "run.summary",
        ),
        (
            lambda: steppe.sample(TARGET, RECIPE, initial={"z": np.zeros((2, 4))}, **SMALL),
            StartError,
            "give both",
        ),
        (lambda: steppe.anneal(TARGET, key=KEY, num_steps=10), TargetError, "real parts"),
        (lambda: steppe.robust(TARGET, flips=1), TargetError, "given"),
        (lambda: steppe.mixed(steppe.edmala()), CompositionError, "without center"),
        (lambda: steppe.mixed().build(TARGET.given({"mu": [0.0, 1.0]})), RecipeError, "has none"),
        (lambda: TARGET.given({"nu": [0.0]}), DomainError, "'mu'"),
        (lambda: steppe.Target(jnp.sum, steppe.Binary(2)).given({"mu": [0.0]}), TargetError, "has none"),
        (lambda: steppe.Product(mu=steppe.Real(2)), DomainError, "discrete"),
        (lambda: steppe.Real(2, scale=0.0), DomainError, "positive"),
        (
            lambda: steppe.Target(log_density, DOMAIN, differences=lambda x: x["z"]),
            TargetError,
            "leave it out",
        ),
    ],
)
def test_what_a_mixed_model_cannot_do_is_said(
    call: Callable[[], object], error: type[SteppeError], says: str
) -> None:
    with pytest.raises(error, match=says):
        call()
