"""Run directories after the power has failed: unsynced data and directory entries dropped at random.

    python benchmarks/trust_crashes.py          # 2400 states
    python benchmarks/trust_crashes.py --quick  # 200

Every call that changes a file or a directory is recorded while runs are started, committed, continued and
merged. A state is what may be on disk if the power fails after a random call: of writes that no `fsync` of
the file has followed any may be missing, and the last may be torn; of new, renamed and removed names that no
`fsync` of the directory has followed any may be missing. In every state all acknowledged rows must be there,
nothing may look damaged, and the run must go on. Every third state is continued while it is recorded, and
the power fails again.
"""

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import steppe
from steppe.run.storage.directory import RunDirectory
from steppe.run.storage.record import RunRecord
from steppe.run.storage.shards import merge_shards, open_parts
from steppe.targets import paper_bernoulli

ROWS, COMMITS = 10, 5
Arrays = dict[str, np.ndarray]


class Call(NamedTuple):
    """A change: `write` and `cut` of a file, `link` and `unlink` of a name, or a `sync` of either."""

    kind: str
    path: str
    first: int = 0
    content: bytes = b""
    source: str = ""


class Recorder:
    """Notes what happens to files below a folder, and when commits are acknowledged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls: list[Call] = []
        self.acknowledged: list[tuple[int, int]] = []  # (calls so far, rows)

    def note(self, kind: str, path: Any, **what: Any) -> None:
        """Note a call on a path below the folder."""
        path = str(Path(path).absolute())
        if path.startswith(f"{self.folder}{os.sep}") or path == str(self.folder):
            self.calls.append(Call(kind, path, **what))

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Put notes around the calls that change files."""
        names = ("fsync", "replace", "rename", "unlink", "mkdir", "open")
        real = {name: getattr(os, name) for name in names}
        real_open = io.open

        def fsync(number: int) -> None:
            real["fsync"](number)
            self.note("sync", Path(f"/proc/self/fd/{number}").readlink())

        def rename(source: Any, target: Any, **options: Any) -> None:
            real["rename"](source, target, **options)
            self.note("link", target, source=str(Path(source).absolute()))

        def unlink(path: Any, **options: Any) -> None:
            real["unlink"](path, **options)
            self.note("unlink", path)

        def mkdir(path: Any, *options: Any) -> None:
            real["mkdir"](path, *options)
            self.note("link", path, source="directory")

        def open_number(path: Any, flags: int, *options: Any, **more: Any) -> int:
            is_new = bool(flags & os.O_CREAT) and not Path(path).exists()
            number = real["open"](path, flags, *options, **more)
            if is_new:
                self.note("link", path, source="file")
            return number

        def open_file(path: Any, mode: str = "r", *options: Any, **more: Any) -> Any:
            if not set(mode) & set("wa+"):
                return real_open(path, mode, *options, **more)
            if not Path(path).exists():
                self.note("link", path, source="file")
            elif "w" in mode:
                self.note("cut", path)
            return Watched(real_open(path, mode, *options, **more), self, path)

        os.fsync, os.replace, os.rename, os.unlink = fsync, rename, rename, unlink
        os.mkdir, os.open, io.open = mkdir, open_number, open_file
        try:
            yield
        finally:
            for name, function in real.items():
                setattr(os, name, function)
            io.open = real_open


class Watched:
    """An open file whose changes are noted."""

    def __init__(self, file: Any, recorder: Recorder, path: Any) -> None:
        self.file, self.recorder, self.path = file, recorder, path

    def write(self, content: bytes) -> int:
        """Write, and note it."""
        self.recorder.note("write", self.path, first=self.file.tell(), content=bytes(content))
        return self.file.write(content)

    def truncate(self) -> int:
        """Cut, and note it."""
        self.recorder.note("cut", self.path, first=self.file.tell())
        return self.file.truncate()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def __enter__(self) -> "Watched":
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()


