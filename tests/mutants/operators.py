"""Mutants of a module: every small change of its source that an operator makes, one at a time.

A mutant replaces the text of one node of the syntax tree and leaves the rest of the file as it is. Left
alone are annotations, docstrings and other strings, assertions (which only narrow types here; `strict` of
`zip` is one) and what an error says; that it is raised is not left alone.
"""

import ast
import copy
import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

MODULE_LEVEL = "<module>"

COMPARISONS: dict[type[ast.cmpop], list[type[ast.cmpop]]] = {
    ast.Lt: [ast.LtE, ast.Gt],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
# Functions that are taken for one another.
NAMES = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "argmin": "argmax",
    "argmax": "argmin",
    "any": "all",
    "all": "any",
    "sum": "mean",
    "mean": "sum",
    "zeros": "ones",
    "ones": "zeros",
    "zeros_like": "ones_like",
    "ones_like": "zeros_like",
    "log": "exp",
    "exp": "log",
    "sqrt": "square",
    "floor": "ceil",
    "ceil": "floor",
    "var": "std",
    "std": "var",
    "cumsum": "cumprod",
}
COMMUTATIVE = {"min", "max", "minimum", "maximum", "logaddexp", "add", "array_equal"}


class Mutant(NamedTuple):
    """One change: where it is and what it does."""

    module: str
    function: str
    line: int
    first_line: int  # of the function
    operator: str
    before: str
    after: str
    ordinal: int  # among equal changes of the same function
    start: int  # bytes of the source that are replaced
    end: int

    @property
    def name(self) -> str:
        """What it is called: the same as long as the function holds the same text."""
        parts = (self.module, self.function, self.operator, self.before, self.after, str(self.ordinal))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]

    def apply(self, source: str) -> str | None:
        """Return the source with the change in it, or `None` if that is not Python."""
        content = source.encode()
        text = (content[: self.start] + self.after.encode() + content[self.end :]).decode()
        try:
            compile(text, "mutant", "exec", dont_inherit=True)
        except SyntaxError:
            return None
        return text


class _Place(NamedTuple):
    node: ast.expr | ast.stmt
    function: str
    first_line: int


def list_mutants(module: str, source: str) -> list[Mutant]:
    """Every mutant of a module; a few may not be Python any more."""
    offsets, content = _list_offsets(source), source.encode()
    seen: Counter[tuple[str, ...]] = Counter()
    mutants = []
    for place in _walk(ast.parse(source), MODULE_LEVEL, 1):
        node = place.node
        is_condition = isinstance(node, ast.If | ast.While | ast.IfExp)
        start, end = _find_span(node.test if is_condition else node, offsets)
        before = content[start:end].decode()
        for operator, after in _change(node):
            if after == before:
                continue
            same = (place.function, operator, before, after)
            where = (module, place.function, node.lineno, place.first_line)
            mutants.append(Mutant(*where, operator, before, after, seen[same], start, end))
            seen[same] += 1
    return mutants


