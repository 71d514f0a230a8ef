"""Digests of the draws of every recipe on every domain, as a user's process makes them.

PYTHONPATH=tests python -m run.draw_digests            # compares with tests/run/draw_digests.json
PYTHONPATH=tests python -m run.draw_digests --write    # replaces the rows that differ, and says which

Levels are digested, not floats: they are what a change of the code must not change. Optimised programs are
what users run, so this needs a process without the quick compilation of the fast tests. Another jaxlib or
another instruction set may round differently; the file names both.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import jaxlib
import numpy as np

import steppe
from contract.cases import DOMAINS, PUBLISHED_NAMES, RECIPES, VARIANTS, target_on
from steppe.samplers import ALL_RECIPES
from steppe.targets import ising_lattice, paper_bernoulli, potts, tsp

FILE = Path(__file__).with_name("draw_digests.json")
COUNTS = {"num_chains": 5, "num_warmup": 24, "num_draws": 40, "chain_block": 4, "progress": False}
FAST = ("edmala-ragged", "gibbs-binary", "two_opt-tour")
FEATURES = ("avx", "avx2", "avx512f", "fma", "sse4_2")


def cells() -> Iterator[tuple[str, steppe.Target, object, dict]]:
    """Name, target, recipe and further options of every row of the table."""
    for name in ALL_RECIPES:
        for domain in DOMAINS:
            yield f"{name}-{domain}", target_on(domain), RECIPES[name], {}
    for name in {**PUBLISHED_NAMES, **VARIANTS}:
        yield f"{name}-ragged", target_on("ragged"), RECIPES[name], {}
    rng = np.random.default_rng(3)
    tour = tsp(coordinates=rng.uniform(size=(7, 2)))
    yield "two_opt-tour", tour, steppe.informed_permutation(), {}
    yield "all moves-tour", tour, steppe.informed_permutation(moves=("swap", "two_opt", "insert")), {}
    yield "center-tour", tour, steppe.informed_permutation(coupling_variance=0.5), {}
    yield "uniform-tour", tour, steppe.uniform_permutation(), {}
    bernoulli, lattice = paper_bernoulli(), ising_lattice((5, 5), 0.3)
    for name in ("dula", "dmala", "edula", "edmala", "edmala_glu", "gwg", "gibbs"):
        yield f"{name}-bernoulli", bernoulli, RECIPES[name], {}
        yield f"{name}-lattice", lattice, RECIPES[name], {}
    yield "chromatic_gibbs-lattice", lattice, steppe.chromatic_gibbs(), {}
    yield "swendsen_wang-lattice", lattice, steppe.swendsen_wang(), {}
    yield "chromatic_gibbs-potts", potts((4, 5), 3, 0.7), steppe.chromatic_gibbs(), {}
    options = {
        "not adapted": {"adapt": False},
        "thinned": {"thinning": 3},
        "center distance": {"adapt": steppe.Adapt(center_distance=1.0)},
        "pooled": {"adapt": steppe.Adapt(pooled=True)},
        "blocks of one": {"chain_block": 1},
    }
    for name, option in options.items():
        yield f"edmala-{name}", target_on("binary"), RECIPES["edmala"], option
    flip_rate = {"adapt": steppe.Adapt(acceptance=None, flip_rate=0.2)}
    yield "edula-flip rate", target_on("binary"), RECIPES["edula"], flip_rate


def digest(target: steppe.Target, recipe: object, options: dict) -> str:
    """SHA-256 of the stored levels of one run, warm-up included."""
    run = steppe.sample(target, recipe, key=jax.random.key(20), **{**COUNTS, **options})
    levels = np.concatenate([run.trace.levels(warmup=True), run.trace.levels()], axis=1)
    return hashlib.sha256(f"{levels.shape}".encode() + np.ascontiguousarray(levels).tobytes()).hexdigest()[
        :16
    ]


def environment() -> dict[str, str]:
    """What the last bit depends on."""
    info = Path("/proc/cpuinfo")
    flags = info.read_text().split() if info.exists() else []
    return {"jaxlib": jaxlib.version.__version__, "cpu": " ".join(name for name in FEATURES if name in flags)}


def main(arguments: list[str]) -> int:
    """Compare, or write."""
    names = [name for name in arguments if not name.startswith("--")]
    found = {name: digest(*rest) for name, *rest in cells() if not names or name in names}
    recorded = json.loads(FILE.read_text()) if FILE.exists() else {"digests": {}}
    different = [name for name in found if found[name] != recorded["digests"].get(name)]
    for name in different:
        sys.stdout.write(f"{name}: {recorded['digests'].get(name)} -> {found[name]}\n")
    if "--write" in arguments:
        record = {"environment": environment(), "digests": {**recorded["digests"], **found}}
        FILE.write_text(json.dumps(record, indent=1) + "\n")
        return 0
    sys.stdout.write(f"{len(found) - len(different)} of {len(found)} as recorded\n")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
