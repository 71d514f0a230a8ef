"""An experiment of three cheap parts, for tests of the engine; as a program it is the command line with it.

FAKE_SECONDS in the environment says how long a component sleeps, FAKE_MARK a file it makes when it begins.
"""

import json
import os
import sys
import time
import types
from functools import partial
from pathlib import Path

import numpy as np

from steppe_edlp.experiment import EXPERIMENTS, Experiment
from steppe_edlp.request import Found

NAME = "fake"
EXPERIMENT = Experiment.model_validate(
    {
        "name": NAME,
        "title": "Squares",
        "question": "Are squares positive?",
        "samplers": ("dula", "dmala"),
        "sizes": {"quick": {}, "full": {}},
        "tables": {
            "squares": {
                "title": "Squares",
                "columns": [{"key": "seed", "label": "seed"}, {"key": "square", "label": "square"}],
            }
        },
        "claims": [
            {"claim": "Squares are positive.", "sentence": "Yes.", "estimate": "total", "is_exact": True}
        ],
    }
)
CALLS: list[str] = []


def square(number):
    CALLS.append(str(number))
    if mark := os.environ.get("FAKE_MARK"):
        Path(mark).touch()
    time.sleep(float(os.environ.get("FAKE_SECONDS", "0")))
    return {"square": number * number, "row": np.arange(number, dtype=float) / 3}


def run(experiment, request, work):
    seeds = request.seeds(6)
    found = work.all({f"part-{seed}": partial(square, seed) for seed in seeds}, at_once=1)
    rows = [{"seed": seed, "square": found[f"part-{seed}"]["square"]} for seed in seeds]
    return Found(
        rows={"squares": rows},
        facts={"total": sum(float(one["row"].sum()) for one in found.values())},
        arrays={"rows": np.concatenate([one["row"] for one in found.values()])},
        seeds=seeds,
    )


def install(setitem=dict.__setitem__):
    """Make the experiment known; `setitem` may be pytest's, which takes it back."""
    module = types.ModuleType(f"steppe_edlp.{NAME}.run")
    vars(module)["run"] = run
    setitem(sys.modules, module.__name__, module)
    setitem(EXPERIMENTS, NAME, EXPERIMENT)


def without_times(path):
    """The bytes of a results file apart from when and how long."""
    content = json.loads(path.read_text())
    content["provenance"] = {**content["provenance"], "started": "", "seconds": 0.0}
    return json.dumps(content)


if __name__ == "__main__":
    from steppe.cli import main

    install()
    main(sys.argv[1:])
