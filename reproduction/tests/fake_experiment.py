"""An experiment of three cheap pieces, for tests of the driver; as a program it is the command line with it.

FAKE_SECONDS in the environment says how long a piece sleeps, FAKE_MARK a file it makes when it begins.
"""

import json
import os
import sys
import time
import types
from functools import partial
from pathlib import Path

import numpy as np

from steppe.results import Column, Estimate, Table, Verdict
from steppe_edlp import catalogue
from steppe_edlp.catalogue import Experiment
from steppe_edlp.request import Findings

NAME = "fake"
EXPERIMENT = Experiment(NAME, "Squares", "Are squares positive?", ("dula", "dmala"))
CALLS: list[str] = []


def square(number):
    CALLS.append(str(number))
    if mark := os.environ.get("FAKE_MARK"):
        Path(mark).touch()
    time.sleep(float(os.environ.get("FAKE_SECONDS", "0")))
    return {"square": number * number, "row": np.arange(number, dtype=float) / 3}


def run(request, work):
    seeds = request.seeds(6)
    found = work.all({f"piece-{seed}": partial(square, seed) for seed in seeds}, at_once=1)
    rows = [{"seed": seed, "square": found[f"piece-{seed}"]["square"]} for seed in seeds]
    columns = [Column(key="seed", label="seed"), Column(key="square", label="square")]
    total = sum(float(one["row"].sum()) for one in found.values())
    return Findings(
        verdicts=[
            Verdict(
                claim="Squares are positive.",
                outcome="holds",
                sentence="Yes.",
                estimate=Estimate(value=total),
            )
        ],
        tables=[Table(key="squares", title="Squares", columns=columns, rows=rows)],
        arrays={"rows": np.concatenate([one["row"] for one in found.values()])},
        seeds=seeds,
    )


def install(setitem=dict.__setitem__):
    """Make the experiment known; `setitem` may be pytest's, which takes it back."""
    module = types.ModuleType(f"steppe_edlp.{NAME}.run")
    module.run = run
    setitem(sys.modules, module.__name__, module)
    setitem(catalogue.EXPERIMENTS, NAME, EXPERIMENT)


def without_times(path):
    """The bytes of a results file apart from when and how long."""
    content = json.loads(path.read_text())
    content["provenance"] = {**content["provenance"], "started": "", "seconds": 0.0}
    return json.dumps(content)


if __name__ == "__main__":
    from steppe.cli import main

    install()
    main(sys.argv[1:])
