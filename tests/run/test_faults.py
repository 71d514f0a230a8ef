"""A run directory survives a kill between any two system calls, damage is named, and errors are typed."""

import errno
import io
import os
import random
import shutil
import warnings
from pathlib import Path

import pytest
from resealing import change_run
from small_runs import COUNTS, digest, small_run

import steppe
from steppe.errors import DamagedRunError, DamagedRunWarning, RunMismatchError, StorageError
from steppe.run import driver, engine
from steppe.run.storage.directory import RunDirectory


class SimulatedKill(BaseException):
    """Ends the process's work at once; nothing may catch it, and files stay as they are."""


class FailAt:
    """Let the n-th file-system call of a run fail, before or after it has taken effect."""

    def __init__(self, monkeypatch, number: int, failure, *, after: bool = False):
        self.left, self.failure, self.after = number, failure, after
        for name in ("fsync", "replace", "unlink", "mkdir", "rename"):
            monkeypatch.setattr(os, name, self._wrap(getattr(os, name)))
        monkeypatch.setattr(io, "open", self._wrap_open(io.open))

    def _wrap_open(self, call):
        """Opening for writing is a call that may fail, and so is every write to what was opened."""

        def wrapped(file, mode="r", *arguments, **options):
            if not set(mode) & set("wa+"):
                return call(file, mode, *arguments, **options)
            self.left -= 1
            if self.left == 0:
                raise self.failure
            opened = call(file, mode, *arguments, **options)
            return Written(opened, self._wrap(opened.write)) if "b" in mode else opened

        return wrapped

    def _wrap(self, call):
        def wrapped(*arguments, **options):
            self.left -= 1
            if self.left == 0 and not self.after:
                raise self.failure
            try:
                return call(*arguments, **options)
            finally:  # a call that fails by itself has taken effect too
                if self.left == 0 and self.after:
                    raise self.failure

        return wrapped


class Written:
    """An open file whose writes may fail."""

    def __init__(self, file, write):
        self.file, self.write = file, write

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()


def commit_often(monkeypatch):
    """Commit after every 50 rows: four commits, whatever the speed of the machine."""
    monkeypatch.setattr(driver, "COMMIT_SECONDS", 0.0)
    monkeypatch.setattr(engine, "CHUNK_SECONDS", 1e9)  # a chunk that compiles makes the next no shorter
    monkeypatch.setattr(engine, "FIRST_CHUNK_ROWS", 50)
    monkeypatch.setattr(engine, "MAX_CAPACITY", 50)


# Every opening, write, sync and rename of a start and four commits; arrays are written one by one.
NUM_CALLS = 140
# The directory of the lock is there.
HARMLESS = (3,)


@pytest.fixture(scope="module")
def uninterrupted() -> str:
    return digest(small_run())


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", range(1, 40, 3))
def test_a_kill_at_any_file_system_call_loses_nothing_committed(
    tmp_path, monkeypatch, uninterrupted, number, after
):
    commit_often(monkeypatch)
    with monkeypatch.context() as patch:
        FailAt(patch, number, SimulatedKill(), after=after)
        with pytest.raises(SimulatedKill):
            small_run(out=tmp_path / "run")
    finish(tmp_path / "run", uninterrupted)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("number", [1, 4, 9, 16, 25])
def test_an_error_of_the_disk_is_typed_and_the_run_can_be_resumed(
    tmp_path, monkeypatch, uninterrupted, code, number
):
    check_error(tmp_path, monkeypatch, uninterrupted, code, number)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, NUM_CALLS + 1))
def test_a_full_disk_at_any_call_is_typed_and_the_run_can_be_resumed(
    tmp_path, monkeypatch, uninterrupted, number
):
    check_error(tmp_path, monkeypatch, uninterrupted, errno.ENOSPC, number)


