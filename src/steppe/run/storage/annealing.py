"""Directory of an annealing: what was asked for and everything done so far, to go on from after a kill.

`anneal.json` says what is annealed and which file of arrays belongs to it; it is replaced in one piece once
the arrays are on disk. Both carry digests.
"""

import contextlib
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from steppe.errors import DamagedRunError, RunMismatchError, StorageError
from steppe.run.driver import COMMIT_SECONDS, interrupt_flag
from steppe.run.schedule import Adaptive, evaluate_schedule
from steppe.run.storage.durable import read_arrays, read_json, take_lock, write_arrays, write_json
from steppe.run.storage.identity import describe_component, identify_target, name_leaves

if TYPE_CHECKING:
    from steppe.run.annealing_state import Done, Request

FORMAT = 1
RECORD = "anneal.json"
COUNTS = ("round", "row", "num_steps", "num_idle", "steps")
NUMBERS = ("start", "beta", "best_met", "seconds", "cpu_seconds")


class AnnealingDirectory:
    """A directory that one annealing writes, between `with` and the end of its block."""

    def __init__(self, path: Path, request: "Request") -> None:
        self.path = path
        self._request = request
        self._held = contextlib.ExitStack()
        self._is_interrupted: Callable[[], bool] = lambda: False
        self._last_saved = time.monotonic()
        self._file = ""
        self._has_rows = False

    def __enter__(self) -> "AnnealingDirectory":
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"Could not make {self.path}: {error.strerror or error}.") from error
        if not (self.path / RECORD).exists() and any(child.name != "lock" for child in self.path.iterdir()):
            raise StorageError(
                f"{self.path} holds something else than an annealing. Choose a new or an empty directory."
            )
        self._held.enter_context(take_lock(self.path))
        self._is_interrupted = self._held.enter_context(interrupt_flag(lambda: self._has_rows))
        return self

    def __exit__(self, *problem: object) -> None:
        self._held.close()

    def save_in_time(self, done: "Done") -> bool:
        """Save every few seconds, and when the process is asked to end; return whether it is."""
        self._has_rows = True
        if self._is_interrupted() or time.monotonic() - self._last_saved > COMMIT_SECONDS:
            self.save(done)
        return self._is_interrupted()

    def save(self, done: "Done") -> None:
        """Write everything done so far."""
        file = f"state-{done.steps}-{done.row}.bin"
        written = write_arrays(self.path / file, _list_arrays(done))
        state: dict[str, Any] = {name: int(getattr(done, name)) for name in COUNTS}
        state |= {name: _as_number(getattr(done, name)) for name in NUMBERS}
        record = {"format": FORMAT, "request": _describe(self._request), "state": state, "arrays": written}
        write_json(self.path / RECORD, {**record, "stopped": done.stopped})
        if self._file and self._file != file:
            (self.path / self._file).unlink(missing_ok=True)
        self._file, self._last_saved = file, time.monotonic()

    def restore(self, done: "Done") -> None:
        """Put what is on disk, if anything, in the place of a fresh start."""
        if not (self.path / RECORD).exists():
            return
        record = read_json(self.path / RECORD)
        if record.get("format") != FORMAT:
            raise RunMismatchError(
                f"{self.path} has format {record.get('format')!r}; this steppe reads {FORMAT}."
            )
        _compare(record["request"], _describe(self._request), self.path)
        arrays = read_arrays(self.path / str(record["arrays"]["file"]), record["arrays"])
        for name in COUNTS:
            setattr(done, name, int(record["state"][name]))
        for name in NUMBERS:
            setattr(done, name, float(record["state"][name]))
        _restore_arrays(done, arrays)
        self._file = str(record["arrays"]["file"])
        done.stopped = self._still_stopped(str(record["stopped"]), done)

    def _still_stopped(self, stopped: str, done: "Done") -> str:
        """Why it is over, if it still is: more time and more rounds may have been given since."""
        request = self._request
        if stopped == "all steps were made" and done.round + 1 < request.max_rounds:
            return ""
        if stopped != "the time was used up":
            return stopped
        limits = ((request.time_limit, done.seconds), (request.until.cpu_seconds, done.cpu_seconds))
        return stopped if any(limit is not None and used >= limit for limit, used in limits) else ""


