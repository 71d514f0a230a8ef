"""The host side of a run: hand out chunks, measure them, pass rows on.

The engine knows nothing of files or progress bars. It yields chunks of about `CHUNK_SECONDS` each; whoever
drives it stores them, shows them, or stops.
"""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.compiling import quick_jit
from steppe.domain.base import Domain
from steppe.errors import RunMismatchError
from steppe.kernel.sampler import Sampler
from steppe.kernel.start import repair_starts
from steppe.run.adaptation import WarmupAdaptation
from steppe.run.chain_blocks import Chains, Layout, Rows, advance, start
from steppe.run.devices import Devices
from steppe.run.observables import Followed
from steppe.run.observers import Observers
from steppe.run.plan import BUFFER_BYTES, MAX_CAPACITY, MAX_STEPS, Plan
from steppe.run.storage.identity import name_leaves
from steppe.target import hold_reals

CHUNK_SECONDS = 0.5
FIRST_CHUNK_ROWS = 8
# Keys of initial draws are folded from the end of the step counter, which no run reaches.
START_STEP = MAX_STEPS


class Chunk(NamedTuple):
    """Consecutive rows of the chains that run here, as NumPy arrays with axes (row, chain, …).

    They may be views of a buffer of the device: copy what is kept.
    """

    first_row: int
    num_rows: int
    rows: Rows
    seconds: float


