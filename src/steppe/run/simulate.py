"""`simulate`: many steps of many chains, the only loop over steps.

- The key of a step is `fold_in(key of the chain, step)`, so a chain depends neither on how its steps are cut
  into calls nor on the other chains.
- A row is `every` steps, of which the last is looked at. What is observed goes into a buffer of fixed size,
  written by a loop whose length is not part of the program, so any number of rows runs the same code.
- Chains step side by side by `vmap`, on the last axis of every array if the sampler is faster so.
  `over_chains` may map them otherwise, for example in blocks that fit the cache. Only `pool` lets chains know
  of each other.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import PyTree

from steppe.errors import RunError
from steppe.kernel.sampler import Sampler
from steppe.kernel.types import SamplerState, StepInfo
from steppe.random.threefry import unroll
from steppe.run.adaptation.contract import Adaptation

A = TypeVar("A")
O = TypeVar("O")  # noqa: E741 - what an adaptation observes

Count = Array | int
Schedule = Callable[[Array], Mapping[str, Array]]
Observe = Callable[[Sampler, SamplerState, StepInfo], PyTree]
Reduce = Callable[[PyTree, SamplerState, StepInfo, Array], PyTree]
# Axis of chains that step side by side, for collectives of what looks at several of them.
CHAINS = "chains"


@runtime_checkable
class MapChains(Protocol):
    """How a function of one chain becomes a function of all of them: `jax.vmap`, or in blocks."""

    def __call__(self, function: Callable[..., PyTree], /) -> Callable[..., PyTree]:
        """Return the function of all chains."""
        ...


class Simulation(NamedTuple):
    """Chains after some steps, each leaf with the axes of the chains first.

    Attributes
    ----------
    state
        Where the chains are.
    adapted
        What their adaptation has learned, or `None` without one.
    reduced
        What was gathered along the way, or `None`.
    observed
        What was observed after every row, axes (row, chains…), or `None`.
    """

    state: SamplerState
    adapted: PyTree = None
    reduced: PyTree = None
    observed: PyTree = None


class _Chain(NamedTuple):
    """What one chain carries from step to step."""

    state: SamplerState
    adapted: PyTree
    reduced: PyTree


def simulate(
    sampler: Sampler,
    key: Array,
    state: SamplerState,
    num_steps: Count,
    *,
    first_step: Count = 0,
    every: Count = 1,
    observe: Observe | None = None,
    capacity: int | None = None,
    reduce: Reduce | None = None,
    reduced: PyTree = None,
    schedule: Schedule | None = None,
    adapt: Adaptation[A, O] | None = None,
    adapted: A | None = None,
    num_warmup: Count = 0,
    pool: Callable[[O], O] | None = None,
    over_chains: MapChains = jax.vmap,
) -> Simulation:
    """Step many chains many times. May be called inside `jit`; nothing is compiled here.

    Parameters
    ----------
    sampler
        `init` and `step` of one chain.
    key
        A root key, from which chain `i` gets `fold_in(key, i)`, or one key per chain.
    state
        Where the chains are, as `jax.vmap(sampler.init)` gives it.
    num_steps
        Steps of every chain, a multiple of `every`. May be traced if nothing is observed, or with `capacity`.
    first_step
        Number of the first step, from which keys are made: a run in chunks passes the steps made so far.
    every
        Steps per row.
    observe
        `observe(sampler, state, info)` of one chain, kept after every row. `info` sums up the row: mean
        acceptance rate, summed flips and defects; `sampler` has what was adapted after the row, and what a
        schedule says at its first step.
    capacity
        Rows of the buffer, at least `num_steps / every`; needed where that is traced.
    reduce, reduced
        `reduce(reduced, state, info, step)` of one chain after every row, and what it begins with, one per
        chain: statistics at fixed memory. It may ask other chains of the axis `CHAINS` by collectives.
    schedule
        `schedule(step)`: hyper-parameters by name that differ from those of the sampler at a step.
    adapt, adapted
        An adaptation and its state, one per chain; it begins anew where no state is given.
    num_warmup
        Rows that begin before this step adapt; from it on the adaptation is frozen.
    pool
        From what every chain observed in a row to what all of them learn from it. Without it each chain
        learns from its own steps.
    over_chains
        How chains are mapped.

    Returns
    -------
    Simulation
        The chains after the last step, and what was observed, reduced and adapted.
    """
    if isinstance(num_steps, int) and isinstance(every, int) and num_steps % every:
        raise RunError(
            f"`simulate(num_steps={num_steps}, every={every})` must be whole rows: a multiple of `every`."
        )
    keys = key if jnp.ndim(key) else chain_keys(key, jnp.arange(state.log_density.shape[0]))
    if adapt is not None and adapted is None:
        adapted = over_chains(lambda _: adapt.init(sampler))(keys)
    row = _Row(sampler, every, schedule, adapt, num_warmup, pool is not None, reduce, observe)
    is_last = sampler.chains_last and over_chains is jax.vmap
    over = over_chains
    if over_chains is jax.vmap:
        over = partial(jax.vmap, axis_name=CHAINS)
    if is_last:
        over = partial(over, in_axes=(0, -1), out_axes=(-1, 0, 0))
    chains = _put_last(_Chain(state, adapted, reduced)) if is_last else _Chain(state, adapted, reduced)
    num_rows = num_steps if isinstance(every, int) and every == 1 else num_steps // every
    first = jnp.asarray(first_step)

    buffer = None
    if observe is not None:
        rows = int(num_rows) if capacity is None else capacity
        seen = jax.eval_shape(over(partial(row.advance, first)), keys, chains)[2]
        buffer = jax.tree.map(lambda leaf: jnp.zeros((rows, *leaf.shape), leaf.dtype), seen)

    def advance(offset: Array, carry: tuple[_Chain, PyTree]) -> tuple[_Chain, PyTree]:
        step = first + (offset * every).astype(first.dtype)
        chains, learned, seen = over(partial(row.advance, step))(keys, carry[0])
        if adapt is not None and pool is not None:
            chains = chains._replace(adapted=adapt.update(chains.adapted, pool(learned)))
        # A slice update is done in place; a scatter (`.at[].set`) copies the buffer in every row.
        write = partial(jax.lax.dynamic_update_index_in_dim, index=offset, axis=0)
        return chains, jax.tree.map(write, carry[1], seen)

    chains, observed = jax.lax.fori_loop(0, num_rows, advance, (chains, buffer))
    chains = _put_first(chains) if is_last else chains
    return Simulation(chains.state, chains.adapted, chains.reduced, observed)


def _put_last(chains: _Chain) -> _Chain:
    """Return chains with their axis last in every array."""
    return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, -1), chains)


def _put_first(chains: _Chain) -> _Chain:
    return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, 0), chains)


def chain_keys(key: Array, chains: Array) -> Array:
    """Keys of chains from a root key: that of a chain does not depend on how many others there are."""
    return jax.vmap(partial(jax.random.fold_in, unroll(key)))(chains)


class _Row(NamedTuple):
    """How one chain makes one row."""

    sampler: Sampler
    every: Count
    schedule: Schedule | None
    adapt: Adaptation[PyTree, PyTree] | None
    num_warmup: Count
    is_pooled: bool
    reduce: Reduce | None
    observe: Observe | None

    def advance(self, first: Array, key: Array, chain: _Chain) -> tuple[_Chain, PyTree, PyTree]:
        """Make the steps of one row: the chain after them, what it learns from, what is observed."""
        is_warmup = first < self.num_warmup
        # One warm-up decision per row, for all chains: outside warm-up nothing is computed.

        def step(offset: Array, carry: tuple[_Chain, StepInfo]) -> tuple[_Chain, StepInfo]:
            chain, total = carry
            index = first + offset.astype(first.dtype)
            current = self._current(chain.adapted, is_warmup, index)
            state, info = current.step(jax.random.fold_in(key, index), chain.state)
            adapted = self._learn(current, chain.adapted, state, info, is_warmup)
            return chain._replace(state=state, adapted=adapted), _add(total, info)

        if isinstance(self.every, int) and self.every == 1:
            chain, total = step(jnp.zeros((), first.dtype), (chain, _NOTHING))
        else:
            shapes = jax.eval_shape(lambda chain: step(first, (chain, _NOTHING))[1], chain)
            zero = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
            chain, total = jax.lax.fori_loop(0, self.every, step, (chain, zero))
        of_reals = total.real_acceptance_rate
        info = total._replace(
            acceptance_rate=total.acceptance_rate / self.every,
            real_acceptance_rate=None if of_reals is None else of_reals / self.every,
        )
        if self.reduce is not None:
            reduced = self.reduce(chain.reduced, chain.state, info, first)
            chain = chain._replace(reduced=reduced)
        current = self._current(chain.adapted, is_warmup, first)
        learned = None
        if self.adapt is not None and self.is_pooled:
            mean = info._replace(num_flips=info.num_flips / self.every)
            learned = self.adapt.observe(self.sampler, chain.state, mean)
        seen = None if self.observe is None else self.observe(current, chain.state, info)
        return chain, learned, seen

    def _current(self, adapted: PyTree, is_warmup: Array, step: Array) -> Sampler:
        """Return the sampler of a step."""
        sampler = self.sampler if self.schedule is None else self.sampler.replace(self.schedule(step))
        if self.adapt is None:
            return sampler
        used = jax.tree.map(partial(jnp.where, is_warmup), adapted, self.adapt.freeze(adapted))
        return self.adapt.apply(sampler, used)

    def _learn(
        self, sampler: Sampler, adapted: PyTree, state: SamplerState, info: StepInfo, is_warmup: Array
    ) -> PyTree:
        adapt = self.adapt
        if adapt is None or self.is_pooled:
            return adapted
        observed = adapt.observe(sampler, state, info)
        return jax.lax.cond(is_warmup, lambda: adapt.update(adapted, observed), lambda: adapted)


_NOTHING = StepInfo(0, False, 0, 0)  # pyright: ignore[reportArgumentType]


def _add(total: StepInfo, info: StepInfo) -> StepInfo:
    return StepInfo(
        acceptance_rate=total.acceptance_rate + info.acceptance_rate,
        is_accepted=info.is_accepted,
        num_flips=total.num_flips + info.num_flips,
        num_nonfinite=total.num_nonfinite + info.num_nonfinite,
        rungs=info.rungs,
        real_acceptance_rate=_add_rate(total.real_acceptance_rate, info.real_acceptance_rate),
    )


def _add_rate(total: Array | None, rate: Array | None) -> Array | None:
    return rate if total is None or rate is None else total + rate
