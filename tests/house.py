"""Figures of the house: how large, how deep, how typed. `python tests/house.py` prints them.

What is counted:

- *Code lines* hold at least one token that is not a comment and not part of a docstring.
- The *reproduction* is `reproduction/src`, the *library* `src/steppe`.
- *Import depth* is the number of modules on the longest chain of imports of the library. Every import
  statement is an arrow, those inside functions too; only those for type checkers are left out, for they
  never run. Modules that import one another in a circle count as a chain through all of them.
- `Any` is counted wherever the name stands, but in an import.
- A *probe* is a call of `isinstance`, `getattr` or `hasattr`.
- A file *loops over `step`* if it calls `x.step(key, state)`, or hands `x.step` to another function, and has
  a `scan`, `fori_loop` or `while_loop` in it. Blocks take other arguments, so a block of blocks is none.
- A file name *used twice* occurs more than once in its package, beside `__init__`, `run` and `figures`.
- *Own frames* are the functions of the package on the stack where it is deepest, while a target, `edmala`
  and `sample` do their work, compiling included.

Speed has a script of its own: `make bench-quick`.
"""

import ast
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from statistics import median
from types import FrameType
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "src" / "steppe"
REPRODUCTION = ROOT / "reproduction" / "src"
MAY_REPEAT = {"__init__.py", "run.py", "figures.py"}
PROBES = {"isinstance", "getattr", "hasattr"}
LOOPS = {"scan", "fori_loop", "while_loop"}
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


class Figure(NamedTuple):
    """A number of today beside the one to reach."""

    name: str
    now: float
    to_reach: float


class Arrow(NamedTuple):
    """One import statement: who imports what, and whether it happens when the module is loaded."""

    source: str
    target: str
    is_eager: bool
    is_for_types: bool = False


def find_reproduction_files() -> list[Path]:
    return sorted(REPRODUCTION.rglob("*.py"))


def find_library_files() -> list[Path]:
    return sorted(LIBRARY.rglob("*.py"))


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def count_code_lines(path: Path) -> int:
    with tokenize.open(path) as file:
        tokens = [t for t in tokenize.generate_tokens(file.readline) if t.type not in LAYOUT]
    lines = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    return len(lines - set(find_docstring_lines(parse(path))))


def find_docstring_lines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        has_body = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if has_body and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            yield from range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1)


def count_any(path: Path) -> int:
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(parse(path)))


def count_probes(path: Path) -> int:
    calls = [node.func for node in ast.walk(parse(path)) if isinstance(node, ast.Call)]
    return sum(isinstance(function, ast.Name) and function.id in PROBES for function in calls)


def loops_over_step(path: Path) -> bool:
    calls = [node for node in ast.walk(parse(path)) if isinstance(node, ast.Call)]
    has_loop = any(isinstance(call.func, ast.Attribute) and call.func.attr in LOOPS for call in calls)
    return has_loop and any(map(_steps_a_chain, calls))


def _steps_a_chain(call: ast.Call) -> bool:
    is_stepped = _is_step(call.func) and len(call.args) == 2
    return is_stepped or any(_is_step(given) for given in call.args)


