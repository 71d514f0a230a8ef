"""Record `steppe reproduce`: results in docs/results/, figures of the theory beside this script.

python docs/figures/reproduce.py [--scale full]
"""

import shutil
import sys
import tempfile
from pathlib import Path

from steppe.cli import main

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"
EXPERIMENTS = ("bernoulli", "theory")


def record(out: Path) -> None:
    for name in EXPERIMENTS:
        shutil.copy(out / name / "results.json", RESULTS / f"reproduce_{name}.json")
    for figure in sorted((out / "theory" / "figures").glob("*.svg")):
        shutil.copy(figure, HERE / f"theory_{figure.name}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(["reproduce", *EXPERIMENTS, "--out", scratch, *sys.argv[1:]])
        record(Path(scratch))
