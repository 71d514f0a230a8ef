"""Write docs/gallery.md: every program of examples/ with a thumbnail of the picture it ends in.

    python docs/figures/gallery.py [NAME ...]

Runs the named examples, by default all of them, and makes their thumbnails anew.
"""

import ast
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[2]
THUMBNAILS = ROOT / "docs" / "images" / "gallery"
WIDTH = 480
COLORS = 48


def main(names):
    examples = sorted((ROOT / "examples").glob("*.py"))
    for path in examples:
        if not names or path.stem in names:
            draw(path)
    (ROOT / "docs" / "gallery.md").write_text(write_page(examples), encoding="utf-8")


def draw(path):
    """Run an example in a folder of its own and keep a small copy of its picture."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, str(path)], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        picture = Image.open(Path(folder) / "out" / "examples" / f"{path.stem}.png").convert("RGB")
    small = picture.resize((WIDTH, round(picture.height * WIDTH / picture.width)), Image.Resampling.LANCZOS)
    THUMBNAILS.mkdir(parents=True, exist_ok=True)
    small.quantize(COLORS).save(THUMBNAILS / f"{path.stem}.png", optimize=True)


def write_page(examples):
    """A section per example: its title, its picture, what it does, where it is."""
    lead = (
        "Programs of `examples/`, one question and one picture each. `python examples/NAME.py` runs one and "
        "leaves the picture in `out/examples/`."
    )
    parts = ["# Gallery", lead]
    for path in examples:
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        title, _, rest = text.partition("\n")
        body = rest.replace(f"    python examples/{path.stem}.py", "").strip()
        picture = THUMBNAILS / f"{path.stem}.png"
        shown = [f"![{title}](images/gallery/{path.stem}.png)"] if picture.exists() else []
        parts += [f"## {title.rstrip('.')}", *shown, body, f"`examples/{path.stem}.py`"]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])
