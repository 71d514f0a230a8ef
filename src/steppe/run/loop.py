"""Many steps of many chains as one compiled program, written so that results do not depend on scheduling.

- Chains run in blocks of a fixed width, block after block (`lax.map`). A chain has the same lane in a block
  of the same width however many chains there are, so its floating-point results are the same.
- The key of a step is `fold_in(fold_in(root, chain), step)`.
- A row is `thinning` steps, of which the last is kept. Rows are written into a buffer of fixed size by a
  loop whose length is not part of the program, so any chunk length runs the same code.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from steppe.domain import Domain
from steppe.kernel.numbers import with_numbers
from steppe.kernel.sampler import Sampler
from steppe.kernel.state import Info, State
from steppe.run.adapt import DualAveraging
from steppe.run.observers import Observers


class Chain(NamedTuple):
    """Everything one chain carries from row to row."""

    chain: Array
    state: State
    adaptation: DualAveraging | None
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


class Schedule(NamedTuple):
    """Static description of what a row is."""

    thinning: int
    keeps_positions: bool
    keeps_center: bool
    adapts: bool


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
    `num_rows` rows are meaningful.
    """

    def one_row(lanes: Chain, row: Array) -> tuple[Chain, Rows]:
        is_warmup = row < num_warmup_rows
        step_row = partial(_row, sampler, root, schedule)
        return jax.vmap(step_row, (0, None, None))(lanes, row, is_warmup)

    def one_block(lanes: Chain) -> tuple[Chain, Rows]:
        shapes = jax.eval_shape(lambda lanes: one_row(lanes, first_row)[1], lanes)
        buffer = jax.tree.map(lambda s: jnp.zeros((capacity, *s.shape), s.dtype), shapes)

        def body(offset: Array, carry: tuple[Chain, Rows]) -> tuple[Chain, Rows]:
            lanes, buffer = carry
            lanes, row = one_row(lanes, first_row + offset)
            # A slice update is done in place; a scatter (`.at[].set`) copies the buffer in every row.
            write = partial(jax.lax.dynamic_update_index_in_dim, index=offset, axis=0)
            return lanes, jax.tree.map(write, buffer, row)

        return jax.lax.fori_loop(0, num_rows, body, (lanes, buffer))

    return jax.lax.map(one_block, blocks)


@partial(jax.jit, static_argnames=("schedule",))
def start(
    sampler: Sampler, positions: Array, indices: Array, keys: Array, *, schedule: Schedule, observers: Any
) -> Chain:
    """Evaluate the starting positions, block by block; axes (block, lane)."""

    def one_chain(position: Array, index: Array, key: Array) -> Chain:
        adaptation = DualAveraging.start(_step_size(sampler)) if schedule.adapts else None
        return Chain(index, sampler.init(position, key), adaptation, observers)

    return jax.lax.map(lambda args: jax.vmap(one_chain)(*args), (positions, indices, keys))


def _row(
    sampler: Sampler, root: Array, schedule: Schedule, chain: Chain, row: Array, is_warmup: Array
) -> tuple[Chain, Rows]:
    """`thinning` steps of one chain; flips and defects add up, the rest is that of the last step."""
    chain_key = jax.random.fold_in(root, chain.chain)

    def step(offset: Array, carry: tuple[Chain, Info]) -> tuple[Chain, Info]:
        chain, total = carry
        key = jax.random.fold_in(chain_key, row * schedule.thinning + offset)
        tuned = _with_step_size(sampler, chain.adaptation, is_warmup)
        state, info = tuned.step(key, chain.state)
        adaptation = _adapted(sampler, chain.adaptation, info.acceptance_rate, is_warmup)
        return chain._replace(state=state, adaptation=adaptation), _add(total, info)

    zero = jax.tree.map(
        lambda s: jnp.zeros(s.shape, s.dtype),
        jax.eval_shape(lambda s: sampler.step(chain_key, s)[1], chain.state),
    )
    if schedule.thinning == 1:
        chain, total = step(jnp.zeros((), jnp.int32), (chain, zero))
    else:
        chain, total = jax.lax.fori_loop(0, schedule.thinning, step, (chain, zero))
    if chain.observers is not None:
        observers = chain.observers.update(sampler.target.domain, chain.state, ~is_warmup)
        chain = chain._replace(observers=observers)
    return chain, _kept(sampler, schedule, chain, total, is_warmup)


def _kept(sampler: Sampler, schedule: Schedule, chain: Chain, total: Info, is_warmup: Array) -> Rows:
    state, coupling = chain.state, sampler.landscape.coupling
    distance = None
    if coupling.has_center:
        distance = jnp.sqrt(jnp.sum((state.center - coupling.anchor(state.position)) ** 2))
    return Rows(
        levels=encode(sampler.target.domain, state.position) if schedule.keeps_positions else None,
        center=state.center if schedule.keeps_center else None,
        log_density=state.log_density,
        acceptance_rate=total.acceptance_rate / schedule.thinning,
        is_accepted=total.is_accepted,
        num_flips=total.num_flips,
        num_nonfinite=total.num_nonfinite,
        step_size=_current_step_size(sampler, chain.adaptation, is_warmup),
        center_distance=distance,
    )


def encode(domain: Domain, position: Array) -> Array:
    """Levels in the smallest form: bits packed eight to a byte, small integers otherwise."""
    levels = domain.to_levels(position)
    return jnp.packbits(levels, axis=-1) if domain.is_two_level else levels


def _add(total: Info, info: Info) -> Info:
    return Info(
        acceptance_rate=total.acceptance_rate + info.acceptance_rate,
        is_accepted=info.is_accepted,
        num_flips=total.num_flips + info.num_flips,
        num_nonfinite=total.num_nonfinite + info.num_nonfinite,
    )


def has_step_size(sampler: Sampler) -> bool:
    """Whether the sampler has a step size that warm-up could adapt."""
    return _step_size(sampler) is not None


def _step_size(sampler: Sampler) -> Any:
    return sampler.numbers.get("step_size")


def _current_step_size(sampler: Sampler, adaptation: DualAveraging | None, is_warmup: Array) -> Any:
    if adaptation is None:
        return _step_size(sampler)
    return jnp.exp(jnp.where(is_warmup, adaptation.log_step, adaptation.log_average))


def _with_step_size(sampler: Sampler, adaptation: DualAveraging | None, is_warmup: Array) -> Sampler:
    if adaptation is None:
        return sampler
    number = _current_step_size(sampler, adaptation, is_warmup)
    return sampler.replace(blocks=with_numbers(sampler.blocks, {"step_size": number}))


def _adapted(
    sampler: Sampler, adaptation: DualAveraging | None, acceptance_rate: Array, is_warmup: Array
) -> DualAveraging | None:
    if adaptation is None:
        return None
    updated = adaptation.update(acceptance_rate, sampler.target.domain.squared_unit)
    return jax.tree.map(lambda new, old: jnp.where(is_warmup, new, old), updated, adaptation)
