"""The README runs, and says what is true."""

import re
from pathlib import Path
from unittest import mock

import jax.numpy as jnp
import numpy as np
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
    assert 0 < len(run_blocks()["found"]) <= 5


def test_every_python_block_runs_and_draws_states_of_the_domain(names):
    assert names["draws"].shape == (500, 4, 16)
    assert names["history"].position.shape == (500, 16)
    assert steppe.Binary(16).contains(names["draws"])
    assert steppe.Binary(16).contains(names["history"].position)
    assert 0 < float(names["acceptance"].mean()) <= 1


def test_difference_table_of_the_readme_is_that_of_its_log_density(names):
    position = names["draws"][-1, 0]
    expected = np.asarray(names["target"].differences(position))
    given = np.asarray(names["with_table"].differences(position))
    # Sums of 16 float32 products of size 1.
    np.testing.assert_allclose(given, expected, atol=1e-5)


def test_incremental_form_of_the_readme_follows_a_change(names):
    start = names["draws"][-1, 0]
    follow, sites = names["following"].incremental, jnp.arange(16)
    moved = start.at[3].set(1 - start[3])
    field = follow.update(follow.init(start), start, 3, jnp.int32(moved[3]))
    given = np.asarray(follow.differences(field, moved, sites))
    np.testing.assert_allclose(given, np.asarray(names["target"].differences(moved)), atol=1e-5)


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
