"""What is said about a sampler is said once: in its entry, or in its section of `docs/recipes.toml`."""

import tomllib
from pathlib import Path

import pytest
from matplotlib.colors import is_color_like
from matplotlib.markers import MarkerStyle

import steppe
from steppe import samplers
from steppe.report import style
from steppe.samplers.registry import REGISTRY

WORDS = tomllib.loads((Path(__file__).parents[2] / "docs" / "recipes.toml").read_text(encoding="utf-8"))


def test_every_public_sampler_has_an_entry_and_a_section_of_words():
    assert set(samplers.__all__) == set(REGISTRY) == set(WORDS)
    assert set(samplers.__all__) <= set(steppe.__all__)


@pytest.mark.parametrize("name", REGISTRY)
def test_words_of_a_sampler_are_complete(name):
    assert list(WORDS[name]) == ["idea", "equation", "limits", "use", "fails"]
    assert REGISTRY[name].reference.endswith(".")


@pytest.mark.parametrize("name", REGISTRY)
def test_entry_belongs_to_the_function_of_its_name(name):
    assert REGISTRY[name].make is getattr(steppe, name)
    assert REGISTRY[name].make().name == name


def test_no_two_samplers_look_alike_in_figures():
    assert all(map(is_color_like, style.SAMPLER_COLORS.values()))
    assert len(set(style.SAMPLER_COLORS.values())) == len(REGISTRY)
    assert len({MarkerStyle(one).get_marker() for one in style.SAMPLER_MARKERS.values()}) == len(REGISTRY)
