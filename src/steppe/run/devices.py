"""Where blocks of chains run: one device, several, or those of several processes in step with each other.

Processes are those of JAX's own distributed runtime. Each runs its own blocks and writes its own chains;
what they exchange are a few integers per chunk, and one sum per row where adaptation is pooled.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from steppe.errors import PeerError, RunError

# Blocks of chains are spread over devices along this axis.
BLOCK_AXIS = "block"

PEER_STOPPED = (
    "Another process of the run has stopped. Everything committed is intact; start the processes again, as "
    "many as you like, with `steppe resume` or `sample(resume=True)`."
)
# What JAX's runtime says when a connection breaks; it has no type of its own for that.
_BROKEN = re.compile(r"gloo|connection|peer|heartbeat|coordination|unavailable|deadline|socket|barrier", re.I)

Device = Any  # `jax.Device` is a class at run time, but not for type checkers


class Devices:
    """The devices of a run.

    Attributes
    ----------
    mesh
        All devices of all processes, or `None` for the default device of this process alone.
    num_processes
        Number of processes that run together.
    """

    def __init__(self, devices: Sequence[Device] | None = None, num_processes: int = 1) -> None:
        self.num_processes = num_processes
        self.mesh = None if devices is None else Mesh(np.array(devices), (BLOCK_AXIS,))
        self.num_own = 1 if self.mesh is None else self.mesh.size // num_processes

    def pad(self, num_blocks: int) -> int:
        """Number of blocks rounded up so that every device has as many."""
        return -(-num_blocks // self.num_own) * self.num_own

    def place_blocks(self, tree: Any) -> Any:
        """Spread arrays with a leading axis of this process's blocks."""
        return tree if self.mesh is None else self._place(tree, PartitionSpec(BLOCK_AXIS))

    def place_everywhere(self, tree: Any) -> Any:
        """Copy arrays to every device."""
        return tree if self.mesh is None else self._place(tree, PartitionSpec())

    def fetch(self, array: jax.Array) -> np.ndarray:
        """The blocks of this process, in order, on the host."""
        if self.mesh is None:
            return np.asarray(array)
        shards = sorted(array.addressable_shards, key=lambda shard: shard.index[0].start or 0)
        return np.concatenate([np.asarray(shard.data) for shard in shards])

    def gather(self, numbers: Sequence[int]) -> np.ndarray:
        """The numbers of every process, (process, number); waits for all of them."""
        own = np.asarray(numbers, np.int32)
        if self.num_processes == 1:
            return own[None]
        from jax.experimental.multihost_utils import process_allgather

        with self.talking():
            return np.asarray(process_allgather(own))

    def agree(self, answer: bool) -> bool:
        """Whether any process says yes; waits for all of them."""
        return bool(self.gather([answer]).any())

    @contextmanager
    def talking(self) -> Iterator[None]:
        """Say which error it is when a process that others wait for has died."""
        try:
            yield
        except (jax.errors.JaxRuntimeError, RuntimeError, ValueError) as error:
            if self.num_processes == 1 or not _BROKEN.search(str(error)):
                raise
            raise PeerError(PEER_STOPPED) from error

    def _place(self, tree: Any, spec: PartitionSpec) -> Any:
        assert self.mesh is not None
        sharding = NamedSharding(self.mesh, spec)
        return jax.tree.map(
            lambda leaf: jax.make_array_from_process_local_data(sharding, np.asarray(leaf)), tree
        )


def make_devices(devices: Any) -> Devices:
    """From `sample(devices=...)`: how many local devices, which ones, or the default.

    Under `jax.distributed.initialize` all processes run together on all of their devices.
    """
    if devices is not None:
        devices = _choose(devices)
    if jax.process_count() > 1:
        return Devices(_by_process(devices and len(devices)), jax.process_count())
    return Devices(devices)


def _choose(devices: Any) -> list[Device]:
    local = jax.local_devices()
    if isinstance(devices, int) and not isinstance(devices, bool) and 1 <= devices <= len(local):
        return local[:devices]
    chosen = list(devices) if isinstance(devices, list | tuple) else []
    if not chosen or not all(device in local for device in chosen) or len(set(chosen)) < len(chosen):
        raise RunError(
            f"`sample(devices=...)` must be a number up to {len(local)} or a list of different devices of "
            f"`jax.local_devices()`; got {devices!r}."
        )
    return chosen


def _by_process(num_per_process: int | None) -> list[Device]:
    """As many devices of every process, process after process, which is the order of the shards."""
    owned: dict[int, list[Device]] = {}
    for device in sorted(jax.devices(), key=lambda device: (device.process_index, device.id)):
        owned.setdefault(device.process_index, []).append(device)
    maximum = min(len(devices) for devices in owned.values())
    return [device for devices in owned.values() for device in devices[: num_per_process or maximum]]
