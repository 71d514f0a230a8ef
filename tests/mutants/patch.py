"""Putting a mutant in place of a function of a library that is already imported.

The code of the function is replaced, so that everything that holds the function, a class or a compiled
program that is still to be traced, calls the mutant. What ran while the library was imported is not run
again.
"""

import ast
import gc
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

from .operators import MODULE_LEVEL, Mutant


def find_outermost_function(source: str, mutant: Mutant) -> str | None:
    """Name of the outermost function whose body holds a mutant; `None` if it is run by an import."""
    if mutant.function == MODULE_LEVEL:
        return None
    nodes: list[ast.stmt] = ast.parse(source).body
    path: list[str] = []
    for name in mutant.function.split("."):
        found = [
            node
            for node in nodes
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
            and node.name == name
            and node.lineno <= mutant.line <= (node.end_lineno or node.lineno)
        ]
        if not found:
            return None
        path.append(name)
        if isinstance(found[0], ast.FunctionDef):
            return ".".join(path) if mutant.line >= found[0].body[0].lineno else None
        nodes = found[0].body
    return None


def replace_function(path: Path, function: str) -> None:
    """Give a function the code that its module has on disk now."""
    file = str(path)
    codes = {
        (code.co_qualname, code.co_firstlineno): code
        for code in _list_codes(compile(path.read_text(encoding="utf-8"), file, "exec", dont_inherit=True))
        if code.co_qualname == function
    }
    replaced = 0
    for found in gc.get_objects():
        # Not isinstance, which asks what a weak proxy stands for, and that may be gone.
        if type(found) is FunctionType and found.__code__.co_filename == file:
            code = codes.get((found.__code__.co_qualname, found.__code__.co_firstlineno))
            if code is not None:
                found.__code__ = code
                replaced += 1
    assert replaced, f"{function} of {path} is not there"


def _list_codes(code: CodeType) -> Iterator[CodeType]:
    """All code that is inside a module's."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _list_codes(constant)
