"""What must work right after `pip install steppe`, with its plain dependencies alone; run by `make wheel`."""

import subprocess
import sys
from pathlib import Path

import jax

import steppe

folder = Path(steppe.__file__).parent
assert "site-packages" in folder.parts, f"this is not the installed package: {folder}"
assert (folder / "py.typed").exists(), "the wheel lacks py.typed"

target = steppe.Target(lambda x: -((x.sum() - 2.0) ** 2), steppe.Binary(4))
run = steppe.sample(target, steppe.edmala(), key=jax.random.key(0), num_chains=2, num_warmup=20, num_draws=20)
assert run.data is not None
assert "E" in str(run.summary())

for arguments in (["version"], ["samplers"], ["targets"]):
    answer = subprocess.run(
        [sys.executable, "-m", "steppe", *arguments], check=True, capture_output=True, text=True
    )
    assert answer.stdout.strip(), arguments
