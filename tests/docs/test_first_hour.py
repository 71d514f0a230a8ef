"""A fresh reader's path: a clone, `make demo`, the Start page as printed, then a model of one's own."""

import os
import shutil
import subprocess
import sys

import pytest

from docs.pages import DOCS, ROOT, python_blocks, reader, shell_blocks

TEN_MINUTES = 600
# `pip install "steppe[plots]"` into a new environment took 23 s of processor time after its download.
ONE_MINUTE, INSTALLING = 60, 25

# What a reader might write after the Start page: which of 12 columns explain a response?
OWN_MODEL = """
import jax
import jax.numpy as jnp
import numpy as np
import steppe

rng = np.random.default_rng(0)
causes = np.zeros(12)
causes[[3, 7]] = 1.0
x = rng.standard_normal((40, 12))
y = x @ causes + 2.0 * rng.standard_normal(40)


def log_density(included):  # spike and slab with the slopes fixed at 1
    residual = y - x @ included
    return -0.5 * jnp.sum(residual**2) / 2.0**2 - 1.0 * included.sum()


target = steppe.Target(log_density, steppe.Binary(12))
run = steppe.sample(target, key=jax.random.key(0), num_warmup=500, num_draws=1000)
print(run.summary())
assert run.diagnose().ok
found = run.trace.levels().mean(axis=(0, 1)).round()
assert found[causes == 1].all(), found
"""


def machine_time() -> float:
    """Seconds of processors spent by children: a busy machine takes longer, but not more of these."""
    spent = os.times()
    return spent.children_user + spent.children_system


@pytest.mark.slow
def test_an_own_model_has_converged_within_a_minute_of_an_empty_cache(tmp_path):
    (tmp_path / "own.py").write_text(OWN_MODEL, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    began = machine_time()
    done = subprocess.run(
        [sys.executable, "own.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "✓" in done.stdout
    assert machine_time() - began < ONE_MINUTE - INSTALLING


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None or not (ROOT / ".git").exists(), reason="needs make and git")
def test_reader_gets_from_a_clone_to_an_own_model_within_ten_minutes(tmp_path):
    clone = tmp_path / "steppe"
    environment = {**reader(tmp_path), "PYTHONPATH": str(clone / "src")}

    def execute(*command, cwd=tmp_path):
        done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    began = machine_time()
    execute("git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), str(clone))
    # The environment is this one: installing is a matter of the network, and left out of the ten minutes.
    execute("make", "--old-file=.venv/.installed", f"RUN={sys.executable}", "demo", cwd=clone)
    assert (clone / "out" / "demo" / "report.html").stat().st_size > 100_000

    start = "\n".join(example.parsed for example in python_blocks(DOCS / "start.md").examples())
    (tmp_path / "start.py").write_text(start, encoding="utf-8")
    assert "R-hat" in execute(sys.executable, "start.py")
    for block in shell_blocks(DOCS / "start.md"):
        if not block.why_not_run:
            execute("bash", "-e", "-c", block.text)

    (tmp_path / "own.py").write_text(OWN_MODEL, encoding="utf-8")
    assert "R-hat" in execute(sys.executable, "own.py")
    assert machine_time() - began < TEN_MINUTES
