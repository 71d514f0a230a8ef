"""A run directory is bound together: what does not belong to it is named, refused and flagged."""

import copy
import hashlib
import json
import os
import pickle
import shutil
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from resealing import change_document, change_line, read_lines, write_journal
from small_runs import digest, small_run

import steppe
from steppe.cli import main
from steppe.errors import (
    DamagedRunError,
    DamagedRunWarning,
    RunError,
    RunMismatchError,
    SteppeError,
    StorageError,
)
from steppe.run import driver, engine
from steppe.run.describe import check_same_run
from steppe.run.storage.directory import RunDirectory
from steppe.run.storage.durable import read_json
from steppe.run.storage.journal import MARK_BYTES

NUM_COMMITS = 4
HEX = str.maketrans("0123456789abcdef", "123456789abcdef0")


@pytest.fixture(scope="module")
def committed(tmp_path_factory) -> Path:
    """A run of four commits of 50 rows."""
    path = tmp_path_factory.mktemp("committed") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "COMMIT_SECONDS", 0.0)
        patch.setattr(engine, "CHUNK_SECONDS", 1e9)
        patch.setattr(engine, "FIRST_CHUNK_ROWS", 50)
        patch.setattr(engine, "MAX_CAPACITY", 50)
        small_run(out=path)
    return path


@pytest.fixture(scope="module")
def foreign(tmp_path_factory) -> Path:
    """Another run of the same shape."""
    path = tmp_path_factory.mktemp("foreign") / "run"
    small_run(steppe.edmala(step_size=0.3), out=path)
    return path


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("levels", {"dtype": "<f4"}, "levels have shape [4, 1] and type <f4 for 4 sites"),
        ("levels", {"shape": [4, 2]}, "levels have shape [4, 2] and type |u1 for 4 sites"),
        ("levels", {"shape": [4, 2, 2, 1]}, "levels has shape [4, 2, 2, 1] for 4 chains"),
        ("levels", {"shape": [4, 2, 1]}, None),  # of replicas
        ("center", {"shape": [4, 4, 1]}, "center has shape [4, 4, 1] for 4 chains"),
        ("log_density", {"dtype": "<f8"}, "log_density has type <f8 in a run of float32"),
        ("num_flips", {"shape": [3]}, "num_flips has shape [3] for 4 chains"),
    ],
)
def test_a_column_that_no_such_run_has_is_named(committed, name, changes, said):
    look, record = RunDirectory(committed).look("quick"), RunDirectory(committed).record()
    opening = look.journal.opening
    assert opening is not None
    assert list(opening.name_misfits(record)) == []
    columns = {column.name: column for column in opening.columns}
    made = columns.get(name, columns["log_density"].model_copy(update={"name": name}))
    columns[name] = made.model_copy(update=changes)
    misfits = list(opening.model_copy(update={"columns": [*columns.values()]}).name_misfits(record))
    assert misfits[:1] == ([] if said is None else [said])


def test_a_run_that_keeps_no_draws_needs_no_levels_and_one_that_does_needs_them(committed):
    record, opening = RunDirectory(committed).record(), RunDirectory(committed).look("quick").journal.opening
    assert opening is not None
    columns = [column for column in opening.columns if column.name != "levels"]
    without = opening.model_copy(update={"columns": columns})
    assert next(without.name_misfits(record)).startswith("rows have ")
    assert not [*without.name_misfits(record.model_copy(update={"keep": "stats"}))]


def test_what_differs_is_said_of_the_run_on_disk_and_of_the_one_that_is_asked_for(committed):
    record = RunDirectory(committed).record()
    other = record.model_copy(update={"keep": "stats"})
    with pytest.raises(RunMismatchError, match="on disk has keep 'draws', this one has 'stats'"):
        check_same_run(record, other, allow_other_version=False)


