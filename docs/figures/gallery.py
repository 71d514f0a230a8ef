"""Write docs/gallery.md: every program of examples/ with a thumbnail of the picture it ends in.

    python docs/figures/gallery.py [NAME ...]

Runs the named examples, by default all of them, and makes their thumbnails anew; `--pages` runs none. Every
example is written as a notebook beside the page, to be downloaded.
"""

import ast
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "docs" / "notebooks"
THUMBNAILS = ROOT / "docs" / "images" / "gallery"
WIDTH = 480
COLORS = 48


def main(names):
    examples = list_examples()
    for path in examples:
        if not names or path.stem in names:
            draw(path)
    NOTEBOOKS.mkdir(exist_ok=True)
    for path in examples:
        (NOTEBOOKS / f"{path.stem}.ipynb").write_text(write_notebook(path), encoding="utf-8")
    (ROOT / "docs" / "gallery.md").write_text(write_page(examples), encoding="utf-8")


def list_examples():
    """Programs of the gallery, in the order of their names."""
    return sorted((ROOT / "examples").glob("*.py"))


def draw(path):
    """Run an example in a folder of its own and keep a small copy of its picture."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, str(path)], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        picture = Image.open(Path(folder) / "out" / "examples" / f"{path.stem}.png").convert("RGB")
    small = picture.resize((WIDTH, round(picture.height * WIDTH / picture.width)), Image.Resampling.LANCZOS)
    THUMBNAILS.mkdir(parents=True, exist_ok=True)
    small.quantize(COLORS).save(THUMBNAILS / f"{path.stem}.png", optimize=True)


def write_notebook(path):
    """The program as a notebook: what it does, its functions, and a call of `main`."""
    source = path.read_text(encoding="utf-8")
    text = (ast.get_docstring(ast.parse(source)) or "").replace(f"    python examples/{path.stem}.py\n\n", "")
    title, _, body = text.partition("\n")
    code = source.split('"""', 2)[2].partition('if __name__ == "__main__":')[0].strip()
    show = f"main()\n\nfrom IPython.display import Image\n\nImage('out/examples/{path.stem}.png')"
    cells = [("markdown", f"# {title}\n{body}"), ("code", code), ("code", show)]
    made = {
        "cells": [_write_cell(f"cell{index}", *cell) for index, cell in enumerate(cells)],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def _write_cell(name, kind, source):
    cell = {"cell_type": kind, "id": name, "metadata": {}, "source": source.splitlines(keepends=True)}
    return cell if kind == "markdown" else cell | {"execution_count": None, "outputs": []}


def write_page(examples):
    """A grid of thumbnails, then a section per example: its title, its picture, what it does, where it is."""
    lead = (
        "Programs of `examples/`, one question and one picture each. `python examples/NAME.py` runs one and "
        "leaves the picture in `out/examples/`; each can be downloaded as a notebook."
    )
    told = {path: _read_docstring(path) for path in examples}
    grid = [
        f"[![]({_name_picture(path)}) {_shorten(title)}](#gallery-{path.stem})"
        for path, (title, _) in told.items()
    ]
    parts = ["# Gallery", lead, "\n\n".join(["::::{container} gallery", *grid, "::::"])]
    for path, (title, body) in told.items():
        where = f"`examples/{path.stem}.py` · {{download}}`notebook <notebooks/{path.stem}.ipynb>`"
        shown = f"![{title}]({_name_picture(path)})"
        parts += [f"(gallery-{path.stem})=", f"## {title.rstrip('.')}", shown, body, where]
    return "\n\n".join(parts) + "\n"


def _name_picture(path):
    return f"images/gallery/{path.stem}.png"


def _read_docstring(path):
    """Title and text of an example, without the line that runs it."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    title, _, rest = text.partition("\n")
    return title, rest.replace(f"    python examples/{path.stem}.py", "").strip()


def _shorten(title):
    """The first sentence or clause of a title."""
    return re.split(r"(?<=[?.:])\s", title)[0].rstrip(".:")


if __name__ == "__main__":
    main(sys.argv[1:])
