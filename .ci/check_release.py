"""Whether a tag may be released: it names the version, and the change log has a dated section for it."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def find_fault(tag: str) -> str | None:
    """Return what is wrong with a tag, in a sentence."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    if tag != f"v{version}":
        return f"The tag must be v{version}, the version of pyproject.toml; got {tag!r}."
    if not re.search(
        rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.M
    ):
        return f"CHANGELOG.md needs a section `## [{version}] - YYYY-MM-DD`; date the one it has."
    return None


if __name__ == "__main__":
    sys.exit(find_fault(sys.argv[1]))
