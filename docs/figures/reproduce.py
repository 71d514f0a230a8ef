"""Record `steppe reproduce`: results in docs/results/, figures of the theory beside this script.

python docs/figures/reproduce.py DIRECTORY...    # what `steppe reproduce ... --out DIRECTORY` has written

Every experiment found in the directories is recorded under its own name and replaces what was recorded
before; the protocol `published` and every instance have a name of their own beside it. `python
docs/generate.py` then writes the verdicts into the page of claims.
"""

import json
import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"
MOST_BYTES = 2**20


def record(experiment: Path) -> Path:
    """Copy the results of one experiment, and its figures if it is the one about theory."""
    source = experiment / "results.json"
    if source.stat().st_size > MOST_BYTES:
        raise SystemExit(f"{source} has more than {MOST_BYTES} bytes; the repository takes less.")
    if experiment.name == "theory":
        for figure in sorted((experiment / "figures").glob("*.svg")):
            shutil.copy(figure, HERE / f"theory_{figure.name}")
    return Path(shutil.copy(source, RESULTS / f"reproduce_{name_of(source)}.json"))


def name_of(source: Path) -> str:
    """The experiment, and what was asked of it beside its default: `bnn_compas`, `bernoulli_published`."""
    recorded = json.loads(source.read_text(encoding="utf-8"))
    instance = re.search(r"--instance (\S+)", recorded["provenance"]["command"])
    tables = [] if instance is None else [word.split(":")[0] for word in instance[1].split(",")]
    protocol = [] if recorded["protocol"] == "sound" else [recorded["protocol"]]
    return "_".join([recorded["name"], *protocol, *tables])


if __name__ == "__main__":
    for directory in map(Path, sys.argv[1:]):
        for results in sorted(directory.glob("*/results.json")):
            print(record(results.parent))
