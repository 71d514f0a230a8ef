"""A copy of the project that mutants are tried in, so that work on the project itself may go on.

Copied is what git follows. Compiled modules are kept beside their sources, but never that of a mutated one:
Python tells a stale one by its length and the second it was written, which a mutant may share.
"""

import os
import py_compile
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import cache_from_source
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Two trials at once need two folders.
HOME = Path(os.environ.get("STEPPE_MUTANTS", ROOT / "out" / "mutants")).absolute()
TREE = HOME / "tree"
SOURCE = TREE / "src"
# Packages of the library that mutants are made of.
PACKAGES = ("kernel", "run", "diagnostics")


def copy_project() -> None:
    """Make the copy anew."""
    shutil.rmtree(TREE, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (TREE / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, TREE / name)
    for path in SOURCE.rglob("*.py"):
        py_compile.compile(str(path), doraise=True)


def list_modules(package: str) -> list[str]:
    """Modules of a package of the library, by their path below the library."""
    library = SOURCE / "steppe"
    return sorted(str(path.relative_to(library)) for path in (library / package).rglob("*.py"))


def read_module(module: str) -> str:
    """Source of a module in the copy."""
    return (SOURCE / "steppe" / module).read_text(encoding="utf-8")


@contextmanager
def mutated(module: str, source: str) -> Iterator[None]:
    """Put a mutant in place of a module of the copy."""
    path = SOURCE / "steppe" / module
    original, times = path.read_bytes(), path.stat()
    compiled = Path(cache_from_source(str(path)))
    compiled.unlink(missing_ok=True)
    path.write_text(source, encoding="utf-8")
    try:
        yield
    finally:
        path.write_bytes(original)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        py_compile.compile(str(path), doraise=True)
