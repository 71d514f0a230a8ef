"""Tempered chains in two processes over one: how much of the work is lost by talking to each other.

    python -m tempering_processes --out tempering_processes.json

64 ladders of 24 rungs of a ±J glass of 6³ spins, in blocks of 32 chains: in one process, then 32 ladders in
each of two that run together (`jax.distributed`). Both write run directories, whose draws must be equal. The
efficiency of processor time is that of one process over the sum of both. Every process keeps to one core, for
one alone would use both; the efficiency of wall time needs two idle ones, so the load is recorded beside it.
"""

import argparse
import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from steppe.run.storage.identity import describe_software

PROGRAM = """
import json, os, sys, time
out, port, process, draws = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[process]})
import jax
if port != "0":
    jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=process)
import numpy as np
import steppe
target = steppe.targets.spin_glass((6, 6, 6), scale=1 / 0.6)
betas = 1 / np.geomspace(20, 1, 24)
betas[-1] = 1
recipe = steppe.parallel_tempering(base=steppe.chromatic_gibbs(), inverse_temperatures=betas.tolist())

def sample(draws, out):
    steppe.sample(
        target, recipe, key=jax.random.key(0), num_chains=64, chain_block=32, num_warmup=0, num_draws=draws,
        out=out, progress=False, adapt=False,
    )

sample(8, out + "/first")  # compiles
begun, begun_wall = time.process_time(), time.perf_counter()
sample(draws, out + "/run")
print(json.dumps({"cpu": time.process_time() - begun, "wall": time.perf_counter() - begun_wall}))
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        one = launch(f"{folder}/one", 0, options.draws, [0])
        two = launch(f"{folder}/two", find_port(), options.draws, [0, 1])
        digests = [digest_draws(Path(folder) / name / "run") for name in ("one", "two")]
    record = {
        "script": f"python -m tempering_processes --draws {options.draws}",
        "software": describe_software(),
        "one": one,
        "two": two,
        "efficiency of CPU time": one[0]["cpu"] / sum(row["cpu"] for row in two),
        "efficiency of wall time": one[0]["wall"] / (2 * max(row["wall"] for row in two)),
        "load": os.getloadavg(),
        "same draws": digests[0] == digests[1],
    }
    print(json.dumps(record))
    if options.out:
        Path(options.out).write_text(json.dumps(record, indent=1))


def launch(folder: str, port: int, draws: int, processes: list[int]) -> list[dict]:
    Path(folder).mkdir()
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, folder, str(port), str(process), str(draws)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}"},
        )
        for process in processes
    ]
    return [json.loads(process.communicate()[0].splitlines()[-1]) for process in started]


def find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def digest_draws(path: Path) -> str:
    import numpy as np

    import steppe

    arrays = steppe.open_run(path).trace.arrays
    total = hashlib.sha256()
    for name in sorted(arrays):
        total.update(np.ascontiguousarray(arrays[name]).tobytes())
    return total.hexdigest()


if __name__ == "__main__":
    main()