def check_error(tmp_path, monkeypatch, uninterrupted, code, number):
    commit_often(monkeypatch)
    with monkeypatch.context() as patch:
        failing = FailAt(patch, number, OSError(code, os.strerror(code)))
        if number in HARMLESS:
            small_run(out=tmp_path / "run")
        else:
            with pytest.raises(StorageError, match=r"Could not|bytes needed"):
                small_run(out=tmp_path / "run")
        assert failing.left <= 0
    finish(tmp_path / "run", uninterrupted)


def test_the_number_of_file_system_calls_is_known(tmp_path, monkeypatch):
    commit_often(monkeypatch)
    with monkeypatch.context() as patch:
        counted = FailAt(patch, 10**9, None)
        small_run(out=tmp_path / "run")
    assert 10**9 - counted.left == NUM_CALLS


def finish(path: Path, expected: str) -> None:
    """Resume to the end: the draws are those of an uninterrupted run, and nothing is left damaged."""
    finished = small_run(out=path, resume=True)
    assert digest(finished) == expected
    assert RunDirectory(path).problems() == []


@pytest.fixture(scope="module")
def committed(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("committed") / "run"
    with pytest.MonkeyPatch.context() as patch:
        commit_often(patch)
        small_run(out=path)
    return path


def damage(path: Path, rng: random.Random) -> str:
    """Flip, cut or delete one file of a run; return its name."""
    files = [p for p in sorted(path.rglob("*")) if p.is_file() and p.name != "lock"]
    victim = rng.choice(files)
    content = bytearray(victim.read_bytes())
    kind = rng.choice(("flip", "cut", "delete"))
    if kind == "delete":
        victim.unlink()
    elif kind == "cut":
        victim.write_bytes(content[: rng.randrange(len(content))])
    else:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        victim.write_bytes(content)
    return victim.name


@pytest.mark.parametrize("seed", range(60))
def test_verify_names_every_damaged_file(tmp_path, committed, seed):
    check_damage(tmp_path, committed, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60, 1060))
def test_verify_names_every_damaged_file_at_length(tmp_path, committed, seed):
    check_damage(tmp_path, committed, seed)


@pytest.mark.parametrize("file", ["run.json", "acknowledged.json"])
@pytest.mark.parametrize("change", [lambda text: text[:-1], lambda text: text.replace(b"\n ", b"\n  ", 1)])
def test_not_even_space_may_differ(tmp_path, committed, file, change):
    path = shutil.copytree(committed, tmp_path / "run")
    (path / file).write_bytes(change((path / file).read_bytes()))
    assert any(file in problem for problem in RunDirectory(path).problems())


def check_damage(tmp_path: Path, committed: Path, seed: int) -> None:
    """Named by file; read without a crash, and never fewer rows without a word."""
    path = shutil.copytree(committed, tmp_path / "run")
    name = damage(path, random.Random(seed))
    problems, unfinished = RunDirectory(path).examine()
    assert any(name in sentence for sentence in problems + unfinished), (name, problems)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            run = steppe.open_run(path)
            num_rows = run.trace.num_rows
        except steppe.errors.SteppeError:  # anything else is a crash
            return
    is_said = bool(warned) and bool(run.problems)
    assert is_said or num_rows == COUNTS["num_warmup"] + COUNTS["num_draws"]


def test_damage_to_the_newest_commit_falls_back_to_the_one_before(tmp_path, committed, uninterrupted):
    path = shutil.copytree(committed, tmp_path / "run")
    journal = path / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    with pytest.warns(DamagedRunWarning, match="not finished"):
        before = steppe.open_run(path)
    assert before.trace.num_rows < COUNTS["num_warmup"] + COUNTS["num_draws"]
    assert "not finished" in before.problems[0]
    with pytest.warns(DamagedRunWarning, match="goes on from row 150"):
        resumed = small_run(out=path, resume=True)
    assert digest(resumed) == uninterrupted
    assert resumed.problems == []
    aside = [Path(name).name for name in steppe.open_run(path).quarantined]
    assert any("journal" in name for name in aside)
    assert any("rows" in name for name in aside)