class Engine:
    """A run in progress."""

    def __init__(
        self,
        sampler: Sampler,
        key: Array,
        plan: Plan,
        *,
        adapt: WarmupAdaptation | None = None,
        devices: Devices | None = None,
        followed: Followed | None = None,
    ) -> None:
        self.sampler = sampler
        self.root = key
        self.plan = plan
        self.devices = Devices() if devices is None else devices
        self.layout = Layout(
            thinning=plan.thinning,
            keeps_positions=plan.keep == "draws",
            keeps_center=plan.keep == "draws" and sampler.replicas is not None,
            adapt=adapt,
            num_chains=plan.num_chains if adapt is not None and adapt.wanted.pooled else 0,
            pools=False,
            mesh=self.devices.mesh,
            key_type=str(jax.random.key_impl(key)),
            followed=followed,
        )
        self.next_row = 0
        self.seconds = 0.0
        self.blocks: Chains | None = None
        self._capacity = 0
        self._program_inputs: Any = None

    def start(self, positions: Any = None, reals: Array | None = None) -> None:
        """Place every chain, at given positions or at random ones where the log-density is finite.

        Real coordinates of a mixed model may be given with positions, else they are drawn.
        """
        lanes = self._lanes().astype(np.uint32).ravel()
        drawn, draw_keys, init_keys = _draw_starts(self.root, lanes, self.sampler.target.domain)
        if positions is not None:  # chains are repeated into idle lanes
            chains = lanes % self.plan.num_chains
            blocks = self._evaluate(
                np.asarray(positions)[chains], init_keys, None if reals is None else np.asarray(reals)[chains]
            )
        else:
            blocks = self._evaluate(drawn, init_keys)
            values = np.asarray(blocks.state.log_density)
            values = values.reshape((len(lanes), *values.shape[2:]))
            num_chains, target = self.plan.num_chains, hold_reals(self.sampler.target)
            repaired = repair_starts(target, draw_keys, drawn, values, lanes, num_chains)
            blocks = blocks if repaired is drawn else self._evaluate(repaired, init_keys)
        self.blocks = self.devices.place_blocks(blocks)

    def _evaluate(self, positions: ArrayLike, keys: Array, reals: np.ndarray | None = None) -> Chains:
        """Evaluate a start for every lane."""
        placed, lanes = jnp.asarray(positions, jnp.result_type(float)), self._lanes().astype(np.uint32)
        keeps_draws, domain = self.plan.keep == "draws", self.sampler.target.domain
        return start(
            self.sampler,
            placed.reshape((*lanes.shape, *placed.shape[1:])),
            lanes,
            keys.reshape(lanes.shape),
            layout=self.layout._replace(mesh=None, num_chains=0),
            observers=None if keeps_draws else Observers.start(domain),
            reals=None if reals is None else jnp.asarray(reals.reshape((*lanes.shape, -1))),
        )

    def save_chains(self) -> dict[str, np.ndarray]:
        """Copy every number of every chain that runs here, by name."""
        own = len(self.plan.own_blocks)
        named = zip(name_leaves(self.blocks), jax.tree.leaves(self.blocks), strict=True)
        return {name: np.array(self.devices.fetch(leaf)[:own]) for name, leaf in named}

    def read_means(self) -> dict[str, float]:
        """Return means of the observables over the chains that run here, as far as they have seen any."""
        followed = self.layout.followed
        if followed is None or self.blocks is None or self.blocks.readings is None:
            return {}
        streams = zip(followed.named, self.blocks.readings.streams[1:], strict=True)
        seen = {name: tuple(map(self.devices.fetch, stream[:4])) for (name, _), stream in streams}
        return {
            name: float(np.average(origin + mean, weights=number))
            for name, (number, _, origin, mean) in seen.items()
            if number.any()
        }

    def resume(self, saved: dict[str, np.ndarray], next_row: int) -> None:
        """Continue from chains that were saved, checked against those freshly started."""
        leaves, structure = jax.tree.flatten(self.blocks)
        num_blocks = len(self.plan.own_blocks)
        restored = []
        for name, leaf in zip(name_leaves(self.blocks), leaves, strict=True):
            array = saved.get(name)
            if array is None or array.shape != (num_blocks, *leaf.shape[1:]) or array.dtype != leaf.dtype:
                raise RunMismatchError(
                    f"The saved chains do not have the shape of this target and sampler: {name} is not "
                    f"{(num_blocks, *leaf.shape[1:])} of {leaf.dtype}."
                )
            padded = self.devices.pad(self.plan.blocks_per_shard)
            fresh = self.devices.fetch(leaf)[num_blocks:padded]
            restored.append(jnp.asarray(np.concatenate([array, fresh])))
        self.blocks = self.devices.place_blocks(jax.tree.unflatten(structure, restored))
        self.next_row = next_row

    def chunks(self, num_rows: int) -> Iterator[Chunk]:
        """Yield chunks until row `num_rows` is reached."""
        length = FIRST_CHUNK_ROWS
        while self.next_row < num_rows:
            length = max(1, min(length, num_rows - self.next_row, self.capacity))
            if self._pools:
                length = min(length, self.plan.num_warmup_rows - self.next_row)
            length = int(self.devices.gather([length])[0, 0])
            begun = time.perf_counter()
            with self.devices.talking():  # chains that adapt together
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

    @property
    def _pools(self) -> bool:
        """Whether the next row is one in which chains adapt together."""
        adapt = self.layout.adapt
        return adapt is not None and adapt.wanted.pooled and self.next_row < self.plan.num_warmup_rows

    def _lanes(self) -> np.ndarray:
        """Chain of every lane of every block here, (block, lane); idle ones are beyond the last chain."""
        plan = self.plan
        blocks = np.array(plan.own_blocks)
        num_idle = self.devices.pad(plan.blocks_per_shard) - len(blocks)
        blocks = np.concatenate([blocks, np.full(num_idle, plan.num_blocks)])
        return blocks[:, None] * plan.chain_block + np.arange(plan.chain_block)

    def _advance(self, length: int) -> Chunk:
        if self._program_inputs is None:
            inputs = self.sampler, jax.random.key_data(self.root)
            self._program_inputs = self.devices.place_everywhere(inputs)
        sampler, root = self._program_inputs
        blocks, rows = advance(
            sampler,
            root,
            self.blocks,
            np.uint32(self.next_row),
            np.int32(length),
            np.uint32(self.plan.num_warmup_rows),
            layout=self.layout._replace(pools=self._pools),
            capacity=self.capacity,
        )
        kept = jax.tree.map(lambda array: self._by_row(array, length), rows)
        first_row, self.blocks = self.next_row, blocks
        self.next_row += length
        return Chunk(first_row, length, kept, 0.0)

    def _by_row(self, array: Array, length: int) -> np.ndarray:
        """(block, row, lane, …) on the device → (row, chain, …) on the host, idle lanes dropped.

        Rows keep this layout in memory and in files; only a `Trace` puts chains first.
        """
        host = np.moveaxis(self.devices.fetch(array)[:, :length], 1, 0)
        return host.reshape((length, -1, *host.shape[3:]))[:, : len(self.plan.own_chains)]

    def _bytes_per_row(self) -> int:
        domain, plan = self.sampler.target.domain, self.plan
        replicas = self.sampler.replicas or 1
        per_chain = 32 * replicas
        if self.layout.keeps_positions:
            per_chain += replicas * domain.num_sites * domain.level_dtype.itemsize
        if self.layout.keeps_positions:
            per_chain += 8 * domain.num_reals
        if self.layout.keeps_center:
            per_chain += 8 * int(np.prod(domain.shape))
        return per_chain * plan.blocks_per_shard * plan.chain_block


# One program each instead of one for each operation.
@jax.jit
def start_keys(root: Array, chains: ArrayLike) -> Array:
    """Keys with which chains start, apart from those of all their steps."""
    return jax.vmap(lambda chain: jax.random.fold_in(jax.random.fold_in(root, chain), START_STEP))(chains)


@partial(quick_jit, static_argnames="domain")
def _draw_starts(root: Array, chains: Array, domain: Domain) -> tuple[Array, Array, Array]:
    """Uniform positions of chains, the keys they were drawn with and those with which they begin."""
    draw_keys, init_keys = jnp.moveaxis(jax.vmap(jax.random.split)(start_keys(root, chains)), 1, 0)
    return draw_positions(draw_keys, domain), draw_keys, init_keys


@partial(jax.jit, static_argnames="domain")
def draw_positions(keys: Array, domain: Domain) -> Array:
    """A uniform position for every key."""
    return jax.vmap(domain.draw)(keys)
