"""Every section of the page on bridges runs on its own, and comes out as the page says."""

import re
from pathlib import Path

import numpy as np
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "bridges.md").read_text(encoding="utf-8")
SECTIONS = {
    part.split("\n", 1)[0]: re.findall(r"```python\n(.*?)```", part, flags=re.DOTALL)
    for part in PAGE.split("\n## ")[1:]
}
NEEDS = {
    "dimod and networkx": ("dimod", "networkx", "dwave.samplers"),
    "PyTorch": ("torch",),
    "PyMC": ("pymc",),
    "NumPyro": ("numpyro.infer.gibbs",),
    "BlackJAX": ("blackjax",),
    "ArviZ": ("matplotlib", "arviz_stats", "arviz_plots", "h5netcdf"),
}
CHECKS = {
    "dimod and networkx": lambda n: np.isclose(n["samples"].first.energy, n["theirs"].first.energy),
    "PyTorch": lambda n: n["run"].trace.levels().shape == (4, 200, 20),
    "PyMC": lambda n: n["target"].draws(n["run"])["on"].shape == (4, 500, 6),
    "NumPyro": lambda n: (n["mcmc"].get_samples()["included"].mean(axis=0)[np.asarray([0, 3])] > 0.9).all(),
    "BlackJAX": lambda n: n["states"].position.shape == (4, 100, 16) and n["particles"].tempering_param == 1,
    "ArviZ": lambda n: (Path("run.nc")).stat().st_size > 0,
}


def test_every_section_is_run():
    assert set(SECTIONS) == set(NEEDS) == set(CHECKS)
    assert all(SECTIONS.values())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the packages, beside the versions of others installed here
@pytest.mark.parametrize("section", SECTIONS)
def test_section_runs_as_printed(section, tmp_path, monkeypatch):
    for package in NEEDS[section]:
        pytest.importorskip(package, reason=f"needs {package}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict = {}
    for block in SECTIONS[section]:
        exec(compile(block, "docs/bridges.md", "exec"), names)
    assert CHECKS[section](names)
