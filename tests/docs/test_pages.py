"""Every code block of the pages runs, every command exists, and what is generated is current."""

import importlib.util
import re
import sys
from importlib import import_module
from typing import get_type_hints

import pytest

from docs.pages import DOCS, PAGES, ROOT, commands, name_of, python_blocks
from steppe.samplers.registry import REGISTRY

LARGEST_FIGURE = 100_000

# Each of these takes a few seconds of computing at most; the others are slow.
QUICK = {
    "docs/index.md",
    "docs/notation.md",
    "docs/choose.md",
    "docs/explain/edlp.md",
    "docs/explain/exact-tests.md",
    "docs/explain/claims.md",
    "docs/howto/adding-a-sampler.md",
    "docs/howto/long-runs.md",
}
# Run by a test of its own, section by section, where the packages are installed.
ELSEWHERE = {"docs/bridges.md"}
RECIPES = {name_of(path) for path in PAGES if path.parent.name == "recipes"}


def runnable():
    pages = [path for path in PAGES if list(python_blocks(path).examples())]
    for path in pages:
        name = name_of(path)
        if name not in ELSEWHERE | RECIPES:
            yield pytest.param(path, id=name, marks=[] if name in QUICK else [pytest.mark.slow])


@pytest.mark.parametrize("path", list(runnable()))
def test_blocks_of_a_page_run_one_after_another(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for example in python_blocks(path).examples():
        example.evaluate()


def test_calls_on_recipe_pages_are_the_defaults():
    for name in sorted(RECIPES):
        for example in python_blocks(ROOT / name).examples():
            example.evaluate()


@pytest.mark.parametrize("path", [ROOT / "README.md", *PAGES], ids=name_of)
def test_commands_of_a_page_exist_with_their_flags(path):
    app = import_module("steppe.cli.main").app
    for arguments in commands(path):
        app.parse_args(arguments, exit_on_error=False, print_error=False)


def test_commands_are_found():
    assert sum(len(commands(path)) for path in PAGES) > 10


def test_import_arrows_of_the_architecture_are_the_tested_ones():
    from unit.test_import_graph import LAYERS

    text = (DOCS / "architecture.md").read_text(encoding="utf-8").split("## Import arrows")[1]
    arrows = re.search(r"```text\n(.*?)```", text, re.DOTALL)[1]
    assert re.split(r"\s*→\s*", arrows.strip()) == [layer for layer in LAYERS if not layer.startswith("__")]


def generator():
    sys.path.insert(0, str(DOCS))  # as when it runs as a script
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.remove(str(DOCS))
    return module


def test_generated_pages_are_current():
    stale = [
        name_of(path)
        for path, content in generator().pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != content
    ]
    assert not stale, f"run `python docs/generate.py`: {stale}"


def test_every_recipe_has_a_page_with_a_figure():
    for name in REGISTRY:
        page = (DOCS / "recipes" / f"{name}.md").read_text(encoding="utf-8")
        has_parameters = bool(generator().parameters(name))
        assert (f"../figures/{name}.svg" in page) == has_parameters
        titles = ("Idea", "Equation", "Distribution", "Cost", "Limits", "Reference")
        for title in titles + ("Parameters",) * has_parameters:
            assert f"\n## {title}\n" in page, f"{name} has no {title}"


def test_every_number_of_a_recipe_says_what_raising_it_does():
    made = generator()
    silent = [
        f"{name}({parameter})"
        for name, entry in REGISTRY.items()
        for parameter, kind in get_type_hints(entry.make).items()
        if parameter != "return" and kind in (int, float, float | None)
        if "Raising" not in made.parameters(name)[parameter]
    ]
    assert not silent


def test_no_parameter_of_an_exact_recipe_is_said_to_bring_bias():
    made = generator()
    exact = [name for name, entry in REGISTRY.items() if entry.make().is_adjusted]
    assert len(exact) > 12
    assert not [name for name in exact for text in made.parameters(name).values() if "bias" in text]


@pytest.mark.parametrize("path", sorted((DOCS / "figures").glob("*.svg")), ids=name_of)
def test_figure_is_small_and_used(path):
    assert 0 < path.stat().st_size < LARGEST_FIGURE
    assert any(path.name in page.read_text(encoding="utf-8") for page in PAGES)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_between_pages_lead_somewhere(path):
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        assert link.startswith("http") or (path.parent / link).exists(), f"{link} does not exist"