class Node:
    """A file or a directory: what is safe, and what has happened since."""

    def __init__(self, *, is_directory: bool) -> None:
        self.is_directory = is_directory
        self.safe: Any = {} if is_directory else b""
        self.since: list[Any] = []

    def now(self, chosen: list[Any] | None = None) -> Any:
        """The content with all that has happened since, or with what is chosen of it."""
        content = dict(self.safe) if self.is_directory else bytearray(self.safe)
        for change in self.since if chosen is None else chosen:
            if self.is_directory:
                name, node = change
                content.pop(name, None)
                if node is not None:
                    content[name] = node
            elif change[0] == "cut":
                content = content[: change[1]] + bytes(max(0, change[1] - len(content)))
            else:
                _, first, data = change
                content += bytes(max(0, first - len(content)))
                content[first : first + len(data)] = data
        return content

    def crash(self, rng: random.Random) -> Any:
        """What may be left of it."""
        kind = rng.randrange(4)
        chosen = {0: [], 1: list(self.since)}.get(
            kind, [change for change in self.since if rng.random() < 0.5]
        )
        if kind == 3 and chosen and not self.is_directory and chosen[-1][0] == "write":
            _, first, data = chosen[-1]
            chosen[-1] = ("write", first, data[: rng.randrange(len(data) + 1)])
        return self.now(chosen)


def replay(calls: list[Call], folder: Path, base: Path | None) -> Node:
    """The file system after some calls, from a state in which all was safe."""
    root = Node(is_directory=True)
    if base is not None:
        load(root, base)

    def find(path: str) -> Node:
        node = root
        for name in Path(path).relative_to(folder).parts:
            node = node.now()[name]
        return node

    for call in calls:
        place, name = str(Path(call.path).parent), Path(call.path).name
        if call.kind == "sync":
            node = find(call.path)
            node.safe, node.since = node.now() if node.is_directory else bytes(node.now()), []
        elif call.kind == "link":
            if call.source in ("file", "directory"):
                find(place).since.append((name, Node(is_directory=call.source == "directory")))
            else:
                # Two changes, of which one may be missing: more than file systems promise to leave undone.
                moved = find(call.source)
                find(place).since.append((name, moved))
                find(str(Path(call.source).parent)).since.append((Path(call.source).name, None))
        elif call.kind == "unlink":
            find(place).since.append((name, None))
        else:
            find(call.path).since.append((call.kind, call.first, call.content))
    return root


def load(node: Node, path: Path) -> None:
    """Take what is on disk as safe."""
    for inside in path.iterdir():
        child = Node(is_directory=inside.is_dir())
        node.safe[inside.name] = child
        if inside.is_dir():
            load(child, inside)
        else:
            child.safe = inside.read_bytes()


def store(node: Node, path: Path, rng: random.Random) -> None:
    """Write what may be left of a directory."""
    path.mkdir(parents=True)
    for name, child in node.crash(rng).items():
        if child.is_directory:
            store(child, path / name, rng)
        else:
            (path / name).write_bytes(child.crash(rng))


class Story:
    """A run of which every row and every chain is known."""

    def __init__(self, folder: Path) -> None:
        counts = {"num_chains": 4, "num_warmup": 10, "num_draws": ROWS * COMMITS * 3}
        run = steppe.sample(
            paper_bernoulli(), steppe.edmala(), key=jax.random.key(0), out=folder / "whole", **counts
        )
        self.rows: Arrays = {name: np.moveaxis(array, 1, 0) for name, array in run.trace.arrays.items()}
        directory = RunDirectory(folder / "whole")
        look = directory.open()
        assert look.journal.opening is not None
        self.record: RunRecord = directory.record()
        self.chains = directory.read_chains(look.journal.opening, look.journal.commits[-1])

    def commit(self, directory: RunDirectory, first: int) -> int:
        """Commit the next rows, and chains that fit them; return the row after them."""
        last = first + ROWS
        newest = self.rows["log_density"][last - 1].reshape(self.chains["state.log_density"].shape)
        rows = {name: array[first:last] for name, array in self.rows.items()}
        directory.commit(rows, {**self.chains, "state.log_density": newest}, last, 0.5)
        return last


def tell(story: Story, recorder: Recorder, path: Path, commits: int) -> None:
    """Start or continue a run and commit some rows."""
    with recorder.recording():
        directory = RunDirectory(path)
        if directory.exists:
            directory.lock()
            row = directory.find_starts()[0]
            directory.rewind(row)
            recorder.acknowledged.append((len(recorder.calls), row))
        else:
            directory.create(story.record)
            row = 0
        for _ in range(commits):
            row = story.commit(directory, row)
            recorder.acknowledged.append((len(recorder.calls), row))
        directory.release()