def test_another_precision_is_named_before_the_numbers_that_differ_by_it(committed):
    record = RunDirectory(committed).record()
    step_size = {**record.parameters, "step_size": 0.2}
    other = record.model_copy(update={"dtype": "float64", "parameters": step_size})
    with pytest.raises(RunMismatchError, match="on disk has dtype 'float32', this one has 'float64'"):
        check_same_run(record, other, allow_other_version=False)


def test_a_run_in_memory_is_saved_once_and_as_it_is(committed, tmp_path):
    run = small_run(num_draws=20)
    run.save(tmp_path / "saved")
    assert digest(steppe.open_run(tmp_path / "saved")) == digest(run)
    with pytest.raises(RunError, match="made by `sample` in this process"):
        steppe.open_run(committed).save(tmp_path / "again")


def test_a_resumed_run_keeps_its_blocks(tmp_path):
    small_run(num_draws=20, chain_block=2, out=tmp_path / "run")
    small_run(num_draws=30, resume=True, out=tmp_path / "run")
    assert RunDirectory(tmp_path / "run").record().chain_block == 2


def test_a_directory_in_order_is_looked_at_once(committed, monkeypatch):
    looks, directory = [], RunDirectory(committed)
    look = directory.look
    monkeypatch.setattr(directory, "look", lambda depth: looks.append(depth) or look(depth))
    assert directory.examine() == ([], [])
    assert looks == ["all"]


def check_refused(path: Path) -> None:
    """Named by `verify`, refused by `resume`, flagged by `open_run`."""
    assert RunDirectory(path).problems()
    with pytest.raises(StorageError):
        small_run(out=path, resume=True)
    check_flagged(path)


def check_flagged(path: Path) -> None:
    """Reading raises, or says what is wrong; never fewer rows without a word."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            run = steppe.open_run(path)
            num_rows, problems = run.trace.num_rows, run.problems
        except SteppeError:
            return
    is_warned = any(issubclass(one.category, DamagedRunWarning) for one in warned)
    assert problems
    assert is_warned or num_rows == 200


# ---- every field ---------------------------------------------------------------------------------------


def find_places(content: Any, place: tuple = ()) -> Iterator[tuple]:
    """Every place in a document that holds something other than a place."""
    inside = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in inside:
        if isinstance(value, dict | list) and value:
            yield from find_places(value, (*place, key))
        else:
            yield (*place, key)


def alter(value: Any) -> Any:
    """Something else of the same kind."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value.translate(HEX) if set(value) & set("0123456789abcdef") else f"{value}x"
    return [*value, 1] if isinstance(value, list) else {**value, "more": 1}


def alter_at(content: Any, place: tuple) -> None:
    for key in place[:-1]:
        content = content[key]
    content[place[-1]] = alter(content[place[-1]])


def places_of(document: str, committed: Path) -> list[tuple]:
    if document.endswith(".json"):
        return list(find_places(read_json(committed / document)))
    return list(find_places(read_lines(committed)[int(document)]))


@pytest.mark.parametrize("document", ["run.json", "acknowledged.json", "0", "1", "2", str(NUM_COMMITS)])
def test_every_field_altered_and_sealed_again_is_named_refused_and_flagged(tmp_path, committed, document):
    places = places_of(document, committed)
    assert len(places) >= 3
    for number, place in enumerate(places):
        path = shutil.copytree(committed, tmp_path / str(number))

        def change(content: Any, place: tuple = place) -> None:
            before = copy.deepcopy(content)
            alter_at(content, place)
            assert content != before

        if document.endswith(".json"):
            change_document(path / document, change)
        else:
            change_line(path, int(document), change)
        problems = RunDirectory(path).problems("quick")
        assert problems, place
        if number % 7 == 0:  # a resume evaluates the target
            check_refused(path)
        else:
            with pytest.raises(StorageError):
                RunDirectory(path).find_starts()
            with pytest.raises(StorageError):
                steppe.open_run(path)


MEANINGFUL = {
    "index": 1,
    "first_row": 1,
    "num_rows": -7,
    "offset": 8,
    "bytes": -1,
    "rows": "0" * 64,
    "chains": "0" * 64,
    "constant": [],
    "seconds": -1e9,
}


