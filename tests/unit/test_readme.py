"""The README runs, and says what is true."""

import re
from pathlib import Path
from unittest import mock

import jax
import pytest

import steppe
from steppe.modes.members import list_members
from steppe.samplers import ALL_RECIPES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LARGEST_IMAGE = 150_000


def run_blocks() -> dict:
    """What the python blocks define, run one after another as a reader would."""
    namespace: dict = {}
    for block in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL):
        exec(compile(block, "README.md", "exec"), namespace)
    return namespace


@pytest.fixture(scope="module")
def names():
    """The blocks, with one kind of chain looking for modes: each of them compiles for two seconds."""
    with mock.patch("steppe.modes.find.list_members", lambda *given: list_members(*given)[:1]):
        return run_blocks()


@pytest.mark.slow
def test_modes_of_the_readme_are_found_as_it_stands():
    assert 0 < len(run_blocks()["modes"]) <= 5


def test_every_python_block_runs_and_draws_states_of_the_domain(names):
    assert names["draws"].shape == (500, 4, 16)
    assert names["history"].position.shape == (500, 16)
    assert steppe.Binary(16).contains(names["draws"])
    assert steppe.Binary(16).contains(names["history"].position)
    assert 0 < float(names["acceptance"].mean()) <= 1


def test_the_first_run_of_the_readme_has_converged(names):
    """Of 20 other keys all converged too when this was written: see the slow test."""
    assert names["run"].summary().diagnosis.ok


@pytest.mark.slow
def test_the_first_run_of_the_readme_converges_for_twenty_keys(names):
    runs = [steppe.sample(names["target"], key=jax.random.key(seed), num_draws=2000) for seed in range(20)]
    assert all(run.summary().diagnosis.ok for run in runs)


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 200


def test_sampler_table_lists_every_recipe_in_order():
    assert re.findall(r"^\| `(\w+)` \|", README, flags=re.MULTILINE) == list(ALL_RECIPES)


@pytest.mark.parametrize("command", re.findall(r"^make ([\w-]+)", README, flags=re.MULTILINE))
def test_make_target_named_in_the_readme_exists(command):
    assert re.search(rf"^{command}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


def test_readme_names_the_demo_and_the_tests():
    assert {"make demo", "make test"} <= set(re.findall(r"make [\w-]+", README))


@pytest.mark.parametrize("path", re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README))
def test_image_exists_and_is_small(path):
    assert 0 < (ROOT / path).stat().st_size < LARGEST_IMAGE
