"""What a run is going to do: counts, blocks and rows, checked before anything happens."""

import dataclasses
from typing import Any, Literal

import numpy as np

from steppe.errors import RunError

Keep = Literal["draws", "stats", "none"]

# Four chains fill the vector units on models of a few hundred sites and fit the cache on models of a
# hundred thousand.
DEFAULT_CHAIN_BLOCK = 4

BUFFER_BYTES = 32 * 2**20
MAX_CAPACITY = 16_384


@dataclasses.dataclass(frozen=True)
class Plan:
    """The counts of a run.

    Attributes
    ----------
    num_chains, num_warmup, num_draws, thinning
        As given to `sample`. Warm-up is counted in steps and rounded up to whole rows.
    keep
        What leaves the device: draws and statistics, statistics only, or running figures only.
    chain_block
        Width of the blocks in which chains run; part of what defines the draws.
    """

    num_chains: int
    num_warmup: int
    num_draws: int
    thinning: int
    keep: Keep
    chain_block: int

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
        """Blocks of chains; the last may have idle lanes."""
        return -(-self.num_chains // self.chain_block)


def make_plan(
    num_chains: Any, num_warmup: Any, num_draws: Any, thinning: Any, keep: Any, chain_block: Any
) -> Plan:
    """Check the counts of a run."""
    if keep not in Keep.__args__:
        raise RunError(f"`sample(keep=...)` must be one of {list(Keep.__args__)}; got {keep!r}.")
    return Plan(
        num_chains=_whole("num_chains", num_chains, 1),
        num_warmup=_whole("num_warmup", num_warmup, 0),
        num_draws=_whole("num_draws", num_draws, 1),
        thinning=_whole("thinning", thinning, 1),
        keep=keep,
        chain_block=DEFAULT_CHAIN_BLOCK if chain_block is None else _whole("chain_block", chain_block, 1),
    )


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise RunError(f"`sample({name}=...)` must be an integer of at least {least}; got {value!r}.")
    return int(value)