@pytest.mark.parametrize(
    ("field", "number"),
    [
        (field, number)
        for field in MEANINGFUL
        for number in (1, 2, NUM_COMMITS)
        if field != "chains" or number == NUM_COMMITS  # those of old commits are not kept
    ],
)
def test_a_field_with_a_meaning_is_seen_even_if_the_whole_journal_is_sealed_again(
    tmp_path, committed, field, number
):
    path = shutil.copytree(committed, tmp_path / "run")
    journal = read_lines(path)
    value = MEANINGFUL[field]
    journal[number][field] = journal[number][field] + value if isinstance(value, int | float) else value
    write_journal(path, journal)
    assert RunDirectory(path).problems()
    if field in ("rows", "chains"):
        check_flagged(path)  # as if the bytes were damaged: what was there before them is given
    else:
        check_refused(path)


# ---- every kind ----------------------------------------------------------------------------------------


def replace_record(path: Path, foreign: Path) -> None:
    shutil.copy(foreign / "run.json", path / "run.json")


def replace_journal(path: Path, foreign: Path) -> None:
    shutil.copy(foreign / "journal.jsonl", path / "journal.jsonl")


def replace_acknowledged(path: Path, foreign: Path) -> None:
    shutil.copy(foreign / "acknowledged.json", path / "acknowledged.json")


def take_an_older_journal(path: Path, _: Path) -> None:
    lines = (path / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (path / "journal.jsonl").write_bytes(b"".join(lines[:-1]))


def drop_a_line(path: Path, _: Path) -> None:
    lines = (path / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (path / "journal.jsonl").write_bytes(b"".join(lines[:2] + lines[3:]))


def drop_a_line_and_seal(path: Path, _: Path) -> None:
    lines = read_lines(path)
    write_journal(path, lines[:2] + lines[3:])


def swap_lines_and_seal(path: Path, _: Path) -> None:
    lines = read_lines(path)
    lines[1], lines[2] = lines[2], lines[1]
    write_journal(path, lines)


def take_back_rows_and_seal(path: Path, _: Path) -> None:
    lines = read_lines(path)
    lines[-1]["num_rows"] -= 7
    write_journal(path, lines)


def take_foreign_chains_and_seal(path: Path, foreign: Path) -> None:
    """Chains of another run with the digest that they have."""
    lines = read_lines(path)
    theirs = read_lines(foreign)[-1]
    name = f"chains-{theirs['index'] % 2}.bin"
    shutil.copy(foreign / name, path / f"chains-{lines[-1]['index'] % 2}.bin")
    lines[-1]["chains"] = theirs["chains"]
    write_journal(path, lines)


def take_chains_of_the_commit_before_and_seal(path: Path, _: Path) -> None:
    lines = read_lines(path)
    shutil.copy(path / "chains-1.bin", path / "chains-0.bin")
    lines[-1]["chains"] = lines[-2]["chains"]
    write_journal(path, lines)


def claim_format_99(path: Path, _: Path) -> None:
    lines = read_lines(path)
    lines[0]["format"] = 99
    write_journal(path, lines)


def claim_another_shape(path: Path, _: Path) -> None:
    lines = read_lines(path)
    lines[0]["columns"][0]["shape"] = [4, 2]
    write_journal(path, lines)


def claim_another_type(path: Path, _: Path) -> None:
    lines = read_lines(path)
    lines[0]["columns"][1]["dtype"] = "<i4"
    write_journal(path, lines)


def forget_chains(path: Path, _: Path) -> None:
    lines = read_lines(path)
    for line in lines[1:]:
        line["chains"] = None
    write_journal(path, lines)


def swap_documents(path: Path, _: Path) -> None:
    (path / "run.json").rename(path / "x")
    (path / "acknowledged.json").rename(path / "run.json")
    (path / "x").rename(path / "acknowledged.json")


KINDS = [
    replace_record,
    replace_journal,
    replace_acknowledged,
    take_an_older_journal,
    drop_a_line,
    drop_a_line_and_seal,
    swap_lines_and_seal,
    take_back_rows_and_seal,
    take_foreign_chains_and_seal,
    take_chains_of_the_commit_before_and_seal,
    claim_format_99,
    claim_another_shape,
    claim_another_type,
    swap_documents,
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_does_not_belong_together_is_named_refused_and_flagged(tmp_path, committed, foreign, kind):
    path = shutil.copytree(committed, tmp_path / "run")
    kind(path, foreign)
    check_refused(path)


def test_a_run_whose_chains_are_not_kept_is_read_and_not_continued(tmp_path, committed):
    path = shutil.copytree(committed, tmp_path / "run")
    forget_chains(path, path)
    assert steppe.open_run(path).trace.num_rows == 200
    with pytest.raises(DamagedRunError, match="cannot be continued"):
        small_run(out=path, resume=True)


def test_an_older_copy_of_what_is_acknowledged_is_named_and_loses_nothing(tmp_path, committed):
    path = shutil.copytree(committed, tmp_path / "run")
    lines = (path / "journal.jsonl").read_bytes().splitlines()
    seal = json.loads(lines[1])["sha256"]
    change_document(path / "acknowledged.json", lambda content: content.update(index=1, commit=seal))
    assert any("older copy" in problem for problem in RunDirectory(path).problems())
    run = steppe.open_run(path)
    assert run.trace.num_rows == 200
    assert run.problems
    with pytest.warns(DamagedRunWarning, match="older copy"):
        resumed = small_run(out=path, resume=True)
    assert digest(resumed) == digest(small_run())
    assert resumed.problems == []


# ---- crafted files -------------------------------------------------------------------------------------


def bomb(path: Path) -> bytes:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("levels.npy", bytes(10_000_000))
    return path.read_bytes()


def huge_header(path: Path) -> bytes:
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)}
        )
    return path.read_bytes()


