"""The host side of a run: hand out chunks, measure them, pass rows on.

The engine knows nothing of files or progress bars. It yields chunks of about `CHUNK_SECONDS` each; whoever
drives it stores them, shows them, or stops.
"""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.kernel.sampler import Sampler
from steppe.run.loop import Chain, Rows, Schedule, advance, has_step_size, start
from steppe.run.observers import Observers
from steppe.run.plan import BUFFER_BYTES, MAX_CAPACITY, Plan

CHUNK_SECONDS = 0.5
FIRST_CHUNK_ROWS = 8
# Keys of initial draws are folded from the end of the step counter, which no run reaches.
START_STEP = 2**32 - 1


class Chunk(NamedTuple):
    """Consecutive rows of all chains, as NumPy arrays with axes (chain, row, …)."""

    first_row: int
    num_rows: int
    rows: Rows
    seconds: float


class Engine:
    """A run in progress."""

    def __init__(self, sampler: Sampler, key: Array, plan: Plan, *, adapts: bool) -> None:
        self.sampler = sampler
        self.root = key
        self.plan = plan
        self.schedule = Schedule(
            thinning=plan.thinning,
            keeps_positions=plan.keep == "draws",
            keeps_center=plan.keep == "draws" and sampler.replicas is not None,
            adapts=adapts and has_step_size(sampler),
        )
        self.next_row = 0
        self.seconds = 0.0
        self.blocks: Chain | None = None
        self._capacity = 0

    def start(self, positions: Any = None) -> None:
        """Place every chain, at given positions or at uniform random ones."""
        shape = (self.plan.num_blocks, self.plan.chain_block)
        indices = np.arange(np.prod(shape), dtype=np.uint32)
        keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.fold_in(self.root, i), START_STEP))(indices)
        draw_keys, init_keys = jnp.moveaxis(jax.vmap(jax.random.split)(keys), 1, 0)
        if positions is None:
            positions = jax.vmap(self.sampler.target.domain.draw)(draw_keys)
        positions = self._padded(jnp.asarray(positions, jnp.result_type(float)))
        observers = None if self.plan.keep == "draws" else Observers.start(self.sampler.target.domain)
        self.blocks = start(
            self.sampler,
            positions.reshape((*shape, *positions.shape[1:])),
            indices.reshape(shape),
            init_keys.reshape(shape),
            schedule=self.schedule,
            observers=observers,
        )

    def resume(self, blocks: Chain, next_row: int) -> None:
        """Continue from chains that were saved."""
        self.blocks, self.next_row = blocks, next_row

    def chunks(self, num_rows: int) -> Iterator[Chunk]:
        """Yield chunks until row `num_rows` is reached."""
        length = FIRST_CHUNK_ROWS
        while self.next_row < num_rows:
            length = max(1, min(length, num_rows - self.next_row, self.capacity))
            begun = time.perf_counter()
            chunk = self._advance(length)
            seconds = time.perf_counter() - begun
            self.seconds += seconds
            yield chunk._replace(seconds=seconds)
            # Grow cautiously: the first chunk includes compilation and says little.
            length = min(4 * length, max(1, int(length * CHUNK_SECONDS / max(seconds, 1e-6))))

    @property
    def capacity(self) -> int:
        """Rows that fit the device buffer."""
        if not self._capacity:
            self._capacity = int(np.clip(BUFFER_BYTES // self._bytes_per_row(), 1, MAX_CAPACITY))
        return self._capacity

    def _advance(self, length: int) -> Chunk:
        blocks, rows = advance(
            self.sampler,
            self.root,
            self.blocks,
            np.uint32(self.next_row),
            np.int32(length),
            np.uint32(self.plan.num_warmup_rows),
            schedule=self.schedule,
            capacity=self.capacity,
        )
        first_row, self.blocks = self.next_row, blocks
        self.next_row += length
        kept = jax.tree.map(lambda array: self._by_chain(array, length), rows)
        return Chunk(first_row, length, kept, 0.0)

    def _by_chain(self, array: Array, length: int) -> np.ndarray:
        """(block, row, lane, …) on the device → (chain, row, …) on the host, idle lanes dropped."""
        host = np.asarray(array[:, :length])
        host = np.moveaxis(host, 2, 1)
        return host.reshape((-1, *host.shape[2:]))[: self.plan.num_chains]

    def _padded(self, positions: Array) -> Array:
        """Repeat chains into the idle lanes of the last block."""
        lanes = np.arange(self.plan.num_blocks * self.plan.chain_block) % len(positions)
        return positions[lanes]

    def _bytes_per_row(self) -> int:
        domain, plan = self.sampler.target.domain, self.plan
        copies = self.sampler.replicas or 1
        per_chain = 32 * copies
        if self.schedule.keeps_positions:
            per_chain += copies * domain.num_sites * domain.level_dtype.itemsize
        if self.schedule.keeps_center:
            per_chain += 8 * int(np.prod(domain.shape))
        return per_chain * plan.num_blocks * plan.chain_block
