"""Stored draws are values under names: what a site stands for, called what its model calls it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_runs import small_run

import steppe
from steppe.domain import Variable
from steppe.errors import DomainError, RunError

KEY = jax.random.key(5)
COUNTS = {"num_chains": 2, "num_warmup": 4, "num_draws": 12}
VALUES = {
    "binary": (steppe.Binary(3), {0, 1}, np.uint8),
    "spin": (steppe.Spin(3), {-1, 1}, np.int8),
    "ordinal": (steppe.Ordinal(3, [0.0, 0.5, 2.0]), {0.0, 0.5, 2.0}, np.float32),
    "fine ordinal": (steppe.Ordinal(3, [0.0, 0.1]), {0.0, 0.1}, np.float64),
    "categorical": (steppe.Categorical(3, 4), {0, 1, 2, 3}, np.uint8),
    "permutation": (steppe.Permutation(3), {0, 1, 2}, np.uint8),
}


def add_up(x):
    return 0.1 * jnp.sum(x)


def sampled(domain, **options):
    target = steppe.Target(add_up, domain)  # one function, so that one program serves every test
    recipe = steppe.gibbs() if domain.is_site_product else steppe.uniform_permutation()
    return steppe.sample(target, recipe, key=KEY, **{**COUNTS, **options})


@pytest.mark.parametrize("name", VALUES)
def test_data_hold_values_and_levels_come_back_from_them(name):
    domain, values, dtype = VALUES[name]
    run = sampled(domain)
    position = run.data["posterior"]["position"]
    assert position.dims == ("chain", "draw", "site")
    assert position.dtype == dtype
    assert set(np.unique(position).tolist()) <= values
    np.testing.assert_array_equal(position["site"], np.arange(3))
    table = position.attrs.get("levels", sorted(values))
    np.testing.assert_array_equal(np.asarray(table)[run.levels], position)


@pytest.mark.parametrize("name", VALUES)
def test_positions_are_what_the_log_density_takes(name):
    run = sampled(VALUES[name][0])
    assert run.positions.shape == (2, 12, *VALUES[name][0].shape)
    target = steppe.Target(add_up, VALUES[name][0])
    values = jax.vmap(jax.vmap(target.log_density))(run.positions)
    np.testing.assert_allclose(values, run.trace.statistic("log_density"), rtol=1e-5, atol=1e-6)


def test_warm_up_holds_values_too():
    tree = sampled(steppe.Spin(3)).data
    assert set(np.unique(tree["warmup_posterior"]["position"])) <= {-1, 1}


def test_replicas_and_centers_are_beside_the_values():
    target = steppe.Target(add_up, steppe.Spin(3))
    recipe = steppe.robust_ensemble(replicas=2, coupling_variance=0.5)
    posterior = steppe.sample(target, recipe, key=KEY, **COUNTS).data["posterior"]
    assert posterior["position"].dims == ("chain", "draw", "replica", "site")
    assert posterior["center"].dims == ("chain", "draw", "site")


def test_a_run_without_draws_says_so():
    run = small_run(keep="stats")
    for name in ("levels", "positions"):
        with pytest.raises(RunError, match="keep='draws'"):
            getattr(run, name)


NAMED = steppe.Ordinal(6, 3).with_variables(
    Variable("z", (2, 2), low=(0, 1, 2, 3)), Variable("k", (), low=(-1,)), Variable("draw", (1,))
)


def test_named_variables_keep_names_shapes_and_values(tmp_path):
    run = sampled(NAMED, out=tmp_path / "run")
    for posterior in (run.data["posterior"], steppe.open_run(tmp_path / "run").data["posterior"]):
        assert posterior["z"].dims == ("chain", "draw", "z_dim_0", "z_dim_1")
        assert posterior["k"].dims == ("chain", "draw")
        assert posterior["draw_"].shape == (2, 12, 1)
        levels, lowest = run.levels, np.arange(4).reshape(2, 2)
        np.testing.assert_array_equal(posterior["z"], levels[..., :4].reshape(2, 12, 2, 2) + lowest)
        np.testing.assert_array_equal(posterior["k"], levels[..., 4].astype(int) - 1)
        assert posterior["z"].dtype == np.uint8
        assert posterior["k"].dtype == np.int8


def test_labels_are_the_coordinate_of_their_sites():
    domain = steppe.Spin(3).with_variables(Variable("s", (3,), labels=("north", "south", "east")))
    spins = sampled(domain).data["posterior"]["s"]
    assert spins["s_dim_0"].to_numpy().tolist() == ["north", "south", "east"]
    assert set(np.unique(spins.sel(s_dim_0="south"))) <= {-1, 1}
    assert domain.site_names == ["s[north]", "s[south]", "s[east]"]


@pytest.mark.parametrize(
    "variables",
    [
        (),
        (Variable("a", (3,)),),
        (Variable("a", (2,)), Variable("a", (4,))),
        (Variable("", (6,)),),
        (Variable("a", (6,), low=(0, 1)),),
        (Variable("a", (6,), labels=("x",)),),
    ],
)
def test_variables_that_do_not_share_out_the_sites_are_refused(variables):
    with pytest.raises(DomainError):
        steppe.Ordinal(6, 3).with_variables(*variables)


def test_names_are_labels():
    assert steppe.Ordinal(6, 3) == NAMED
    assert repr(steppe.Ordinal(6, 3)) == repr(NAMED)