CONTENTS = {
    "nothing": lambda path: b"",
    "a list": lambda path: b"[]\n",
    "an object": lambda path: b"{}\n",
    "null": lambda path: b"null\n",
    "a number": lambda path: b"3\n",
    "deep": lambda path: b"[" * 100_000 + b"\n",
    "deep objects": lambda path: b'{"a":' * 100_000 + b"\n",
    "a long number": lambda path: b"1" * 10_000 + b"\n",
    "not text": lambda path: b"\xff\xfe\x00\n" * 100,
    "zeros": lambda path: bytes(5_000),
    "lines": lambda path: b"\n" * 1_000,
    "a bomb": bomb,
    "a pickle": lambda path: pickle.dumps({"x": [1, 2]}),
    "a huge header": huge_header,
}
FILES = ["run.json", "acknowledged.json", "journal.jsonl", "rows.bin", "chains-0.bin", "chains-1.bin"]


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("file", FILES)
def test_a_file_of_another_kind_is_named_and_ends_in_no_traceback(tmp_path, committed, file, content):
    path = shutil.copytree(committed, tmp_path / "run")
    (path / file).write_bytes(CONTENTS[content](tmp_path / "made"))
    problems, unfinished = RunDirectory(path).examine()
    assert any(file in sentence for sentence in problems + unfinished)
    if file != "chains-1.bin":  # those of the commit before the last
        check_flagged(path)


@pytest.mark.parametrize("file", FILES)
def test_a_pipe_in_place_of_a_file_is_named_and_nobody_waits_at_it(tmp_path, committed, file):
    path = shutil.copytree(committed, tmp_path / "run")
    (path / file).unlink()
    os.mkfifo(path / file)
    problems, unfinished = RunDirectory(path).examine()
    assert any(file in sentence for sentence in problems + unfinished)
    if file != "chains-1.bin":
        check_flagged(path)
        with pytest.raises(SystemExit):
            main(["watch", str(path), "--once"])


