"""Which part of a run this process does."""

import re
from typing import NamedTuple

import jax

from steppe.errors import RunError

_PROCESS = re.compile(r"(\d{1,6})/(\d{1,6})@(\S+:\d{1,5})")
# A dead process is noticed at once by those that wait for it; this is for one that hangs.
HEARTBEAT_SECONDS = 30
# At the end processes wait for each other, in vain if one has died.
SHUTDOWN_SECONDS = 5


class Where(NamedTuple):
    """Which of the chains run here, and on what."""

    devices: int | None
    shard: tuple[int, int] | None


def find_place(devices: int | None, shard: str | None, distributed: bool, process: str | None) -> Where:
    """From the flags of `run` and `resume`; joins the other processes if it is one of several."""
    if distributed:
        join_processes(process)
    elif process is not None:
        raise RunError("`--process` goes with `--distributed`.")
    return Where(devices, None if shard is None else parse_shard(shard))


def parse_shard(text: str) -> tuple[int, int]:
    """From `i/n`."""
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    if match is None:
        raise RunError(f"`--shard` must be i/n with i from 0 to n − 1, such as 0/4; got {text!r}.")
    return int(match[1]), int(match[2])


def join_processes(process: str | None) -> None:
    """Join the other processes of the job; Slurm, MPI and the like are recognised by JAX."""
    match = _PROCESS.fullmatch(process or "")
    if process is not None and match is None:
        raise RunError(f"`--process` must be i/n@host:port, such as 0/2@10.0.0.1:7000; got {process!r}.")
    if match and int(match[1]) >= int(match[2]):
        raise RunError(f"`--process` must be i/n@host:port with i from 0 to n − 1; got {process!r}.")
    try:
        jax.distributed.initialize(
            coordinator_address=match[3] if match else None,
            num_processes=int(match[2]) if match else None,
            process_id=int(match[1]) if match else None,
            heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
            shutdown_timeout_seconds=SHUTDOWN_SECONDS,
        )
    except (ValueError, RuntimeError) as error:
        raise RunError(
            f"`--distributed` found no job to join: {error} Start it with srun or mpirun, or give "
            "`--process i/n@host:port`."
        ) from error