def check(story: Story, path: Path, num_rows: int, found: Counter[str]) -> None:
    """Look at a state: nothing lost, nothing damaged, and it goes on."""
    found["states"] += 1
    directory = RunDirectory(path)
    if not directory.exists:
        found["lost"] += num_rows > 0
        if not num_rows:
            directory.create(story.record)
            directory.release()
            found["before the start"] += 1
        return
    problems, unfinished = directory.examine()
    found["falsely damaged"] += bool(problems)
    found["with something unfinished"] += bool(unfinished)
    if problems:
        print(path, problems)
    look = directory.look()
    rows = look.journal.commits[-1].next_row if look.journal.commits else 0
    found["lost"] += rows < num_rows
    if rows:
        arrays = open_parts([directory]).read()
        wanted = {name: np.moveaxis(array[:rows], 0, 1) for name, array in story.rows.items()}
        found["different"] += any(arrays[name].tobytes() != wanted[name].tobytes() for name in wanted)
    directory.lock()
    start = directory.find_starts()[0]
    found["rows drawn again"] += start < num_rows
    directory.rewind(start)
    story.commit(directory, start)
    directory.release()
    problems, unfinished = RunDirectory(path).examine()
    found["damaged after going on"] += bool(problems)


def fail_once(
    story: Story, folder: Path, recorder: Recorder, base: Path | None, rng: random.Random, found: Counter[str]
) -> Path:
    """Make one state of what was recorded, and check it; return a copy of it as it was found."""
    moment = rng.randrange(len(recorder.calls) + 1)
    num_rows = max((rows for calls, rows in recorder.acknowledged if calls <= moment), default=0)
    if base is not None:  # what was acknowledged before
        num_rows = max(num_rows, recorder.acknowledged[0][1])
    state = folder / "state"
    shutil.rmtree(state, ignore_errors=True)
    store(replay(recorder.calls[:moment], recorder.folder, base), state, rng)
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(state, copy)
    check(story, state / "run", num_rows, found)
    return copy


def merge_once(story: Story, folder: Path, rng: random.Random, found: Counter[str]) -> None:
    """Let the power fail while a run is copied: the copy is there with all rows, or not at all."""
    place = folder / "merging"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    shutil.copytree(folder / "whole", place / "one")
    base = shutil.copytree(place, folder / "base", dirs_exist_ok=True)
    recorder = Recorder(place)
    with recorder.recording():
        merge_shards([place / "one"], place / "run")
    for _ in range(20):
        moment = rng.randrange(len(recorder.calls) + 1)
        state = folder / "state"
        shutil.rmtree(state, ignore_errors=True)
        store(replay(recorder.calls[:moment], place, base), state, rng)
        found["states"] += 1
        found["states of a merge"] += 1
        copied = RunDirectory(state / "run")
        found["falsely damaged"] += bool(copied.exists and copied.problems())
        if copied.exists:
            found["lost"] += open_parts([copied]).ends != [len(story.rows["log_density"])]
        else:
            found["lost"] += moment == len(recorder.calls)
            shutil.rmtree(state / "run", ignore_errors=True)
            merge_shards([state / "one"], state / "run")
    shutil.rmtree(base)


def main() -> None:
    """Print what was found, and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--states", type=int, default=2400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    number, rng = 200 if options.quick else options.states, random.Random(options.seed)
    bad = ("lost", "different", "falsely damaged", "damaged after going on")
    found: Counter[str] = Counter(dict.fromkeys(bad, 0))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        story = Story(folder)
        told = folder / "told"
        told.mkdir()
        recorder = Recorder(told)
        tell(story, recorder, told / "run", 3)
        tell(story, recorder, told / "run", 2)
        while found["states"] < number:
            copy = fail_once(story, folder, recorder, None, rng, found)
            if found["states"] % 3 == 0 and (copy / "run" / "run.json").exists():
                base = folder / "second-base"
                shutil.rmtree(base, ignore_errors=True)
                shutil.copytree(copy, base)
                again = Recorder(copy)
                tell(story, again, copy / "run", 2)
                for _ in range(3):
                    second = folder / "second"
                    shutil.rmtree(second, ignore_errors=True)
                    second.mkdir()
                    fail_once(story, second, again, base, rng, found)
                    found["states after a second failure"] += 1
            if found["states of a merge"] < found["states"] / 20:
                merge_once(story, folder, rng, found)
    print(*(f"{count} {what}" for what, count in found.items()), sep="\n")
    print(json.dumps(found))
    sys.exit(1 if any(found[name] for name in bad) else 0)


if __name__ == "__main__":
    main()
