"""Shell blocks of the pages run as printed; those that cannot say why."""

import subprocess

import pytest

from docs.pages import PAGES, ROOT, name_of, named_files, reader, shell_blocks

# Run by `test_first_hour.py`, after the python blocks of the page.
ELSEWHERE = {"docs/start.md"}
# Pages with a block that is left out; `<!-- not run: reason -->` above it says why.
LEFT_OUT = {
    "docs/index.md",
    "README.md",
    "docs/start.md",
    "docs/distributed.md",
    "docs/explain/claims.md",
    "docs/howto/reproduce.md",
    "docs/howto/your-package.md",
}
RUNNABLE = [
    path
    for path in PAGES
    if name_of(path) not in ELSEWHERE and any(not block.why_not_run for block in shell_blocks(path))
]
# A Slurm script is a shell script: comments to Slurm, and one variable from it.
AS_A_JOB = {"SLURM_ARRAY_TASK_ID": "5"}


def test_few_pages_have_blocks_that_are_not_run():
    silent = {
        name_of(path)
        for path in [ROOT / "README.md", *PAGES]
        if any(b.why_not_run for b in shell_blocks(path))
    }
    assert silent == LEFT_OUT


@pytest.mark.slow
@pytest.mark.parametrize("path", RUNNABLE, ids=name_of)
def test_shell_blocks_of_a_page_run_one_after_another(path, tmp_path):
    environment = {**reader(tmp_path), **AS_A_JOB}
    for name, content in named_files(path).items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    for block in shell_blocks(path):
        if block.why_not_run:
            continue
        done = subprocess.run(
            ["bash", "-e", "-c", block.text],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        assert done.returncode == 0, f"{block.text}\n{done.stdout}\n{done.stderr}"
