"""Broken and hostile data files: refused in a sentence that names the file, before memory is taken."""

import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from steppe import datasets
from steppe.datasets import tabular
from steppe.datasets.files import Lookup
from steppe.errors import DataError

MAX_BYTES = 50 * 2**20


def cities(lines: str, *, dimension: object = 3, kind: str = "EUC_2D") -> str:
    return f"NAME: t\nDIMENSION: {dimension}\nEDGE_WEIGHT_TYPE: {kind}\nNODE_COORD_SECTION\n{lines}EOF\n"


def weights(values: str, *, dimension: object = 3, form: str = "FULL_MATRIX") -> str:
    return (
        f"DIMENSION: {dimension}\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: {form}\n"
        f"EDGE_WEIGHT_SECTION\n{values}\nEOF\n"
    )


THREE = "1 0 0\n2 1 0\n3 0 1\n"
TSPLIB = {
    "nothing": "",
    "zero bytes": "\0" * 1000,
    "no dimension": "EDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n1 0 0\n",
    "no type": "DIMENSION: 3\nNODE_COORD_SECTION\n" + THREE,
    "no cities": "DIMENSION: 3\nEDGE_WEIGHT_TYPE: EUC_2D\n",
    "a poem": "Roses are red\nviolets are blue\n",
    **{
        f"dimension {value}": cities(THREE, dimension=value)
        for value in ("0", "-3", "3.0", "1e3", "nan", "200000", "9" * 30, "", "three", "0x3", "4", "2")
    },
    "huge explicit": weights("1 2 3", dimension=200000),
    "huge triangle": weights("1 2 3", dimension=19999, form="UPPER_ROW"),
    "too few weights": weights("0 1 1 0"),
    "too many weights": weights("0 1 1 " * 4),
    "nan weight": weights("0 nan 1 1 0 1 1 1 0"),
    "infinite weight": weights("0 1 1 1 0 inf 1 1 0"),
    "weight that overflows": weights("0 1e999 1 1 0 1 1 1 0"),
    "weight with underscore": weights("0 1_0 1 1 0 1 1 1 0"),
    "word for a weight": weights("0 a 1 1 0 1 1 1 0"),
    "unknown form": weights("1", form="SPIRAL"),
    "empty form": weights("1", form=""),
    "nan coordinate": cities("1 0 nan\n2 1 0\n3 0 1\n"),
    "infinite coordinate": cities("1 0 0\n2 -inf 0\n3 0 1\n"),
    "word for a coordinate": cities("1 0 0\n2 x 0\n3 0 1\n"),
    "missing coordinate": cities("1 0\n2 1 0\n3 0 1\n"),
    "city named twice": cities("1 0 0\n1 1 0\n3 0 1\n"),
    "city out of range": cities("1 0 0\n2 1 0\n9 0 1\n"),
    "city zero": cities("0 0 0\n1 1 0\n2 0 1\n"),
    "negative city": cities("-2 0 0\n1 1 0\n2 0 1\n"),
    "half a city": cities("1.5 0 0\n2 1 0\n3 0 1\n"),
    "one city too many": cities(THREE + "4 1 1\n"),
    "unknown type": cities(THREE, kind="EUC_9D"),
    "infinite distance": cities("1 1e308 0\n2 -1e308 0\n3 0 1\n"),
    "squares that overflow": cities("1 1e200 0\n2 0 0\n3 0 1\n", kind="ATT"),
    "latitude of 91 degrees": cities("1 91 0\n2 1 0\n3 0 1\n", kind="GEO"),
    "longitude of -181 degrees": cities("1 0 -181\n2 1 0\n3 0 1\n", kind="GEO"),
    "terminal commands": cities("1 \x1b[31m 0\n2 1 0\n3 0 1\n"),
    "a very long line": cities("1 " + "9" * 100_000 + "x 0\n2 1 0\n3 0 1\n"),
}
GSET = {
    "nothing": "",
    "a word": "graph\n",
    "one number": "3\n",
    "three numbers": "3 1 1\n1 2 1\n",
    "no nodes": "0 0\n",
    "negative nodes": "-3 1\n1 2 1\n",
    "real nodes": "3.0 1\n1 2 1\n",
    "too many nodes": "99999999999 1\n1 2 1\n",
    "astronomic nodes": f"{'9' * 40} 1\n1 2 1\n",
    "astronomic edges": f"3 {'9' * 17}\n1 2 1\n",
    "fewer edges": "3 2\n1 2 1\n",
    "more edges": "3 1\n1 2 1\n2 3 1\n",
    "negative edges": "3 -1\n",
    "nan weight": "3 1\n1 2 nan\n",
    "infinite weight": "3 1\n1 2 inf\n",
    "overflow": "3 1\n1 2 1e400\n",
    "word for a weight": "3 1\n1 2 x\n",
    "self-loop": "3 1\n2 2 1\n",
    "doubled edge": "3 2\n1 2 1\n1 2 1\n",
    "doubled edge backwards": "3 2\n1 2 1\n2 1 1\n",
    "half a node": "3 1\n1.5 2 1\n",
    "node zero": "3 1\n0 2 1\n",
    "node beyond": "3 1\n1 4 1\n",
    "negative node": "3 1\n-1 2 1\n",
    "nan node": "3 1\nnan 2 1\n",
    "one node": "3 1\n1\n",
    "four words": "3 1\n1 2 1 1\n",
    "zero bytes": "\0\0\0",
    "a superscript": "3 1\n1 ² 1\n",
}


