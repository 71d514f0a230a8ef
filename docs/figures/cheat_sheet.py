"""Print docs/cheat-sheet.md to out/cheat-sheet.pdf with Chromium.

python docs/figures/cheat_sheet.py
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
STYLE = """
@page { size: A4; margin: 9mm; }
body { font: 8.4pt/1.3 sans-serif; columns: 2; column-gap: 7mm; }
code { font-size: 7.2pt; } pre code { font-size: 6.9pt; }
h1 { font-size: 13pt; margin: 0 0 1mm; } h2 { font-size: 9.5pt; margin: 2mm 0 1mm; }
table { border-collapse: collapse; width: 100%; break-inside: avoid; }
td, th { border-bottom: .2mm solid #ccc; text-align: left; vertical-align: top; padding: .4mm 1mm .4mm 0; }
pre { background: #f4f4f1; padding: 1.2mm; white-space: pre-wrap; margin: 1mm 0; break-inside: avoid; }
h2 { break-after: avoid; } a { color: inherit; }
"""


def main():
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        sys.exit(
            "The cheat-sheet is printed by Chromium, which is not installed: `tests/browser/install` gets it."
        )
    out = ROOT / "out" / "cheat-sheet.pdf"
    out.parent.mkdir(exist_ok=True)
    text = (ROOT / "docs" / "cheat-sheet.md").read_text(encoding="utf-8")
    text = "\n".join(line for line in text.splitlines() if "cheat_sheet.py" not in line)
    body = MarkdownIt("commonmark").enable("table").render(text)
    page = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>steppe</title><style>{STYLE}</style>{body}"
    )
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "page.html"
        source.write_text(page, encoding="utf-8")
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
        subprocess.run(
            [program, *arguments, f"--print-to-pdf={out}", source.as_uri()],
            check=True,
            stderr=subprocess.DEVNULL,
        )
    print(out)


if __name__ == "__main__":
    main()
