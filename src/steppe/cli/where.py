"""Which part of a run this process does."""

import ctypes
import os
import re
import signal
import sys
from typing import NamedTuple

import jax

from steppe.cli.output import fail
from steppe.errors import RunError
from steppe.run.devices import PEER_STOPPED

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


def guard_process(code: int) -> None:
    """Go on in a child process, and say in a sentence why it has ended where JAX's runtime aborts it.

    When a process that others wait for has died, the runtime of JAX may end them from a thread of its own
    before anything written in Python hears of it. The parent, which never returns, passes signals on; the
    child is killed with it.

    Parameters
    ----------
    code
        Exit code where another process has stopped.
    """
    child = os.fork()
    if child == 0:
        _die_with_parent()
        os.setpgid(0, 0)  # Ctrl-C comes from the parent, once
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda caught, _: os.kill(child, caught))
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if ended == -signal.SIGABRT:
        fail(PEER_STOPPED, code)
    raise SystemExit(ended if ended >= 0 else 128 - ended)


def _die_with_parent() -> None:
    """Let the system kill this process when its parent is killed; only Linux can."""
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
