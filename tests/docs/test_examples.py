"""The examples run as they are and end in a picture."""

import ast
import os
import runpy
import subprocess
import sys

import pytest

from docs.pages import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MOST_LINES = 60


def test_there_are_fourteen_of_sixty_lines_or_fewer():
    assert len(EXAMPLES) >= 14
    assert {path.stem: count for path in EXAMPLES if (count := count_code(path)) > MOST_LINES} == {}


def count_code(path) -> int:
    """Lines that are neither blank nor comments nor the text at the top."""
    source = path.read_text(encoding="utf-8")
    code = source.splitlines()[ast.parse(source).body[0].end_lineno :]
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in code)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_a_thumbnail_and_its_notebook_is_the_program(path):
    gallery = runpy.run_path(str(ROOT / "docs" / "figures" / "gallery.py"))
    assert (ROOT / "docs" / "images" / "gallery" / f"{path.stem}.png").exists()
    notebook = (ROOT / "docs" / "notebooks" / f"{path.stem}.ipynb").read_text(encoding="utf-8")
    assert notebook == gallery["write_notebook"](path), "run `python docs/figures/gallery.py --pages`"


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_ends_in_a_picture(path, tmp_path):
    if path.stem == "torch_model":
        pytest.importorskip("torch")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "XLA_FLAGS": ""}
    subprocess.run([sys.executable, str(path)], cwd=tmp_path, env=environment, check=True, timeout=500)
    assert (tmp_path / "out" / "examples" / f"{path.stem}.png").stat().st_size > 5_000
