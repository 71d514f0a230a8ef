"""Chains in blocks of a fixed width as one compiled program, so that results do not depend on scheduling.

- Blocks run one after another (`lax.map`), each all its rows, so that its chains stay in the cache. A chain
  has the same lane in a block of the same width however many chains there are, so its floating-point results
  are the same.
- Blocks are spread over devices (`shard_map`); each device runs the same program on its own blocks.
- Chains that adapt together make a row in all blocks before the next row begins.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import PyTree

from steppe.domain.base import Domain
from steppe.kernel.blocks.metropolis import AroundBlock
from steppe.kernel.blocks.site_gibbs import SiteGibbsBlock
from steppe.kernel.blocks.table_size import cheapest_table
from steppe.kernel.sampler import Sampler
from steppe.kernel.types import Block, SamplerState, StepInfo, VisitsSites
from steppe.run.adaptation.warmup import Observed, Searches, WarmupAdaptation, center_distance
from steppe.run.devices import BLOCK_AXIS
from steppe.run.observables import Followed, Readings
from steppe.run.observers import Observers
from steppe.run.simulate import CHAINS, chain_keys, simulate
from steppe.run.temperature_ladder import find_tempered

# Positions of a block together, which stay in the second-level cache: on one core, 100 chains of an RBM of
# 784 sites were fastest in one block. Where sites have few neighbours there is no matrix product that chains
# share, and narrower blocks lose nothing: on a lattice of 4096 sites, four to fifty differed by a tenth.
BLOCK_BYTES, BLOCK_BYTES_SPARSE = 2**19, 2**18
MAX_LANES = 128
# Chains that stand last may share the bits of a word; more than one word of them takes twice as long. Words
# of eight chains are the smallest; wider ones pay while all that is drawn for a colour stays in the cache: of
# 100 chains on a lattice, 25 at once were fastest at 1024 sites and eight at once at 4096.
MAX_LANES_LAST = 32
MIN_LANES_LAST, BLOCK_BYTES_LAST = 8, 2**17
# Chains that change one site at a time wait for one another: five in one block took three times as long as
# one after another, a hundred in one block less.
FEW_CHAINS = 32
# Unless each follows its changes site after site: on a lattice, four to eight side by side took half the
# time, sixteen twice the time.
MAX_LANES_IN_TURN = 8
# Those that go from site to site together, or from one table of all sites to the next, gain until their
# caches leave that of the processor.
MAX_LANES_TOGETHER = 20


def choose_chain_block(sampler: Sampler, num_chains: int) -> int:
    """Return how many chains to run side by side: as many as fit the cache, in blocks without idle lanes."""
    recipe, domain = sampler.recipe, sampler.target.domain
    is_sequential = not sampler.chains_last and _visits_sites(sampler)
    is_together = is_sequential and _step_together(sampler)
    if is_sequential and not is_together:
        if _updates_every_site(sampler):
            return _part(num_chains, MAX_LANES_IN_TURN)
        if num_chains < FEW_CHAINS:
            return 1
    ladder = find_tempered(recipe)
    num_states = (sampler.replicas or 1) * (1 if ladder is None else ladder.num_rungs)
    # Chains that stand last are held by their levels while they are swept.
    size = 4 * (domain.num_sites if sampler.chains_last else math.prod(domain.shape)) * num_states
    lanes = MAX_LANES_LAST if sampler.chains_last else MAX_LANES
    is_sparse = sampler.target.interactions is not None and num_states == 1
    most_bytes, fewest = (BLOCK_BYTES_SPARSE if is_sparse else BLOCK_BYTES), 1
    if is_sparse and sampler.chains_last:
        most_bytes, fewest = BLOCK_BYTES_LAST, MIN_LANES_LAST
    most = max(most_bytes // size, fewest)
    most = min(most, MAX_LANES_TOGETHER if is_together else lanes)
    return _part(num_chains, most)


def _part(num_chains: int, most: int) -> int:
    """Chains of a block, of as few blocks as there must be."""
    num_blocks = -(-num_chains // most)
    return -(-num_chains // num_blocks)


def _updates_every_site(sampler: Sampler) -> bool:
    """Whether chains follow changes site after site, so that none waits for another."""
    target, blocks = sampler.target, sampler.recipe.blocks
    if target.incremental is None or not all(isinstance(block, SiteGibbsBlock) for block in blocks):
        return False
    return cheapest_table(target) == 1


def _visits_sites(sampler: Sampler) -> bool:
    """Whether chains change one site, or a few, at a time."""
    return any(isinstance(_unwrap(block), VisitsSites) for block in sampler.recipe.blocks)


def _step_together(sampler: Sampler) -> bool:
    """Whether chains that change one site at a time lose nothing by stepping side by side."""
    blocks, target = sampler.recipe.blocks, sampler.target
    return all(isinstance(block, VisitsSites) and block.steps_together(target) for block in blocks)


def _unwrap(block: Block) -> Block:
    """The block that moves positions, inside those that apply it."""
    return _unwrap(block.block) if isinstance(block, AroundBlock) else block


Seen = tuple[Observers | None, Readings | None]


class Chains(NamedTuple):
    """Everything chains carry from row to row; axes (block, lane, …).

    Attributes
    ----------
    chain
        Number of the chain in every lane; idle lanes are beyond the last chain.
    state, adapted, observers, readings
        Where it is, what its adaptation has learned, its running statistics, and its observables.
    """

    chain: Array
    state: SamplerState
    adapted: Searches | None
    observers: Observers | None
    readings: Readings | None = None


class Rows(NamedTuple):
    """What is kept of a row of one chain, or of many with their axes first."""

    levels: Array | None
    center: Array | None
    log_density: Array
    acceptance_rate: Array
    is_accepted: Array
    num_flips: Array
    num_nonfinite: Array
    step_size: Array | None
    center_distance: Array | None
    coupling_variance: Array | None
    rung_log_density: Array | None = None
    swap_rate: Array | None = None
    replica_rung: Array | None = None
    round_trips: Array | None = None
    reals: Array | None = None
    real_acceptance_rate: Array | None = None
    real_step_size: Array | None = None


class Layout(NamedTuple):
    """What is compiled into the program of a run: what a row is, and how chains are laid out."""

    thinning: int
    keeps_positions: bool
    keeps_center: bool
    adapt: WarmupAdaptation | None
    num_chains: int
    pools: bool
    mesh: Mesh | None
    key_type: str
    followed: Followed | None = None

    def observe(self, sampler: Sampler, state: SamplerState, info: StepInfo) -> Rows:
        """Return what is kept of a row of one chain."""
        parameters = sampler.parameters
        rungs = info.rungs
        is_coupling_adapted = self.adapt is not None and self.adapt.wanted.center_distance is not None
        return Rows(
            levels=encode(sampler.target.domain, state.position) if self.keeps_positions else None,
            center=state.center if self.keeps_center else None,
            log_density=state.log_density,
            acceptance_rate=info.acceptance_rate,
            is_accepted=info.is_accepted,
            num_flips=info.num_flips,
            num_nonfinite=info.num_nonfinite,
            step_size=parameters.get("step_size"),
            center_distance=center_distance(sampler, state),
            coupling_variance=parameters["coupling_variance"] if is_coupling_adapted else None,
            rung_log_density=None if rungs is None else rungs.log_density,
            swap_rate=None if rungs is None else rungs.swap_rate,
            replica_rung=None if rungs is None else rungs.rung.astype(jnp.int16),
            round_trips=None if rungs is None else rungs.round_trips,
            reals=state.reals if self.keeps_positions else None,
            real_acceptance_rate=info.real_acceptance_rate,
            real_step_size=parameters.get("real_step_size"),
        )


@partial(jax.jit, static_argnames=("layout", "capacity"), donate_argnames=("blocks",))
def advance(
    sampler: Sampler,
    root: Array,
    blocks: Chains,
    first_row: Array,
    num_rows: Array,
    num_warmup_rows: Array,
    *,
    layout: Layout,
    capacity: int,
) -> tuple[Chains, Rows]:
    """Advance every block of chains by `num_rows ≤ capacity` rows.

    `blocks` has axes (block, lane); rows come back with axes (block, row, lane), of which the first
    `num_rows` rows are meaningful. `root` is the data of a key.
    """
    program = partial(_advance_blocks, layout, capacity)
    if layout.mesh is not None:
        everywhere, spread = PartitionSpec(), PartitionSpec(BLOCK_AXIS)
        program = jax.shard_map(
            program,
            mesh=layout.mesh,
            in_specs=(everywhere, everywhere, spread, everywhere, everywhere, everywhere),
            out_specs=(spread, spread),
            check_vma=False,  # buffers start as constants and become different on every device
        )
    return program(sampler, root, blocks, first_row, num_rows, num_warmup_rows)


def _advance_blocks(
    layout: Layout,
    capacity: int,
    sampler: Sampler,
    root: Array,
    blocks: Chains,
    first_row: Array,
    num_rows: Array,
    num_warmup_rows: Array,
) -> tuple[Chains, Rows]:
    """Every block all rows before the next begins; chains that pool, every row in all blocks."""
    key = jax.random.wrap_key_data(root, impl=layout.key_type)
    every, domain = layout.thinning, sampler.target.domain
    num_warmup = num_warmup_rows * every

    def look(seen: Seen, state: SamplerState, info: StepInfo, step: Array) -> Seen:
        observers, readings = seen
        if observers is not None:
            observers = observers.update(domain, state, step >= num_warmup)
        if readings is not None and layout.followed is not None:
            row = (step - num_warmup) // every
            follow = partial(layout.followed.update, domain, readings, state, info, row)
            readings = jax.lax.cond(step >= num_warmup, follow, lambda: readings)
        return observers, readings

    def step(chains: Chains, keys: Array | None = None, **how: PyTree) -> tuple[Chains, Rows]:
        done = simulate(
            sampler,
            chain_keys(key, chains.chain) if keys is None else keys,
            chains.state,
            num_rows * every,
            first_step=first_row * every,
            every=every,
            observe=layout.observe,
            capacity=capacity,
            reduce=None if chains.observers is None and chains.readings is None else look,
            reduced=(chains.observers, chains.readings),
            adapt=layout.adapt,
            adapted=chains.adapted,
            num_warmup=num_warmup,
            **how,
        )
        return Chains(chains.chain, done.state, done.adapted, *done.reduced), done.observed

    if not layout.pools:
        return jax.lax.map(step, blocks)
    axis = None if layout.mesh is None else BLOCK_AXIS
    pool = partial(pool_mean, blocks.chain < layout.num_chains, layout.num_chains, axis)
    keys = jax.lax.map(partial(chain_keys, key), blocks.chain)
    blocks, rows = step(blocks, keys, pool=pool, over_chains=over_blocks)
    return blocks, jax.tree.map(lambda array: jnp.moveaxis(array, 0, 1), rows)


def over_blocks(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """Map a function of one chain over lanes side by side, and over blocks one after another."""
    lanes = jax.vmap(function, axis_name=CHAINS)
    return lambda *chains: jax.lax.map(lambda block: lanes(*block), chains)


def pool_mean(counts: Array, num_chains: int, axis: str | None, observed: Observed) -> Observed:
    """Mean over the chains that count, on every device, the same in any order of addition.

    Observations are rounded to multiples of a power of two so small that their sum just fits 31 bits: sums
    of integers do not depend on how chains are spread over blocks, devices and processes.
    """
    scale = 2.0 ** (28 - num_chains.bit_length())

    def mean(values: Array) -> Array:
        whole = jnp.where(counts, jnp.round(values * scale), 0).astype(jnp.int32)
        total = jnp.sum(whole)
        total = total if axis is None else jax.lax.psum(total, axis)
        return total.astype(values.dtype) / (scale * num_chains)

    return jax.tree.map(mean, observed)


@partial(jax.jit, static_argnames=("layout",))
def start(
    sampler: Sampler,
    positions: Array,
    indices: Array,
    keys: Array,
    *,
    layout: Layout,
    observers: Observers | None,
    reals: Array | None = None,
) -> Chains:
    """Evaluate the starting positions, block by block; axes (block, lane)."""

    def one_chain(position: Array, index: Array, key: Array, reals: Array | None) -> Chains:
        adapted = None if layout.adapt is None else layout.adapt.init(sampler)
        readings = None if layout.followed is None else layout.followed.start()
        return Chains(index, sampler.init(position, key, reals), adapted, observers, readings)

    return jax.lax.map(lambda lanes: jax.vmap(one_chain)(*lanes), (positions, indices, keys, reals))


def encode(domain: Domain, position: Array) -> Array:
    """Levels in the smallest form: bits packed eight to a byte, small integers otherwise."""
    levels = domain.to_levels(position)
    return jnp.packbits(levels, axis=-1) if domain.is_two_level else levels
