"""Record the paper, going on from what is recorded.

    python docs/record_paper.py --data DIR                  # runs what is missing; stop it at any time
    python docs/record_paper.py --data DIR --only bnn eta   # only these experiments
    python docs/record_paper.py --data DIR --again theory   # records a short experiment anew
    python docs/record_paper.py --data DIR --assemble       # runs nothing: tables of the cells that are there

Long experiments are recorded cell by cell: experiment × table × sampler × seed is one file below
docs/results/cells. An interruption loses the cell that was running, and of a long one only what came after
its last checkpoint. Cells of other code are refused unless `--other-code` is given. Short experiments are
kept in out/record until they are finished. Both end as docs/results/reproduce_*.json, and `python
docs/generate.py` then writes the pages.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from steppe.atomic import write_atomically
from steppe.errors import SteppeError
from steppe.results import read_results
from steppe_edlp.engine import carry_out, find_experiments
from steppe_edlp.record import Record
from steppe_edlp.request import Request

HERE = Path(__file__).parent
RESULTS = HERE / "results"
CELLS = RESULTS / "cells"
UNFINISHED = HERE.parent / "out" / "record"
MAX_BYTES = 2**20
AS_PUBLISHED = {"protocol": "published", "scale": "full"}
PLAN: tuple[tuple[str, dict[str, Any]], ...] = (
    ("theory", {"scale": "quick"}),
    ("bernoulli", AS_PUBLISHED),
    ("bnn", {**AS_PUBLISHED, "instance": "compas", "num_seeds": 1}),
    ("tsp", AS_PUBLISHED),
    ("flatness", {"scale": "quick"}),
    ("eta", {"scale": "quick"}),
    ("bnn", {**AS_PUBLISHED, "instance": "compas", "num_seeds": 5}),
    ("bernoulli", {"scale": "full"}),
    ("eta", {**AS_PUBLISHED, "num_seeds": 1}),
    ("runtime", AS_PUBLISHED),
    ("tsp", {"scale": "full"}),
    ("ising", {"scale": "full"}),
    ("ising", AS_PUBLISHED),
    ("budget", {"scale": "full"}),
    ("bnn", {"scale": "quick"}),
    ("runtime", {"scale": "quick"}),
    ("rbm", {"scale": "quick", "num_seeds": 20}),
    ("rbm", AS_PUBLISHED),
    ("bnn", {**AS_PUBLISHED, "instance": "compas@printed", "num_seeds": 1}),
    ("bnn", {**AS_PUBLISHED, "instance": "news", "num_seeds": 1}),
    ("bnn", {**AS_PUBLISHED, "instance": "adult", "num_seeds": 1}),
    ("eta", {**AS_PUBLISHED, "num_seeds": 3}),
    ("bnn", {**AS_PUBLISHED, "instance": "news,adult", "num_seeds": 3}),
    ("bnn", {**AS_PUBLISHED, "instance": "blog", "num_seeds": 1}),
)
# Of a short experiment that looks at data where they are given.
WITH_DATA = ("budget",)
# Put together whatever cells there are: all tables, as many seeds as any of them has.
WHOLE = {
    "bnn": {**AS_PUBLISHED, "instance": "compas,compas@printed,news,adult,blog", "num_seeds": 5},
    "eta": {**AS_PUBLISHED, "num_seeds": 3},
    "rbm": AS_PUBLISHED,
    "runtime": AS_PUBLISHED,
}


def make_request(asked: dict[str, Any], name: str, data: Path) -> Request:
    """The request of a step; what is recorded cell by cell needs data, and some of the rest."""
    return Request(**asked, data=data if is_celled(name, asked) or name in WITH_DATA else None)


def is_celled(name: str, asked: dict[str, Any]) -> bool:
    """Whether a step is recorded cell by cell."""
    return name in WHOLE and asked.get("protocol") == "published"


def run(name: str, asked: dict[str, Any], data: Path, *, other_code: bool, again: list[str]) -> None:
    """Carry out one step: cells into the record, or a whole experiment and its results."""
    request = make_request(asked, name, data)
    (experiment,) = find_experiments([name], request)
    if is_celled(name, asked):
        with tempfile.TemporaryDirectory() as out:
            carry_out(experiment, request, Path(out), record=Record(CELLS, other_code), progress=False)
        return
    label = name_results(name, request)
    if is_recorded(label) and name not in again:
        return
    carry_out(experiment, request, UNFINISHED / label, progress=False)
    keep(UNFINISHED / label / name / "results.json", label)
    shutil.rmtree(UNFINISHED / label)


def is_recorded(label: str) -> bool:
    """Whether there are results that name the commit that made them; older ones are made again."""
    path = RESULTS / f"reproduce_{label}.json"
    return path.exists() and bool(read_results(path).provenance.commit)


def assemble(data: Path, only: list[str]) -> None:
    """Write the results of every experiment from the cells that are there."""
    for name, asked in WHOLE.items():
        request = make_request(asked, name, data)
        if list((CELLS / "published-full" / name).glob("*.json")) and (not only or name in only):
            (experiment,) = find_experiments([name], request)
            with tempfile.TemporaryDirectory() as out:
                record = Record(CELLS, finished_only=True)
                carry_out(experiment, request, Path(out), record=record, progress=False)
                keep(Path(out) / name / "results.json", name_results(name, request))


def name_results(name: str, request: Request) -> str:
    """The experiment, and its protocol unless it is the sound one."""
    return name if request.is_sound else f"{name}_published"


def keep(source: Path, label: str) -> None:
    """Copy results to where they are recorded."""
    made, path = source.read_bytes(), RESULTS / f"reproduce_{label}.json"
    if len(made) > MAX_BYTES:
        raise SystemExit(f"The results of {label} have {len(made)} bytes; the repository takes fewer.")
    write_atomically(path, made)
    print(path.name, flush=True)


def main() -> int:
    """Run the plan, or put together what is there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--again", nargs="*", default=[])
    parser.add_argument("--other-code", action="store_true")
    parser.add_argument("--assemble", action="store_true")
    given = parser.parse_args()
    try:
        if given.assemble:
            assemble(given.data, given.only)
            return 0
        for name, asked in PLAN:
            if not given.only or name in given.only:
                print(name, asked, flush=True)
                run(name, asked, given.data, other_code=given.other_code, again=given.again)
    except SteppeError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
