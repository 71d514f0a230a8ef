"""Two processes that start a run in one directory at the same time, one of them held up on the way.

    python benchmarks/trust_creators.py          # 200 pairs
    python benchmarks/trust_creators.py --quick  # 20

One of the two waits at a random place: before it looks whether the directory is free, between that and its
lock, or between its lock and its first file. Exactly one may win, the other is told so, and what is there
afterwards is the run of the winner, whole.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

from trust_crashes import ROWS, Story

from steppe.errors import StorageError
from steppe.run.storage.directory import RunDirectory
from steppe.run.storage.shards import open_parts

PLACES = ("_check_is_free", "lock", "commit")
REFUSED, WON = 3, 0


def start(story: Story, path: Path, name: str, place: str | None, seconds: float) -> int:
    """Start a process that makes a run; it is held up for so long when it gets to a place."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the child computes nothing
        child = os.fork()
    if child:
        return child
    if place is not None:
        real = getattr(RunDirectory, place)

        def held_up(*arguments: object) -> object:
            time.sleep(seconds)
            return real(*arguments)

        setattr(RunDirectory, place, held_up)
    code = 70
    try:
        directory = RunDirectory(path)
        directory.create(story.record.model_copy(update={"metadata": {"made by": name}}))
        story.commit(directory, 0)
        code = WON
    except StorageError:
        code = REFUSED
    finally:
        os._exit(code)


def main() -> None:
    """Print what was found, and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    number, rng = 20 if options.quick else 200, random.Random(options.seed)
    found: Counter[str] = Counter({"pairs": 0, "not exactly one": 0, "damaged": 0, "of the loser": 0})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        story = Story(folder)
        for pair in range(number):
            path, place = folder / str(pair), rng.choice(PLACES)
            who = ("a", "b") if rng.random() < 0.5 else ("b", "a")
            children = {who[0]: start(story, path, who[0], place, rng.uniform(0.001, 0.05))}
            children[who[1]] = start(story, path, who[1], None, 0.0)
            codes = {one: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for one, pid in children.items()}
            found["pairs"] += 1
            found["not exactly one"] += sorted(codes.values()) != [WON, REFUSED]
            directory = RunDirectory(path)
            winner = directory.record().metadata["made by"]
            found["of the loser"] += codes[str(winner)] != WON
            found["damaged"] += directory.problems() != [] or open_parts([directory]).ends != [ROWS]
            found[f"the one held up before {place} has won"] += codes[who[0]] == WON
    print(*(f"{count} {what}" for what, count in found.items()), sep="\n")
    print(json.dumps(found))
    sys.exit(1 if found["not exactly one"] or found["damaged"] or found["of the loser"] else 0)


if __name__ == "__main__":
    main()