def _is_step(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "step"


def find_repeated_names() -> list[str]:
    uses = Counter(
        (package, path.name) for package in (LIBRARY, REPRODUCTION) for path in package.rglob("*.py")
    )
    return sorted(name for (_, name), times in uses.items() if times > 1 and name not in MAY_REPEAT)


def name_module(path: Path) -> str:
    parts = path.relative_to(LIBRARY.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


def find_arrows(files: Iterable[Path]) -> list[Arrow]:
    """Every import of these modules of the library."""
    arrows = []
    for path in files:
        source = name_module(path)
        package = source if path.name == "__init__.py" else source.rpartition(".")[0]
        arrows += _find_imports(parse(path), Arrow(source, package, True))
    return arrows


def _find_imports(node: ast.AST, origin: Arrow) -> Iterator[Arrow]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (origin._replace(target=alias.name) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = origin.target.rsplit(".", child.level - 1)[0] if child.level else ""
            start = ".".join(part for part in (base, child.module) if part)
            yield from (origin._replace(target=_resolve(start, alias.name)) for alias in child.names)
        else:
            is_for_types = isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING")
            is_late = is_for_types or isinstance(child, ast.FunctionDef | ast.Lambda)
            below = origin._replace(
                is_eager=origin.is_eager and not is_late, is_for_types=origin.is_for_types or is_for_types
            )
            yield from _find_imports(child, below)


def _resolve(origin: str, name: str) -> str:
    """`from origin import name` imports a module if there is one of that name, else `origin`."""
    path = LIBRARY.parent / origin.replace(".", "/") / name
    return f"{origin}.{name}" if path.is_dir() or path.with_suffix(".py").exists() else origin


def find_longest_chain(files: Iterable[Path]) -> list[str]:
    """Modules on the longest chain of imports; modules in a circle stand together."""
    names = {name_module(path) for path in files}
    graph: dict[str, set[str]] = {name: set() for name in names}
    for arrow in find_arrows(files):
        if arrow.target in names and arrow.target != arrow.source and not arrow.is_for_types:
            graph[arrow.source].add(arrow.target)
    circle = {name: frozenset(group) for group in find_circles(graph) for name in group}
    above = {
        group: {circle[target] for name in group for target in graph[name]} - {group}
        for group in circle.values()
    }
    chains: dict[frozenset[str], list[str]] = {}
    for group in TopologicalSorter(above).static_order():
        longest = max((chains[target] for target in above[group]), key=len, default=[])
        chains[group] = [*sorted(group), *longest]
    return max(chains.values(), key=len)


def find_circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Split a graph into the sets of modules that reach one another."""
    reached = {name: _reach(graph, name) for name in graph}
    left, circles = set(graph), []
    while left:
        name = min(left)
        circles.append({name, *(other for other in reached[name] if name in reached[other])})
        left -= circles[-1]
    return circles


def _reach(graph: dict[str, set[str]], start: str) -> set[str]:
    found, waiting = set(), [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def measure_own_frames() -> int:
    """Most functions of the package on the stack at once, while a target is sampled with `edmala`."""
    import jax
    import jax.numpy as jnp

    import steppe

    deepest, inside = 0, str(LIBRARY)

    def look(frame: FrameType | None, event: str, _: object) -> None:
        nonlocal deepest
        if event != "call" or frame is None or not frame.f_code.co_filename.startswith(inside):
            return
        depth = 0
        while frame is not None:
            depth += frame.f_code.co_filename.startswith(inside)
            frame = frame.f_back
        deepest = max(deepest, depth)

    sys.setprofile(look)
    try:
        target = steppe.Target(lambda x: -0.5 * jnp.sum(x) ** 2, steppe.Binary(4))
        steppe.sample(target, steppe.edmala(), key=jax.random.key(0), num_draws=10, num_chains=2)
    finally:
        sys.setprofile(None)
    return deepest


def measure_import_seconds(module: str = "steppe", before: str = "sys", repeats: int = 5) -> float:
    """Median wall time of an import in fresh processes, after another import that is not timed."""
    program = (
        f"import time, {before}\n"
        "start = time.perf_counter()\n"
        f"import {module}\n"
        "print(time.perf_counter() - start)"
    )
    answers = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        for _ in range(repeats)
    ]
    return median(map(float, answers))


def count_from_source() -> list[Figure]:
    """What can be read off the source, without running it."""
    library, reproduction = find_library_files(), find_reproduction_files()
    kernel = [path for path in library if path.is_relative_to(LIBRARY / "kernel")]
    return [
        Figure("code lines of the library", sum(map(count_code_lines, library)), 13_500),
        Figure("modules of the library", len(library), 180),
        Figure("code lines of the reproduction", sum(map(count_code_lines, reproduction)), 3_300),
        Figure("import depth of the library", len(find_longest_chain(library)), 20),
        Figure("`Any` in the library", sum(map(count_any, library)), 120),
        Figure("`Any` in kernel/", sum(map(count_any, kernel)), 0),
        Figure("probes in kernel/", sum(map(count_probes, kernel)), 5),
        Figure("files that loop over `step`", sum(map(loops_over_step, [*library, *reproduction])), 1),
        Figure("file names used twice", len(find_repeated_names()), 0),
    ]


def measure() -> list[Figure]:
    """Every figure; a minute or so."""
    return [
        *count_from_source(),
        Figure("own frames deep in Target + edmala + sample", measure_own_frames(), 16),
        Figure("seconds of `import steppe`", round(measure_import_seconds(), 2), 1.25),
    ]


def main() -> None:
    print("| figure | now | to reach | |", "|---|---|---|---|", sep="\n")
    for name, now, to_reach in measure():
        print(f"| {name} | {now:,} | ≤ {to_reach:,} | {'reached' if now <= to_reach else ''} |")


if __name__ == "__main__":
    main()
