"""The package on the page "Your sampler as a package" installs as printed, and its names work."""

import re
import subprocess
import sys

import pytest

from docs.pages import DOCS, reader, shell_blocks

PAGE = DOCS / "howto" / "your-package.md"
OWN_COMMAND = "steppe distance --flip-rate 0.1"
FILE = re.compile(r"^```\w+\n# (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_the_package_of_the_page_installs_and_its_names_work(tmp_path):
    for name, content in FILE.findall(PAGE.read_text(encoding="utf-8")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    environment = reader(tmp_path)
    site = tmp_path / "site"
    environment["PYTHONPATH"] += f":{site}"
    install = ["pip", "install", "--no-deps", "--no-build-isolation", "--target", str(site), "."]
    (block,) = shell_blocks(PAGE)
    (tmp_path / "bin" / "pytest").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pytest "$@"\n')
    (tmp_path / "bin" / "pytest").chmod(0o755)
    for command in ([sys.executable, "-m", *install], ["bash", "-e", "-c", f"{block.text}{OWN_COMMAND}"]):
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "my_walk:blind_walk" in done.stdout
    assert re.search(r"total variation \de-\d+", done.stdout)
    assert "1 passed" in done.stdout
