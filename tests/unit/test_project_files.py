"""Files at the root agree with one another."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import steppe

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def test_the_version_is_the_same_in_the_change_log_and_the_citation():
    newest = re.search(r"^## \[([\d.]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == PROJECT["version"]
    assert f"\nversion: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_package_knows_its_version_and_says_that_it_is_typed():
    assert re.fullmatch(r"\d+\.\d+\.\d+", steppe.__version__)
    assert (Path(steppe.__file__).parent / "py.typed").exists()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_jobs_of_a_workflow_call_make_targets_that_exist(workflow):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = re.findall(r"run: make ([a-z-]+)(\S*)", workflow.read_text())
    assert called
    for name, matrix in called:
        wanted = {name + jax for jax in ("lowest", "locked", "newest")} if matrix else {name}
        assert wanted <= targets


def test_the_matrix_of_python_versions_is_the_one_that_is_declared():
    matrix = re.search(r"python: (\[.*\])", (ROOT / ".github/workflows/tests.yml").read_text())
    assert matrix is not None
    declared = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert re.findall(r"3\.\d+", matrix[1]) == declared


def test_the_summary_for_a_journal_has_its_sections_and_cites_what_it_lists():
    text, references = ((ROOT / "paper" / name).read_text() for name in ("paper.md", "paper.bib"))
    sections = re.findall(r"^# (.+)$", text, re.MULTILINE)
    assert sections == [
        "Summary",
        "Statement of need",
        "Features",
        "Comparison with other software",
        "Acknowledgements",
        "References",
    ]
    assert {"title:", "tags:", "authors:", "affiliations:", "date:", "bibliography: paper.bib"} <= set(
        re.findall(r"^(?:[a-z]+:(?: paper\.bib)?)", text, re.MULTILINE)
    )
    assert set(re.findall(r"@(\w+\d{4})", text)) == set(
        re.findall(r"^@\w+\{(\w+),", references, re.MULTILINE)
    )
    assert 250 <= len(text.split()) <= 1000


@pytest.mark.slow
def test_the_wheel_holds_the_package_its_types_and_its_licence_and_no_tests(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path), "-t", "wheel"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("steppe-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "steppe/py.typed" in names
    assert any(name.endswith(("/licenses/LICENSE", "/licenses/LICENSE.txt")) for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"steppe"}
    assert not [name for name in names if "test" in Path(name).name.lower()]
