"""List the versions of the documentation that lie beside each other, for the list on their pages.

    python docs/list_versions.py out/site

The site has one folder per version, `dev` or a release as `0.2.0`, each built with `STEPPE_DOCS_VERSION` set
to its name, as `make docs-site` does. Written are `versions.js`, which pages read, and `index.html`, which
leads to the newest release, or to `dev` before there is one. A new version adds its folder; the others stay
as they are.
"""

import json
import re
import sys
from pathlib import Path

FIRST_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>steppe</title>
<meta http-equiv="refresh" content="0; url={name}/index.html">
<a href="{name}/index.html">steppe {name}</a></html>
"""
RELEASE = re.compile(r"\d+(\.\d+)*")


def main(site):
    versions = list_versions(site)
    if not versions:
        raise SystemExit(f"{site} has no folder with a built version: run `make docs-site` first.")
    pages = {name: list_pages(site / name) for name in versions}
    (site / "versions.js").write_text(f"window.steppeVersions = {json.dumps(pages)};\n", encoding="utf-8")
    (site / "index.html").write_text(FIRST_PAGE.format(name=versions[0]), encoding="utf-8")


def list_versions(site):
    """Folders with built pages, the newest release first and anything else, as `dev`, last."""
    names = [path.parent.name for path in site.glob("*/objects.inv")]
    releases = [name for name in names if RELEASE.fullmatch(name)]
    releases.sort(key=lambda name: [int(part) for part in name.split(".")], reverse=True)
    return releases + sorted(set(names) - set(releases))


def list_pages(folder):
    """Addresses of the pages of a version."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.html"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
