"""Many steps of many chains as one compiled program, written so that results do not depend on scheduling.

- Chains run in blocks of a fixed width, block after block (`lax.map`). A chain has the same lane in a block
  of the same width however many chains there are, so its floating-point results are the same.
- Blocks are spread over devices (`shard_map`); each device runs the same program on its own blocks.
- The key of a step is `fold_in(fold_in(root, chain), step)`.
- A row is `thinning` steps, of which the last is kept. Rows are written into a buffer of fixed size by a
  loop whose length is not part of the program, so any chunk length runs the same code.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh, PartitionSpec

from steppe.domain import Domain
from steppe.kernel.sampler import Sampler
from steppe.kernel.state import Info, State
from steppe.kernel.threefry import unrolled
from steppe.run.adapt import Adapt
from steppe.run.observers import Observers
from steppe.run.tuning import Tuning, center_distance, observe, pooled, tuned

BLOCK_AXIS = "block"


class Chain(NamedTuple):
    """Everything one chain carries from row to row."""

    chain: Array
    state: State
    tuning: Tuning | None
    observers: Observers | None


class Rows(NamedTuple):
    """What is kept of a chunk; leading axes are chain and row once it leaves the loop."""

    levels: Any
    center: Any
    log_density: Array
    acceptance_rate: Array
    is_accepted: Array
    num_flips: Array
    num_nonfinite: Array
    step_size: Any
    center_distance: Any
    coupling_variance: Any


class Schedule(NamedTuple):
    """Static description of what a row is."""

    thinning: int
    keeps_positions: bool
    keeps_center: bool
    adapt: Adapt | None
    num_chains: int
    pools: bool
    mesh: Mesh | None
    key_type: Any


@partial(jax.jit, static_argnames=("schedule", "capacity"), donate_argnames=("blocks",))
def advance(
    sampler: Sampler,
    root: Array,
    blocks: Chain,
    first_row: Array,
    num_rows: Array,
    num_warmup_rows: Array,
    *,
    schedule: Schedule,
    capacity: int,
) -> tuple[Chain, Rows]:
    """Advance every block of chains by `num_rows ≤ capacity` rows.

    `blocks` has axes (block, lane); rows come back with axes (block, row, lane), of which the first
    `num_rows` rows are meaningful. `root` is the data of a key.
    """
    advance_here = _advance_together if schedule.pools else _advance_block_by_block
    program = partial(advance_here, schedule, capacity)
    if schedule.mesh is not None:
        everywhere, spread = PartitionSpec(), PartitionSpec(BLOCK_AXIS)
        program = jax.shard_map(
            program,
            mesh=schedule.mesh,
            in_specs=(everywhere, everywhere, spread, everywhere, everywhere, everywhere),
            out_specs=(spread, spread),
            check_vma=False,  # buffers start as constants and become different on every device
        )
    return program(sampler, root, blocks, first_row, num_rows, num_warmup_rows)


def _advance_block_by_block(
    schedule: Schedule,
    capacity: int,
    sampler: Sampler,
    root: Array,
    blocks: Chain,
    first_row: Array,
    num_rows: Array,
    num_warmup_rows: Array,
) -> tuple[Chain, Rows]:
    """Every block runs all rows before the next begins, so that its chains stay in the cache."""

    def one_block(lanes: Chain) -> tuple[Chain, Rows]:
        keys = _chain_keys(schedule, root, lanes.chain)

        def one_row(lanes: Chain, row: Array) -> tuple[Chain, Rows]:
            step_row = partial(_row, sampler, schedule, row, row < num_warmup_rows)
            return jax.vmap(step_row)(keys, lanes)

        return _fill(one_row, lanes, first_row, num_rows, capacity)

    return jax.lax.map(one_block, blocks)


def _advance_together(
    schedule: Schedule,
    capacity: int,
    sampler: Sampler,
    root: Array,
    blocks: Chain,
    first_row: Array,
    num_rows: Array,
    num_warmup_rows: Array,
) -> tuple[Chain, Rows]:
    """All blocks make a row before the next row begins, and adapt to what all chains did in it."""
    adapt = schedule.adapt
    assert adapt is not None
    keys = jax.lax.map(partial(_chain_keys, schedule, root), blocks.chain)
    axis = None if schedule.mesh is None else BLOCK_AXIS

    def one_row(blocks: Chain, row: Array) -> tuple[Chain, Rows]:
        is_warmup = row < num_warmup_rows
        step_row = jax.vmap(partial(_row, sampler, schedule, row, is_warmup))
        moved, rows = jax.lax.map(lambda block: step_row(*block), (keys, blocks))
        flips = rows.num_flips / schedule.thinning
        seen = observe(adapt, sampler, rows.acceptance_rate, flips, rows.center_distance)
        mean = pooled(seen, blocks.chain < schedule.num_chains, schedule.num_chains, axis)
        assert moved.tuning is not None
        return moved._replace(tuning=moved.tuning.update(sampler, adapt, mean)), rows

    blocks, rows = _fill(one_row, blocks, first_row, num_rows, capacity)
    return blocks, jax.tree.map(lambda array: jnp.moveaxis(array, 0, 1), rows)


def _chain_keys(schedule: Schedule, root: Array, chains: Array) -> Array:
    key = unrolled(jax.random.wrap_key_data(root, impl=schedule.key_type))
    return jax.vmap(partial(jax.random.fold_in, key))(chains)


def _fill(
    one_row: Callable[[Chain, Array], tuple[Chain, Rows]],
    chains: Chain,
    first_row: Array,
    num_rows: Array,
    capacity: int,
) -> tuple[Chain, Rows]:
    """Make rows one after another and write them into a buffer, row axis first."""
    shapes = jax.eval_shape(lambda chains: one_row(chains, first_row)[1], chains)
    buffer = jax.tree.map(lambda s: jnp.zeros((capacity, *s.shape), s.dtype), shapes)

    def body(offset: Array, carry: tuple[Chain, Rows]) -> tuple[Chain, Rows]:
        chains, buffer = carry
        chains, row = one_row(chains, first_row + offset.astype(first_row.dtype))
        # A slice update is done in place; a scatter (`.at[].set`) copies the buffer in every row.
        write = partial(jax.lax.dynamic_update_index_in_dim, index=offset, axis=0)
        return chains, jax.tree.map(write, buffer, row)

    return jax.lax.fori_loop(0, num_rows, body, (chains, buffer))


@partial(jax.jit, static_argnames=("schedule",))
def start(
    sampler: Sampler, positions: Array, indices: Array, keys: Array, *, schedule: Schedule, observers: Any
) -> Chain:
    """Evaluate the starting positions, block by block; axes (block, lane)."""

    def one_chain(position: Array, index: Array, key: Array) -> Chain:
        tuning = None if schedule.adapt is None else Tuning.start(sampler, schedule.adapt)
        return Chain(index, sampler.init(position, key), tuning, observers)

    return jax.lax.map(lambda args: jax.vmap(one_chain)(*args), (positions, indices, keys))


def _row(
    sampler: Sampler, schedule: Schedule, row: Array, is_warmup: Array, chain_key: Array, chain: Chain
) -> tuple[Chain, Rows]:
    """`thinning` steps of one chain; flips and defects add up, the rest is that of the last step."""
    numbers = partial(_numbers, is_warmup=is_warmup)

    def step(offset: Array, carry: tuple[Chain, Info]) -> tuple[Chain, Info]:
        chain, total = carry
        key = jax.random.fold_in(chain_key, row * schedule.thinning + offset)
        state, info = tuned(sampler, numbers(chain.tuning)).step(key, chain.state)
        chain = chain._replace(state=state)
        if not schedule.pools:
            chain = chain._replace(tuning=_adapted(sampler, schedule, chain, info, is_warmup))
        return chain, _add(total, info)

    if schedule.thinning == 1:
        chain, total = step(jnp.zeros((), row.dtype), (chain, _nothing()))
    else:
        like = jax.eval_shape(lambda chain: step(row, (chain, _nothing()))[1], chain)
        zero = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), like)
        chain, total = jax.lax.fori_loop(
            0, schedule.thinning, lambda i, carry: step(i.astype(row.dtype), carry), (chain, zero)
        )
    if chain.observers is not None:
        observers = chain.observers.update(sampler.target.domain, chain.state, ~is_warmup)
        chain = chain._replace(observers=observers)
    return chain, _kept(sampler, schedule, chain, total, numbers(chain.tuning))


def _kept(sampler: Sampler, schedule: Schedule, chain: Chain, total: Info, numbers: dict[str, Array]) -> Rows:
    state = chain.state
    return Rows(
        levels=encode(sampler.target.domain, state.position) if schedule.keeps_positions else None,
        center=state.center if schedule.keeps_center else None,
        log_density=state.log_density,
        acceptance_rate=total.acceptance_rate / schedule.thinning,
        is_accepted=total.is_accepted,
        num_flips=total.num_flips,
        num_nonfinite=total.num_nonfinite,
        step_size=numbers.get("step_size", sampler.numbers.get("step_size")),
        center_distance=center_distance(sampler, state),
        coupling_variance=numbers.get("coupling_variance"),
    )


def encode(domain: Domain, position: Array) -> Array:
    """Levels in the smallest form: bits packed eight to a byte, small integers otherwise."""
    levels = domain.to_levels(position)
    return jnp.packbits(levels, axis=-1) if domain.is_two_level else levels


def _nothing() -> Info:
    return Info(acceptance_rate=0, is_accepted=False, num_flips=0, num_nonfinite=0)  # type: ignore[arg-type]


def _add(total: Info, info: Info) -> Info:
    return Info(
        acceptance_rate=total.acceptance_rate + info.acceptance_rate,
        is_accepted=info.is_accepted,
        num_flips=total.num_flips + info.num_flips,
        num_nonfinite=total.num_nonfinite + info.num_nonfinite,
    )


def _numbers(tuning: Tuning | None, is_warmup: Array) -> dict[str, Array]:
    return {} if tuning is None else tuning.numbers(is_warmup)


def _adapted(sampler: Sampler, schedule: Schedule, chain: Chain, info: Info, is_warmup: Array) -> Any:
    adapt, tuning = schedule.adapt, chain.tuning
    if adapt is None or tuning is None:
        return tuning
    distance = center_distance(sampler, chain.state) if adapt.center_distance is not None else None
    seen = observe(adapt, sampler, info.acceptance_rate, info.num_flips, distance)
    # Outside warm-up nothing is computed: the condition is one for all chains.
    return jax.lax.cond(is_warmup, lambda: tuning.update(sampler, adapt, seen), lambda: tuning)