CLAIMS = {
    "rows without end": lambda lines: lines[1].update(num_rows=10**13),
    "rows as a fraction": lambda lines: lines[1].update(num_rows=1e13),
    "rows below none": lambda lines: lines[1].update(num_rows=-1),
    "constant log-density": lambda lines: lines[1].update(num_rows=2**31, constant=["log_density"]),
    "unknown constants": lambda lines: lines[1].update(constant=["x" * 100]),
    "bytes without end": lambda lines: lines[1].update(bytes=2**62),
    "a column without end": lambda lines: lines[0]["columns"][0].update(shape=[4, 2**39]),
    "a column that is not": lambda lines: lines[0]["columns"][0].update(shape=[4, -1]),
    "objects": lambda lines: lines[0]["columns"][0].update(dtype="|O8"),
    "other scripts' digits": lambda lines: lines[0]["columns"][0].update(dtype="<f²"),
    "a name that leads elsewhere": lambda lines: lines[0]["columns"][0].update(name="../levels"),
    "columns twice": lambda lines: lines[0].update(columns=lines[0]["columns"] * 2),
    "no columns": lambda lines: lines[0].update(columns=[]),
    "no chains": lambda lines: lines[0].update(chains=[]),
    "nothing but an opening": lambda lines: lines.__delitem__(slice(1, None)),
    "no opening": lambda lines: lines.__delitem__(0),
    "a list as a digest": lambda lines: lines[1].update(rows=[]),
    "unknown fields": lambda lines: lines[1].update(more=1),
    "software as a list": lambda lines: lines[1].update(software=[1]),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_journal_that_claims_what_cannot_be_is_named_and_refused(tmp_path, committed, claim):
    path = shutil.copytree(committed, tmp_path / "run")
    lines = read_lines(path)
    CLAIMS[claim](lines)
    write_journal(path, lines)
    check_refused(path)


def test_levels_that_the_domain_does_not_have_are_refused_whatever_their_digest(tmp_path):
    target = steppe.Target(lambda x: -(x**2).sum(), steppe.Ordinal(3, [0.0, 0.5, 2.0]))
    counts = {"num_draws": 20, "num_warmup": 5}
    steppe.sample(target, steppe.gibbs(), key=jax.random.key(0), out=tmp_path / "run", **counts)
    rows, lines = tmp_path / "run" / "rows.bin", read_lines(tmp_path / "run")
    content = rows.read_bytes()[:MARK_BYTES] + b"\xff" + rows.read_bytes()[MARK_BYTES + 1 :]
    rows.write_bytes(content)
    lines[1]["rows"] = hashlib.sha256(content[: lines[1]["bytes"]]).hexdigest()
    write_journal(tmp_path / "run", lines)
    with pytest.raises(DamagedRunError, match="does not have"):
        steppe.open_run(tmp_path / "run").trace  # noqa: B018


@pytest.mark.parametrize("verb", ["verify", "diagnose", "report", "watch", "merge", "resume"])
@pytest.mark.parametrize("what", [*CLAIMS, *(kind.__name__ for kind in KINDS)])
def test_no_verb_ends_in_a_traceback(tmp_path, committed, foreign, what, verb, capsys):
    path = shutil.copytree(committed, tmp_path / "run")
    if what in CLAIMS:
        lines = read_lines(path)
        CLAIMS[what](lines)
        write_journal(path, lines)
    else:
        next(kind for kind in KINDS if kind.__name__ == what)(path, foreign)
    more = {"watch": ["--once"], "merge": ["--out", str(tmp_path / "merged")]}.get(verb, [])
    with pytest.raises(SystemExit) as stop:
        main([verb, str(path), *more])
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err + shown.out
    if verb == "report" and stop.value.code == 0:
        assert "Damaged" in (path / "report.html").read_text(encoding="utf-8")
    else:
        assert stop.value.code in ((0, 3) if verb == "watch" else (1, 2, 3))