def refuse(read, path: Path, content: str) -> str:
    path.write_text(content)
    tracemalloc.start()
    begun = time.perf_counter()
    try:
        with pytest.raises(DataError) as caught:
            read(path)
        assert tracemalloc.get_traced_memory()[1] < MAX_BYTES
    finally:
        tracemalloc.stop()
    assert time.perf_counter() - begun < 2
    return str(caught.value)


def test_there_are_sixty_malicious_files():
    assert len(TSPLIB) + len(GSET) + len(NEWS) >= 60


@pytest.mark.parametrize("name", TSPLIB)
def test_a_broken_instance_is_refused_by_name(tmp_path, name):
    said = refuse(datasets.read_tsplib, tmp_path / "own.tsp", TSPLIB[name])
    assert "own.tsp" in said
    assert len(said) < 600


@pytest.mark.parametrize("name", GSET)
def test_a_broken_graph_is_refused_by_name(tmp_path, name):
    assert "own.txt" in refuse(datasets.read_gset, tmp_path / "own.txt", GSET[name])


def test_lines_are_named(tmp_path):
    assert "line 6" in refuse(datasets.read_tsplib, tmp_path / "own", TSPLIB["infinite coordinate"])
    assert "line 3" in refuse(datasets.read_gset, tmp_path / "own", GSET["doubled edge"])


def test_cities_stand_at_their_number_whatever_the_order_of_the_lines(tmp_path):
    path = tmp_path / "own.tsp"
    path.write_text(cities("3 0 9\n1 0 0\n2 4 0\n"))
    np.testing.assert_array_equal(datasets.read_tsplib(path).coordinates, [[0, 0], [4, 0], [0, 9]])
    assert datasets.read_tsplib(path).distances[0].tolist() == [0, 4, 9]


@pytest.mark.parametrize("path", ["/dev/zero", "/", "nowhere"])
def test_what_is_no_file_is_not_read(path):
    for read in (datasets.read_tsplib, datasets.read_gset):
        with pytest.raises(DataError):
            read(path)


NEWS = ("nan", "inf", "0", "-3", "", "many")


@pytest.mark.parametrize("value", NEWS)
def test_news_with_an_impossible_count_is_refused(tmp_path, monkeypatch, value):
    header = ",".join(["url", "timedelta", *(f"f{i}" for i in range(58)), "shares"])
    rows = [",".join(["u", "1", *["0.5"] * 58, str(10 + i)]) for i in range(20)]
    rows[3] = ",".join(["u", "1", *["0.5"] * 58, value])
    folder = tmp_path / "online_news_popularity"
    folder.mkdir()
    (folder / "OnlineNewsPopularity.csv").write_text("\n".join([header, *rows]))
    with pytest.raises(DataError, match="OnlineNewsPopularity"):
        tabular.load_news(Lookup(data=tmp_path, download=False), as_published=False)


def test_a_refusal_names_its_file_once(tmp_path):
    said = refuse(datasets.read_tsplib, tmp_path / "own", TSPLIB["nan weight"])
    assert said.count("own") == 1
    assert said.endswith("number.")