def _list_arrays(done: "Done") -> dict[str, np.ndarray]:
    leaves = jax.tree.leaves(done.chains)
    arrays = {
        f"chains.{name}": _as_array(leaf) for name, leaf in zip(name_leaves(done.chains), leaves, strict=True)
    }
    arrays |= {f"row.{name}": np.stack([row[name] for row in done.rows]) for name in (done.rows or [{}])[0]}
    met = list(done.met.values())
    return arrays | {
        "best_position": done.best_position,
        "best_log_density": done.best_log_density,
        "trace": np.asarray(done.trace).reshape(-1, 3),
        "met": np.stack(met) if met else np.zeros((0, 0), np.int32),
    }


def _restore_arrays(done: "Done", arrays: dict[str, np.ndarray]) -> None:
    leaves, structure = jax.tree.flatten(done.chains)
    names = [f"chains.{name}" for name in name_leaves(done.chains)]
    try:
        found = [arrays[name] for name in names]
        done.best_position, done.best_log_density = (
            np.array(arrays[name]) for name in ("best_position", "best_log_density")
        )
        trace, met = arrays["trace"], arrays["met"]
    except KeyError as problem:
        raise DamagedRunError(f"The arrays of the annealing lack {problem}.") from None
    if any(new.shape != _as_array(leaf).shape for new, leaf in zip(found, leaves, strict=True)):
        raise DamagedRunError("The chains on disk have other shapes than this target and recipe have.")
    restored = [_as_leaf(new, leaf) for new, leaf in zip(found, leaves, strict=True)]
    done.chains = jax.tree.unflatten(structure, restored)
    rows = {name.removeprefix("row."): values for name, values in arrays.items() if name.startswith("row.")}
    done.rows = [{name: rows[name][i] for name in rows} for i in range(len(trace))]
    done.trace = [tuple(row) for row in trace.tolist()]
    done.met = {levels.tobytes(): levels for levels in met}


def _as_array(leaf: Any) -> np.ndarray:
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)


def _as_leaf(array: np.ndarray, like: Any) -> jax.Array:
    if jnp.issubdtype(like.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(like))
    return jnp.array(array, like.dtype)


def _as_number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _describe(request: "Request") -> dict[str, Any]:
    """What shapes the chains; limits and the number of rounds do not."""
    sampler, schedule = request.sampler, request.schedule
    initial = None if request.initial is None else describe_component(np.asarray(request.initial))
    identity = identify_target(sampler.target, uses_gradient=sampler.recipe.uses_gradient)
    is_led = isinstance(schedule, Adaptive)
    return {
        "key": np.asarray(jax.random.key_data(request.key)).tolist(),
        "recipe": describe_component(sampler.recipe),
        "domain": sampler.target.domain.to_json(),
        "target": identity.model_dump(mode="json"),
        "schedule": describe_component(schedule) if is_led else evaluate_schedule(schedule),
        "temperatures": None if request.temperatures is None else list(request.temperatures),
        "follows_acceptance": request.follow is not None,
        "dtype": str(jnp.result_type(float)),
        "num_chains": request.num_chains,
        "num_steps": request.num_steps,
        "reheat": request.reheats,
        "initial": initial,
    }


def _compare(there: Any, here: dict[str, Any], path: Path) -> None:
    import json

    here = json.loads(json.dumps(here))
    for name in here:
        if there.get(name) != here[name]:
            what = {"key": "key", "target": "target", "recipe": "recipe"}.get(name, f"`{name}`")
            raise RunMismatchError(
                f"The annealing in {path} has another {what}. Go on with what it was started with, or choose "
                "another directory."
            )
