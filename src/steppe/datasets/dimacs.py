"""Files of DIMACS: formulas in conjunctive normal form, plain or weighted, and graphs of cliques."""

import dataclasses
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

import numpy as np

from steppe.arguments import checked
from steppe.datasets import catalogue
from steppe.datasets.card import Card
from steppe.datasets.download import File
from steppe.datasets.files import Lookup, read_number, read_text, text_of
from steppe.datasets.gset import MAX_NODES, WHOLE, GraphInstance
from steppe.errors import DataError
from steppe.validation import shorten

CLIQUES = File(
    "dimacs_clique/dimacs_clique.tar.xz",
    "51c380dae00c428fb7a861de97eaf847318568341f9c5b3adec8deeb6e09b208",
    0,
)
FORMULAS = File(
    "satlib/satlib_uf20-91_uf50-218_uuf50-218.tar.xz",
    "2ed777ccfb48d90abd06d963f244297e5e082242205188224ebb9af069bb8659",
    0,
)
# Families of SATLIB with their folders; each has a thousand members, numbered from 1.
FAMILIES = {"uf20": "uf20-91", "uf50": "uf50-218", "uuf50": "uuf50-218"}


@dataclasses.dataclass(frozen=True)
class FormulaInstance:
    r"""A formula in conjunctive normal form.

    Attributes
    ----------
    name
        As in the collection.
    num_variables
        Variables, numbered from 1 as in the file.
    clauses
        Each a tuple of literals, negative for a negation.
    weights
        One per clause; 1 where the file has none.
    card
        Where it comes from.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from steppe.datasets import read_cnf
    >>> from steppe.targets import cnf
    >>> file = pathlib.Path(tempfile.mkdtemp(), "tiny.cnf")
    >>> _ = file.write_text("p cnf 2 2\n1 2 0\n-1 2 0\n")
    >>> formula = read_cnf(file)
    >>> formula.num_variables, cnf(formula.clauses).is_feasible([0.0, 1.0])
    (2, True)
    """

    name: str
    num_variables: int
    clauses: tuple[tuple[int, ...], ...]
    weights: np.ndarray
    card: Card


def load_formula(name: str, lookup: Lookup) -> FormulaInstance:
    """Load a formula of SATLIB by its name, such as `uf20-01`."""
    family, _, member = name.partition("-")
    if family not in FAMILIES or not WHOLE.fullmatch(member) or not 1 <= int(member) <= 1000:
        known = ", ".join(f"{family}-01 … {family}-01000" for family in FAMILIES)
        raise DataError(f"There is no `satlib:{name}`; there is {known}. Read others with `read_cnf(path)`.")
    what = f"satlib:{name}"
    found = lookup.find(what, (FORMULAS._replace(member=f"{FAMILIES[family]}/{family}-0{int(member)}.cnf"),))
    formula = _parse_formula(what, text_of(what, found))
    card = dataclasses.replace(formula.card, name=what, sha256={found.path.name: found.sha256})
    return dataclasses.replace(formula, name=name, card=card)


def load_clique(name: str, lookup: Lookup) -> GraphInstance:
    """Load a graph of the clique challenge by its name."""
    row = catalogue.row("dimacs", name)
    what = f"dimacs:{name}"
    found = lookup.find(what, (CLIQUES._replace(member=f"./{name}.clq"),))
    graph = _parse_graph(what, text_of(what, found))
    card = dataclasses.replace(graph.card, name=what, sha256={found.path.name: found.sha256})
    return dataclasses.replace(graph, name=name, best_known=float(row["best_known"]), card=card)


@checked(DataError)
def read_cnf(path: str | PathLike[str]) -> FormulaInstance:
    r"""Read a formula in DIMACS format: `p cnf variables clauses`, then clauses that end in 0.

    Parameters
    ----------
    path
        The file. With a header `p wcnf variables clauses` every clause begins with its weight.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from steppe.datasets import read_cnf
    >>> file = pathlib.Path(tempfile.mkdtemp(), "tiny.cnf")
    >>> _ = file.write_text("c a or b, not a or b\np cnf 2 2\n1 2 0\n-1 2 0\n")
    >>> read_cnf(file).clauses
    ((1, 2), (-1, 2))
    """
    return _parse_formula(str(path), read_text(path))


@checked(DataError)
def read_dimacs(path: str | PathLike[str]) -> GraphInstance:
    r"""Read a graph in DIMACS format: `p edge nodes edges` (or `p col`), then lines `e from to`.

    Parameters
    ----------
    path
        The file. Nodes are numbered from 1 there and from 0 here.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from steppe.datasets import read_dimacs
    >>> file = pathlib.Path(tempfile.mkdtemp(), "triangle.clq")
    >>> _ = file.write_text("p edge 3 3\ne 1 2\ne 2 3\ne 1 3\n")
    >>> read_dimacs(file).edges.tolist()
    [[0, 1], [1, 2], [0, 2]]
    """
    return _parse_graph(str(path), read_text(path))


