"""Files of DIMACS are read as written, and what is wrong in them is named with its line."""

import numpy as np
import pytest

from steppe import datasets, targets
from steppe.errors import DataError

FORMULA = "c a comment\np cnf 3 2\n1 -3 0\n2\n 3 -1 0\n"
GRAPH = "c a comment\np edge 4 3\ne 1 2\ne 3 2\ne 4 1\n"


def test_a_formula_is_what_its_file_says(tmp_path):
    path = tmp_path / "small.cnf"
    path.write_text(FORMULA)
    formula = datasets.read_cnf(path)
    assert (formula.num_variables, formula.clauses) == (3, ((1, -3), (2, 3, -1)))
    assert targets.cnf(formula).is_feasible([1, 1, 0])
    path.write_text("p wcnf 2 2\n2.5 1 0\n4 -1 2 0\n")
    assert datasets.read_cnf(path).weights.tolist() == [2.5, 4.0]


def test_a_graph_is_what_its_file_says(tmp_path):
    path = tmp_path / "small.clq"
    path.write_text(GRAPH)
    graph = datasets.read_dimacs(path)
    assert (graph.num_nodes, graph.edges.tolist()) == (4, [[0, 1], [1, 2], [0, 3]])
    assert targets.clique(graph).is_feasible(np.asarray([1, 1, 0, 0]))


WRONG = {
    "no header": ("cnf", "1 2 0\n", "line 1: `p cnf"),
    "literal out of range": ("cnf", "p cnf 2 1\n1 3 0\n", "line 2: the literal 3 is outside ±1 … ±2"),
    "not a literal": ("cnf", "p cnf 2 1\n1 x 0\n", "line 2: 'x' is not a literal"),
    "empty clause": ("cnf", "p cnf 2 2\n1 0\n0\n", "line 3: an empty clause"),
    "missing clause": ("cnf", "p cnf 2 2\n1 0\n", "announces 2 clauses and lists 1"),
    "open clause": ("cnf", "p cnf 2 1\n1 2\n", "does not end in 0"),
    "huge size": ("cnf", "p cnf 99999999999 1\n1 0\n", "line 1: '99999999999' is not a size"),
    "weight": ("cnf", "p wcnf 2 1\n-1 1 0\n", "line 2: the weight of a clause must be positive"),
    "no graph": ("edge", "1 2\n", "line 1: `p edge"),
    "self-loop": ("edge", "p edge 3 1\ne 2 2\n", "line 2: node 2 has an edge to itself"),
    "edge twice": ("edge", "p edge 3 2\ne 1 2\ne 2 1\n", "line 3: the edge 1 2 stands in line 2 already"),
    "node out of range": ("edge", "p edge 3 1\ne 1 4\n", "line 2: it has an edge to a node outside 1 … 3"),
    "not an edge": ("edge", "p edge 3 1\ne 1 -2\n", "line 2: an edge is `e from to`"),
    "missing edge": ("edge", "p edge 3 2\ne 1 2\n", "announces 2 edges and lists 1"),
}


@pytest.mark.parametrize(("kind", "text", "said"), WRONG.values(), ids=WRONG)
def test_wrong_files_are_refused_with_file_and_line(tmp_path, kind, text, said):
    path = tmp_path / "wrong.txt"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        (datasets.read_cnf if kind == "cnf" else datasets.read_dimacs)(path)
    assert said in str(caught.value)
    assert "wrong.txt" in str(caught.value)


def test_unknown_members_name_some_that_are_there():
    with pytest.raises(DataError, match="uf20-01"):
        datasets.load("satlib:uf75-01")
    with pytest.raises(DataError, match=r"C125\.9"):
        datasets.load("dimacs:C9")
