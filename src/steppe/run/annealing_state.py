"""State of an annealing: what was asked for, and what was done so far."""

import dataclasses
import math
from typing import NamedTuple

import numpy as np
from jax import Array

from steppe.kernel.sampler import Sampler
from steppe.run.adaptation.follow import FollowAcceptance
from steppe.run.schedule import Adaptive, Schedule
from steppe.run.simulate import Simulation
from steppe.run.until import Until


class Best(NamedTuple):
    """What a chain has met so far, and what its last step did."""

    position: Array
    log_density: Array
    current: Array
    acceptance_rate: Array
    num_flips: Array


class Request(NamedTuple):
    """What is annealed, and how.

    Attributes
    ----------
    sampler, schedule, follow
        How chains move.
    temperatures
        Inverse temperatures at the hot and the cold end, if they were chosen.
    key, num_chains, initial
        How they start.
    num_steps
        Steps of a round; `None`: rounds grow until the time is used up.
    max_rounds
        Rounds at most, infinity if time decides.
    reheats
        Whether later rounds go on from the best states, at the temperature of the largest specific heat.
    time_limit, until
        When to stop.
    """

    sampler: Sampler
    schedule: Schedule | Adaptive
    follow: FollowAcceptance | None
    temperatures: tuple[float, float] | None
    key: Array
    num_chains: int
    initial: Array | None
    num_steps: int | None
    max_rounds: float
    reheats: bool
    time_limit: float | None
    until: Until


@dataclasses.dataclass
class Done:
    """What was done so far: everything that a directory has to keep.

    Attributes
    ----------
    chains
        Chains of the round.
    round, row, num_steps, start
        The round, rows done of it, its steps, and the progress at which it began.
    beta
        Inverse temperature of the next row, where it is led by the chains.
    best_position, best_log_density
        The best state that each chain met in any round.
    best_met, num_idle
        The best log-density of all, and steps since it was found.
    steps, seconds, cpu_seconds
        Work so far.
    rows
        Statistics of every row, each with an axis of chains.
    trace
        Evaluations, seconds and the best log-density after every row.
    met
        Positions met by the ends of rounds, as levels, distinct.
    stopped
        Why it ended; empty while it goes on.
    """

    chains: Simulation
    best_position: np.ndarray
    best_log_density: np.ndarray
    round: int = 0
    row: int = 0
    num_steps: int = 0
    start: float = 0.0
    beta: float = 0.0
    best_met: float = -math.inf
    num_idle: int = 0
    steps: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    rows: list[dict[str, np.ndarray]] = dataclasses.field(default_factory=list)
    trace: list[tuple[float, float, float]] = dataclasses.field(default_factory=list)
    met: dict[bytes, np.ndarray] = dataclasses.field(default_factory=dict)
    stopped: str = ""
