"""What a run is going to do: counts, blocks and rows, checked before anything happens."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

from steppe.errors import RunError
from steppe.validation import choice, count

Keep = Literal["draws", "stats", "none"]

BUFFER_BYTES = 32 * 2**20
MAX_CAPACITY = 16_384
MAX_STEPS = 2**32 - 1
MAX_CHAIN_BLOCK = 2**16


@dataclasses.dataclass(frozen=True)
class Shard:
    """One of several parts of the chains of a run, each run on its own.

    Attributes
    ----------
    index, count
        The part and how many there are; parts count from 0.
    """

    index: int = 0
    count: int = 1

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


@dataclasses.dataclass(frozen=True)
class Plan:
    """The counts of a run.

    Attributes
    ----------
    num_chains, num_warmup, num_draws, thinning
        As given to `sample`. Warm-up is counted in steps and rounded up to whole rows.
    keep
        What leaves the device: draws and statistics, statistics only, or running statistics only.
    chain_block
        Width of the blocks in which chains run; part of what defines the draws.
    shard
        Which of the chains run here: all, or a part of the blocks.
    """

    num_chains: int
    num_warmup: int
    num_draws: int
    thinning: int
    keep: Keep
    chain_block: int
    shard: Shard = Shard()

    @property
    def num_warmup_rows(self) -> int:
        """Rows of warm-up."""
        return -(-self.num_warmup // self.thinning)

    @property
    def num_rows(self) -> int:
        """All rows, warm-up included."""
        return self.num_warmup_rows + self.num_draws

    @property
    def num_blocks(self) -> int:
        """Blocks of chains in the whole run; the last may have idle lanes."""
        return -(-self.num_chains // self.chain_block)

    @property
    def blocks_per_shard(self) -> int:
        """The most blocks that a shard has; some have one fewer."""
        return -(-self.num_blocks // self.shard.count)

    @property
    def own_blocks(self) -> range:
        """Blocks that run here."""
        index, count = self.shard.index, self.shard.count
        return range(index * self.num_blocks // count, (index + 1) * self.num_blocks // count)

    @property
    def own_chains(self) -> range:
        """Chains that run here."""
        blocks = self.own_blocks
        return range(blocks.start * self.chain_block, min(blocks.stop * self.chain_block, self.num_chains))


def make_plan(
    num_chains: Any,
    num_warmup: Any,
    num_draws: Any,
    thinning: Any,
    keep: Any,
    chain_block: Any,
    shard: Any = None,
    choose_block: Callable[[int], int] = lambda num_chains: 1,
) -> Plan:
    """Check the counts of a run; `choose_block(num_chains)` says how wide blocks are where nobody does."""
    num_chains = count("sample(num_chains=...)", num_chains, error=RunError)
    plan = Plan(
        num_chains=num_chains,
        num_warmup=count("sample(num_warmup=...)", num_warmup, 0, error=RunError),
        num_draws=count("sample(num_draws=...)", num_draws, error=RunError),
        thinning=count("sample(thinning=...)", thinning, error=RunError),
        keep=choice("sample(keep=...)", keep, Keep, error=RunError),
        chain_block=choose_block(num_chains)
        if chain_block is None
        else count("sample(chain_block=...)", chain_block, error=RunError),
        shard=_check_shard(shard),
    )
    if chain_block is None and plan.num_blocks < plan.shard.count <= plan.num_chains:
        # Narrower blocks, so that every shard has some of the chains.
        plan = dataclasses.replace(plan, chain_block=plan.num_chains // plan.shard.count)
    if plan.chain_block > MAX_CHAIN_BLOCK:
        raise RunError(f"`sample(chain_block=...)` must be at most {MAX_CHAIN_BLOCK}; got {chain_block!r}.")
    _check_steps(plan)
    if plan.num_blocks < plan.shard.count:
        raise RunError(
            f"{plan.shard.count} shards are too many: some would have no chains, because {plan.num_chains} "
            f"chains in blocks of {plan.chain_block} make {plan.num_blocks} blocks. Use fewer shards or "
            "processes, or more chains."
        )
    return plan


def check_enough_chains(plan: Plan, num_devices: int) -> None:
    """Refuse more devices than chains: a chain, and a ladder of temperatures is one, stays on its device."""
    num_chains = len(plan.own_chains)
    if num_devices > num_chains:
        raise RunError(
            f"`sample(devices=...)` asks for {num_devices} devices for {num_chains} chains, and a chain with "
            "all its rungs or replicas runs on one. Use fewer devices, or more chains."
        )


def longer(plan: Plan, num_draws: Any) -> Plan:
    """Return the plan with more draws per chain."""
    more = count("extend(num_draws)", num_draws, error=RunError, remedy="")
    extended = dataclasses.replace(plan, num_draws=plan.num_draws + more)
    _check_steps(extended)
    return extended


def _check_steps(plan: Plan) -> None:
    """The counter of steps that keys are made from has 32 bits, the last value of which marks the start."""
    num_steps = plan.num_rows * plan.thinning
    if num_steps >= MAX_STEPS or plan.num_chains >= MAX_STEPS:
        raise RunError(
            f"The run would make {num_steps} steps of {plan.num_chains} chains; at most {MAX_STEPS - 1} of "
            "either can be told apart. Ask for fewer, and continue with another key."
        )


def _check_shard(shard: Any) -> Shard:
    """From `(index, count)`."""
    if shard is None:
        return Shard()
    try:
        index, count = shard
        is_right = all(isinstance(n, int) and not isinstance(n, bool) for n in (index, count))
    except (TypeError, ValueError):
        index, count, is_right = 0, 0, False
    if not is_right or not 0 <= index < count:
        raise RunError(f"`sample(shard=...)` must be `(index, count)` with 0 ≤ index < count; got {shard!r}.")
    return Shard(index, count)