def name_functions(source: str) -> dict[int, tuple[str, int]]:
    """By line of a module: the function it is in, and the line that function begins with."""
    lines: dict[int, tuple[str, int]] = {}

    def visit(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                own = child.name if name == MODULE_LEVEL else f"{name}.{child.name}"
                if isinstance(child, ast.FunctionDef):
                    for line in range(child.body[0].lineno, (child.end_lineno or child.lineno) + 1):
                        lines[line] = (own, child.lineno)
                visit(child, own)
            else:
                visit(child, name)

    visit(ast.parse(source), MODULE_LEVEL)
    return lines


def _walk(node: ast.AST, function: str, first_line: int) -> Iterator[_Place]:
    """Nodes that may be changed, with the function they are in."""
    for child in _list_changeable(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            name = child.name if function == MODULE_LEVEL else f"{function}.{child.name}"
            first = child.lineno if isinstance(child, ast.FunctionDef) else first_line
            yield from _walk(child, name, first)
            continue
        if isinstance(child, ast.expr | ast.stmt):
            yield _Place(child, function, first_line)
        if not isinstance(child, ast.Raise):
            yield from _walk(child, function, first_line)


def _list_changeable(node: ast.AST) -> Iterator[ast.AST]:
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params", "type_comment"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.Assert | ast.JoinedStr):
                continue
            if isinstance(child, ast.keyword) and child.arg == "strict":
                continue
            if isinstance(child, ast.Assign) and any(_is_dunder(target) for target in child.targets):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            yield child


def _is_dunder(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and (node.id.startswith("__") or node.id == "component_id")


def _change(node: ast.expr | ast.stmt) -> Iterator[tuple[str, str]]:
    """What each operator makes of a node."""
    match node:
        case ast.Compare():
            yield from _change_comparison(node)
        case ast.BinOp() if type(node.op) in ARITHMETIC and not _is_text(node):
            yield "arithmetic", _write(node, op=ARITHMETIC[type(node.op)]())
        case ast.AugAssign() if type(node.op) in ARITHMETIC:
            yield "arithmetic", ast.unparse(_alter(node, op=ARITHMETIC[type(node.op)]()))
            yield "drop statement", "pass"
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert()):
            yield "drop sign", f"({ast.unparse(node.operand)})"
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "boolean", _write(node, op=other)
        case ast.Constant(value=bool() | int() | float()):
            yield from _change_constant(node.value)
        case ast.If() | ast.While() | ast.IfExp():
            yield "negate", f"(not ({ast.unparse(node.test)}))"  # in place of the condition alone
        case ast.Expr(value=ast.Call()) | ast.Raise():
            yield "drop statement", "pass"
        case ast.Continue():
            yield "loop", "break"
        case ast.Break():
            yield "loop", "continue"
        case ast.Call():
            yield from _change_call(node)
        case ast.Subscript(slice=ast.Slice(lower=lower, upper=upper)):
            if lower is not None:
                yield "slice", _write(node, slice=_alter(node.slice, lower=None))
            if upper is not None:
                yield "slice", _write(node, slice=_alter(node.slice, upper=None))
        case _:
            return


def _change_comparison(node: ast.Compare) -> Iterator[tuple[str, str]]:
    for index, op in enumerate(node.ops):
        for other in COMPARISONS.get(type(op), []):
            yield "comparison", _write(node, ops=[*node.ops[:index], other(), *node.ops[index + 1 :]])


def _change_constant(value: bool | float) -> Iterator[tuple[str, str]]:
    if isinstance(value, bool):
        yield "constant", str(not value)
    elif value == 0:
        yield "constant", "1" if isinstance(value, int) else "1.0"
    else:
        yield "constant", f"({value + 1!r})" if isinstance(value, int) else f"({2 * value!r})"


def _change_call(node: ast.Call) -> Iterator[tuple[str, str]]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
    if name in NAMES:
        changed = (
            _alter(node.func, attr=NAMES[name])
            if isinstance(node.func, ast.Attribute)
            else ast.Name(NAMES[name])
        )
        yield "name", _write(node, func=changed)
    if (
        len(node.args) > 1
        and name not in COMMUTATIVE
        and not any(isinstance(a, ast.Starred) for a in node.args[:2])
    ):
        yield "swap arguments", _write(node, args=[node.args[1], node.args[0], *node.args[2:]])
    for index, keyword in enumerate(node.keywords):
        if keyword.arg not in (None, "strict"):
            kept = [*node.keywords[:index], *node.keywords[index + 1 :]]
            yield "drop keyword", _write(node, keywords=kept)


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in sides
    )


def _alter(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _write(node: ast.expr, **fields: object) -> str:
    return f"({ast.unparse(_alter(node, **fields))})"


def _list_offsets(source: str) -> list[int]:
    """Where each line begins, in bytes."""
    offsets = [0]
    for line in source.encode().splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    return offsets


def _find_span(node: ast.expr | ast.stmt, offsets: list[int]) -> tuple[int, int]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return offsets[node.lineno - 1] + node.col_offset, offsets[node.end_lineno - 1] + node.end_col_offset