@pytest.mark.parametrize("missing", [None, "chains-0.bin", "chains-1.bin", "rows.bin", "journal.jsonl"])
def test_looking_changes_nothing(tmp_path, committed, missing):
    path = shutil.copytree(committed, tmp_path / "run")
    if missing is not None:
        (path / missing).unlink()
    before = {file: file.stat().st_mtime_ns for file in (path, *path.iterdir())}
    problems = RunDirectory(path).problems()
    assert any(missing in problem for problem in problems) if missing else not problems
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedRunWarning)
        try:
            steppe.open_run(path).trace  # noqa: B018
        except DamagedRunError:
            assert missing
    assert {file: file.stat().st_mtime_ns for file in (path, *path.iterdir())} == before


@pytest.mark.parametrize("first", [0, 100, -100])
def test_damaged_rows_are_not_given_and_those_before_them_are(tmp_path, committed, uninterrupted, first):
    path = shutil.copytree(committed, tmp_path / "run")
    content = bytearray((path / "rows.bin").read_bytes())
    content[first] ^= 1
    (path / "rows.bin").write_bytes(content)
    run = steppe.open_run(path)
    if first >= 0:  # there is nothing before the first commit
        with pytest.raises(DamagedRunError, match="rows 0 to 49"):
            run.trace  # noqa: B018
        with pytest.raises(DamagedRunError, match="cannot be continued"):
            small_run(out=path, resume=True)
        return
    with pytest.warns(DamagedRunWarning, match="rows 150 to 199"):
        assert run.trace.num_rows == 150
    with pytest.warns(DamagedRunWarning, match="goes on from row 150"):
        resumed = small_run(out=path, resume=True)
    assert digest(resumed) == uninterrupted


def test_rows_that_are_cut_short_are_the_cause_that_is_named(tmp_path, committed):
    path = shutil.copytree(committed, tmp_path / "run")
    content = (path / "rows.bin").read_bytes()
    (path / "rows.bin").write_bytes(content[: len(content) * 2 // 3])
    said = f"rows.bin has {len(content) * 2 // 3} bytes instead of {len(content)}."
    assert RunDirectory(path).problems() == [said]
    with pytest.raises(DamagedRunError, match=rf"cannot be continued\. {said}"):
        small_run(out=path, resume=True)
    with pytest.warns(DamagedRunWarning, match=said):
        assert steppe.open_run(path).trace.num_rows == 100


def test_only_one_process_writes(tmp_path):
    small_run(out=tmp_path / "run", num_draws=20)
    holder = RunDirectory(tmp_path / "run")
    holder.lock()
    with pytest.raises(StorageError, match="another process"):
        small_run(out=tmp_path / "run", resume=True)
    holder.release()
    small_run(out=tmp_path / "run", resume=True)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"recipe": steppe.edmala(step_size=0.3)}, "sampler|parameters"),
        ({"recipe": steppe.dmala()}, "recipe"),
        ({"num_chains": 5}, "num_chains"),
        ({"thinning": 2}, "thinning"),
        ({"chain_block": 2}, "chain_block"),
        ({"num_warmup": 41}, "num_warmup"),
        ({"keep": "stats"}, "keep"),
    ],
)
def test_a_run_is_not_continued_as_another(tmp_path, change, named):
    small_run(out=tmp_path / "run", num_draws=20)
    with pytest.raises(RunMismatchError, match=named):
        small_run(out=tmp_path / "run", resume=True, **change)


def test_a_new_run_never_overwrites_an_old_one(tmp_path):
    small_run(out=tmp_path / "run", num_draws=20)
    with pytest.raises(StorageError, match="already holds"):
        small_run(out=tmp_path / "run", num_draws=20)


def test_a_directory_that_is_no_run_is_called_so(tmp_path):
    with pytest.raises(steppe.errors.RunError, match=r"run\.json"):
        steppe.open_run(tmp_path)


def test_a_description_from_the_future_is_refused(tmp_path):
    small_run(out=tmp_path / "run", num_draws=20)
    change_run(tmp_path / "run", lambda content: content.update(format=99))
    with pytest.raises((RunMismatchError, DamagedRunError), match="format"):
        steppe.open_run(tmp_path / "run")
