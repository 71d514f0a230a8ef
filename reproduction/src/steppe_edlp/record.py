"""A record: every finished cell of an experiment as one small file, with what made it.

RECORD/PROTOCOL-SCALE/NAME/KEY.json   the answer of one piece of work, and its provenance
RECORD/PROTOCOL-SCALE/NAME/unfinished/ what long pieces leave behind on their way; not to be committed

Cells do not depend on how many samplers, seeds or tables are asked for at a time, so a record grows from call
to call, and tables are put together from the cells that are there.
"""

import functools
import hashlib
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax
import numpy as np

import steppe
from steppe.compiling import quick_jit
from steppe.errors import DamagedRunError, RunMismatchError
from steppe.kernel.compose import Recipe
from steppe.run.simulate import simulate
from steppe.run.storage.durable import read_json
from steppe.run.storage.identity import describe_software, find_other_software
from steppe.targets import ising_lattice, tsp
from steppe_edlp.experiment import Experiment
from steppe_edlp.request import Request
from steppe_edlp.work import Piece, Work

SCHEMA = 1
UNFINISHED = "unfinished"
# What makes draws; other modules may change without changing a number.
_DRAWING = ("random", "domain", "target", "kernel", "samplers", "targets", "training", "run/simulate.py")
_OWN = ("networks.py", "occupancy.py")
NUM_CHAINS, NUM_STEPS = 4, 48


@dataclass(frozen=True)
class Record:
    """Where cells are kept, and what may be done there.

    Attributes
    ----------
    directory
        Of the record.
    other_code
        Whether cells may be added to cells that other code made.
    finished_only
        Whether to put together what is there and run nothing.
    """

    directory: Path
    other_code: bool = False
    finished_only: bool = False

    def open(self, experiment: Experiment, request: Request, progress: bool | None) -> Work:
        """Check what is there, and return the work that goes on with it."""
        own = self.directory / f"{request.protocol}-{request.scale}" / experiment.name
        sizes = {key: value for key, value in vars(experiment.size(request)).items() if key != "num_seeds"}
        asked = _digest([experiment.name, request.protocol, request.scale, sizes, experiment.recipes])
        made = describe_maker(experiment.name)
        if not self.finished_only:
            for path in sorted(own.glob("*.json")):
                _check(path, asked, made, self.other_code)
        return Work(
            own,
            asked,
            experiment.name,
            progress,
            describe=functools.partial(_describe_cell, made),
            unfinished=own / UNFINISHED,
            finished_only=self.finished_only,
        )


def _describe_cell(made: Mapping[str, Any], piece: Piece) -> dict[str, Any]:
    samplers = [describe_sampler(one) for one in getattr(piece, "args", ()) if isinstance(one, Recipe)]
    started = datetime.now(UTC).isoformat(timespec="seconds")
    return {"schema": SCHEMA, "made": {**made, "samplers": samplers, "started": started}}


def describe_maker(name: str) -> dict[str, Any]:
    """Commit, digest of the code that makes numbers of an experiment, versions and processor."""
    software = describe_software()
    return {"commit": software.pop("commit", ""), "code": digest_code(name), "software": software}


def describe_sampler(recipe: Recipe) -> dict[str, Any]:
    """Name and hyper-parameters of a recipe, from which it can be made again, and a digest of its draws."""
    known = inspect.signature(getattr(steppe, recipe.name)).parameters if hasattr(steppe, recipe.name) else ()
    given = {**recipe.parameters, "replicas": recipe.replicas, "center_start": recipe.center_start}
    numbers = {key: value for key, value in given.items() if key in known and value is not None}
    return {"name": recipe.name, "parameters": numbers, "draws": digest_draws(recipe)}


def digest_draws(recipe: Recipe) -> str:
    """Digest of a short run on a target that every recipe of its kind can sample: a lattice, or a tour."""
    if recipe.name.endswith("permutation"):
        target = tsp(coordinates=np.random.default_rng(3).uniform(size=(7, 2)))
    else:
        target = ising_lattice((5, 5), 0.3)
    sampler = recipe.build(target, audit=False)
    key_start, key = jax.random.split(jax.random.key(20))
    starts = target.domain.draw(key_start, (NUM_CHAINS,))
    positions = quick_jit(_follow)(sampler, starts, key)
    return hashlib.sha256(np.asarray(positions, np.int8).tobytes()).hexdigest()[:16]


def _follow(sampler: Any, starts: jax.Array, key: jax.Array) -> jax.Array:
    keys = jax.random.split(key, NUM_CHAINS)
    states = jax.vmap(sampler.init)(starts, keys)
    observed: Any = simulate(sampler, key, states, NUM_STEPS, observe=lambda _, state, __: state.position)
    return observed.observed


def digest_code(name: str) -> str:
    """Digest of every file that the numbers of an experiment depend on."""
    library, own = Path(steppe.__file__).parent, Path(__file__).parent
    places = [library / part for part in _DRAWING] + [own / name, *(own / part for part in _OWN)]
    files = [file for place in places for file in ([place] if place.is_file() else place.rglob("*.py"))]
    contents = [file.read_bytes() for file in sorted(files) if file.name != "figures.py"]
    return hashlib.sha256(b"\0".join(contents)).hexdigest()[:16]


def _check(path: Path, asked: str, made: Mapping[str, Any], other_code: bool) -> None:
    try:
        cell = read_json(path)
    except DamagedRunError as error:
        raise DamagedRunError(f"{path}: {error} Restore it, or delete it to have it made again.") from error
    if cell.get("schema") != SCHEMA:
        raise RunMismatchError(
            f"{path} has schema {cell.get('schema')!r}; this steppe-edlp reads cells of schema {SCHEMA}."
        )
    if cell["digest"] != asked:
        raise RunMismatchError(
            f"{path} was made with other sizes or hyper-parameters than are asked for now. Record in another "
            "directory, or delete what is out of date."
        )
    found, other = cell["made"], find_other_software(cell["made"]["software"], made["software"])
    if (found["code"] != made["code"] or other is not None) and not other_code:
        what = "code" if other is None else f"{other[0]} {other[1]!r}, now {other[2]!r}"
        raise RunMismatchError(
            f"{path} was made by other {what}: commit {found['commit']}, now {made['commit']}. Pass "
            "`--other-code` to add cells to the record all the same; each names what made it."
        )


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
