"""ArviZ: `run.data` goes into its statistics and plots as it is, and to netCDF and back."""

import jax
import numpy as np
import pytest
import xarray

import steppe
from steppe import targets

OBSERVED = {"sample_stats": "log_density", "posterior": "magnetisation"}


@pytest.fixture(scope="module")
def run():
    target = targets.ising_lattice((3, 3), 0.2)
    return steppe.sample(target, steppe.dmala(), key=jax.random.key(0), num_warmup=50, num_draws=100)


@pytest.fixture(scope="module")
def data(run):
    """The run's tree with an observable added the way a reader of xarray would."""
    tree = run.data
    tree["posterior"]["magnetisation"] = tree["posterior"]["position"].astype(float).mean("site")
    return tree


@pytest.mark.parametrize("statistic", ["ess", "rhat", "mcse"])
@pytest.mark.parametrize("group", OBSERVED)
def test_statistic_of_log_density_and_observable_is_a_number(data, group, statistic):
    stats = pytest.importorskip("arviz_stats", reason="needs arviz-stats")
    result = getattr(stats, statistic)(data, group=group, var_names=[OBSERVED[group]])
    assert np.isfinite(float(result[OBSERVED[group]]))


@pytest.mark.parametrize(
    ("plot", "group"),
    [
        ("plot_trace", "sample_stats"),
        ("plot_ess_evolution", "sample_stats"),
        pytest.param("plot_rank", "posterior", marks=pytest.mark.slow),
        pytest.param("plot_rank", "sample_stats", marks=pytest.mark.slow),
        pytest.param("plot_trace", "posterior", marks=pytest.mark.slow),
        pytest.param("plot_ess_evolution", "posterior", marks=pytest.mark.slow),
    ],
)
def test_plot_draws_log_density_and_observable(data, group, plot):
    matplotlib = pytest.importorskip("matplotlib", reason="needs matplotlib")
    plots = pytest.importorskip("arviz_plots", reason="needs arviz-plots")
    matplotlib.use("agg")
    with matplotlib.rc_context():
        drawn = getattr(plots, plot)(data, group=group, var_names=[OBSERVED[group]], backend="matplotlib")
    figure = drawn.viz["figure"].item()
    assert any(axes.lines or axes.collections for axes in figure.axes)
    matplotlib.pyplot.close(figure)


def test_netcdf_gives_back_draws_statistics_and_provenance(run, tmp_path):
    pytest.importorskip("h5netcdf", reason="needs h5netcdf")
    path = tmp_path / "run.nc"
    run.data.to_netcdf(path, engine="h5netcdf")
    with xarray.open_datatree(path, engine="h5netcdf") as back:
        assert back.identical(run.data)
        assert back["posterior"]["position"].dtype == np.int8