def _parse_formula(what: str, text: str) -> FormulaInstance:
    lines = _content_lines(text)
    number, words = next(lines, (1, []))
    if len(words) not in (4, 5) or words[0] != "p" or words[1] not in ("cnf", "wcnf"):
        raise DataError(f"{what}, line {number}: `p cnf variables clauses` comes first; got {_show(words)}.")
    num_variables, num_clauses = (_read_size(f"{what}, line {number}", word) for word in words[2:4])
    is_weighted, clauses, weights = words[1] == "wcnf", [], []
    literals: list[int] = []
    weight: float | None = None
    for number, words in lines:
        where = f"{what}, line {number}"
        if words == ["%"]:  # how files of SATLIB end
            break
        for word in words:
            if is_weighted and weight is None:
                weight = read_number(where, word)
                if weight <= 0:
                    raise DataError(f"{where}: the weight of a clause must be positive; got {word}.")
                continue
            literal = _read_literal(where, word, num_variables)
            if literal:
                literals.append(literal)
                continue
            if not literals:
                raise DataError(f"{where}: an empty clause, which nothing satisfies.")
            clauses.append(tuple(literals))
            weights.append(1.0 if weight is None else weight)
            literals, weight = [], None
    if literals:
        raise DataError(f"{what}: its last clause does not end in 0.")
    if len(clauses) != num_clauses:
        raise DataError(f"{what}: it announces {num_clauses} clauses and lists {len(clauses)}.")
    card = Card(
        name=what,
        source="SATLIB, H. Hoos and T. Stützle" if what.startswith("satlib:") else "DIMACS format",
        licence="none stated",
        sha256={},
        rows=num_clauses,
        columns=num_variables,
        preprocessing="none",
    )
    return FormulaInstance(Path(what).stem, num_variables, tuple(clauses), np.asarray(weights), card)


def _parse_graph(what: str, text: str) -> GraphInstance:
    lines = _content_lines(text)
    number, words = next(lines, (1, []))
    if len(words) != 4 or words[0] != "p" or words[1] not in ("edge", "col"):
        raise DataError(f"{what}, line {number}: `p edge nodes edges` comes first; got {_show(words)}.")
    num_nodes, num_edges = (_read_size(f"{what}, line {number}", word) for word in words[2:4])
    edges: list[tuple[int, int]] = []
    seen: dict[tuple[int, int], int] = {}
    for number, words in lines:
        where = f"{what}, line {number}"
        if len(words) != 3 or words[0] != "e" or not all(WHOLE.fullmatch(word) for word in words[1:]):
            raise DataError(f"{where}: an edge is `e from to`; got {_show(words)}.")
        first, second = sorted((int(words[1]), int(words[2])))
        if not 1 <= first <= second <= num_nodes:
            raise DataError(f"{where}: it has an edge to a node outside 1 … {num_nodes}.")
        if first == second:
            raise DataError(f"{where}: node {first} has an edge to itself.")
        if (first, second) in seen:
            earlier = seen[first, second]
            raise DataError(f"{where}: the edge {first} {second} stands in line {earlier} already.")
        seen[first, second] = number
        edges.append((first - 1, second - 1))
    if len(edges) != num_edges:
        raise DataError(f"{what}: it announces {num_edges} edges and lists {len(edges)}.")
    card = Card(
        name=what,
        source="second DIMACS challenge (cliques)" if what.startswith("dimacs:") else "DIMACS format",
        licence="none stated",
        sha256={},
        rows=num_edges,
        columns=2,
        preprocessing="nodes renumbered from 0",
    )
    pairs = np.asarray(edges, np.int64).reshape(-1, 2)
    return GraphInstance(Path(what).stem, num_nodes, pairs, np.ones(len(pairs)), None, card)


def _content_lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Numbered lines that are neither empty nor comments, as words."""
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if words and words[0] != "c":
            yield number, words


def _read_size(where: str, word: str) -> int:
    if not WHOLE.fullmatch(word) or not 1 <= int(word) <= MAX_NODES:
        raise DataError(f"{where}: {shorten(word)} is not a size from 1 to {MAX_NODES}.")
    return int(word)


def _read_literal(where: str, word: str, num_variables: int) -> int:
    if not WHOLE.fullmatch(word.removeprefix("-")):
        raise DataError(f"{where}: {shorten(word)} is not a literal.")
    literal = int(word)
    if abs(literal) > num_variables:
        raise DataError(f"{where}: the literal {literal} is outside ±1 … ±{num_variables}.")
    return literal


def _show(words: list[str]) -> str:
    return shorten(" ".join(words))
