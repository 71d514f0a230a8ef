"""`anneal`: run chains while hyper-parameters of the recipe move along a schedule, and keep the best states.

This is optimisation with samplers. While numbers move, no distribution is left invariant, and the result says
nothing about probabilities.
"""

import dataclasses
import math
from contextlib import nullcontext
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.compiling import pad_rows, quick_jit
from steppe.domain import Domain
from steppe.errors import RunError
from steppe.kernel.blocks.chromatic import ChromaticBlock
from steppe.kernel.compose import Recipe
from steppe.kernel.sampler import Sampler
from steppe.kernel.start import check_start, flatten_start
from steppe.presented import Presented
from steppe.recommend import recommend_for_search
from steppe.run.adaptation.follow import FollowAcceptance
from steppe.run.annealing_state import Done, Request
from steppe.run.cooling import cool
from steppe.run.progress import count_bar
from steppe.run.rounds import begin, carry_on, count_rows
from steppe.run.schedule import Adaptive, Schedule, check_schedule
from steppe.run.storage.annealing import AnnealingDirectory
from steppe.run.temperature_range import choose_temperatures
from steppe.run.until import Until
from steppe.target import Target
from steppe.validation import count, positive, random_key

if TYPE_CHECKING:
    from steppe.results import Results

# Chains that stand on the last axis are vectors, or bits of words: 64 cost little more than one, while their
# positions stay in the cache. In the same time fewer chains make more sweeps, which large problems gain more
# from: on Gset's G70, of 10 000 nodes, 48 chains found 99.67 % of the best known cut in 10 s, 16 99.76 %.
MANY_CHAINS, FEW_CHAINS, VECTOR, WORD = 64, 4, 16, 32
CACHE_BYTES = 2**19
MANY_SITES = 4096
DEFAULT_STEPS = 1000


class LocalOptima(NamedTuple):
    """Local maxima of the log-density, best first, each once up to the symmetry of the target.

    Attributes
    ----------
    positions
        One per row.
    log_density
        Their log-densities.
    num_met
        How many of the states that chains met led to each.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.max_cut([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])
    >>> optima = steppe.anneal(target, key=jax.random.key(0), num_steps=32).local_optima()
    >>> float(optima.log_density[0])  # the largest cut has four of the five edges
    4.0
    """

    positions: np.ndarray
    log_density: np.ndarray
    num_met: np.ndarray


@dataclasses.dataclass(frozen=True)
class Annealed(Presented):
    """What an annealed run found; the first axis counts chains.

    Attributes
    ----------
    best_position, best_log_density
        The best state each chain has met, replicas of an ensemble included.
    position, center, log_density
        Where each chain ended; replicas of an ensemble are on the second axis.
    history
        Figures along the way, each of shape (chains, rows): `progress`, `round`, `log_density` (of the best
        replica), `best_log_density`, `acceptance_rate`, `num_flips`, and every scheduled or adapted number.
    trace
        `evaluations` (of all chains), `seconds` and `best_log_density` after every row of the history.
    target, recipe, reason
        What was annealed, how, and why that way.
    num_rounds, stopped
        Rounds begun, and why it ended.
    shortfall
        What `until(value=...)` asked for and was not reached, in a sentence; or empty.
    cpu_seconds
        Processor time of the steps, compiling not counted.
    met
        Distinct states at the ends of rounds, from which `local_optima` begins.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((8, 8), coupling=1.0)
    >>> found = steppe.anneal(target, key=jax.random.key(0), num_steps=100)
    >>> float(found.best_log_density.max())  # all 128 bonds are satisfied
    128.0
    >>> abs(int(found.best.sum()))
    64
    """

    best_position: Array
    best_log_density: Array
    position: Array
    center: Array | None
    log_density: Array
    history: dict[str, np.ndarray]
    trace: dict[str, np.ndarray]
    target: Target
    recipe: Recipe
    reason: str
    num_rounds: int
    stopped: str
    cpu_seconds: float
    met: np.ndarray
    shortfall: str = ""

    @property
    def best(self) -> Array:
        """The best position of all chains."""
        return self.best_position[int(np.argmax(np.asarray(self.best_log_density)))]

    def local_optima(self) -> LocalOptima:
        """Search locally from every state that chains met at the ends of rounds, and merge what is the same.

        States that the target's symmetry maps onto each other, such as a cut and its mirror image, count
        once.
        """
        from steppe.diagnostics.flatness import local_search
        from steppe.modes.local_search import merge_same
        from steppe.modes.merge import canonicalize

        found = local_search(self.target, self.met)
        modes = canonicalize(self.target, found.modes)
        merged = merge_same(modes, np.asarray(found.mode_log_density), np.ones((len(modes), 1), int))
        order = np.argsort(-merged.log_density, kind="stable")
        return LocalOptima(merged.states[order], merged.log_density[order], merged.visits[order, 0])

    def present(self) -> "Results":
        """Return what every chain found as results."""
        from steppe.report.present_annealed import present_annealed

        return present_annealed(self)


@checked(RunError)
def anneal(
    target: Target,
    recipe: Recipe | None = None,
    schedule: Schedule | Adaptive | None = None,
    *,
    key: Array,
    num_steps: int | None = None,
    num_chains: int | None = None,
    restarts: int | None = None,
    reheat: bool = False,
    time_limit: float | None = None,
    until: Until | None = None,
    initial: ArrayLike | None = None,
    adapt: bool = True,
    out: str | PathLike[str] | None = None,
    progress: bool | None = None,
) -> Annealed:
    """Run chains along a schedule and return the best states met.

    Parameters
    ----------
    target
        What to optimise.
    recipe
        How to move; by default the recipe recommended for searching the target.
    schedule
        From progress in [0, 1] to the numbers that move, such as
        `steppe.parameter_schedule(inverse_temperature=steppe.geometric_schedule(0.5, 20.0))`, or what
        `steppe.adaptive_schedule` makes. It may move any number of the recipe; none of them recompiles
        anything. By default the inverse temperature rises at a constant factor between two that are chosen
        from the target's own differences, and the replicas of an ensemble are tied tighter all the way.
    key
        Random key; the same key, chains and steps give the same result.
    num_steps
        Steps per chain and round, rounded up to whole rows of the history; 1000 by default. Where only a time
        is given, rounds begin with 64 steps and double, and the last one takes all the time left.
    num_chains
        Number of independent chains; by default 4, and where the sampler moves chains side by side, as
        `chromatic_gibbs` does, 64 or as many as fit the cache.
    restarts
        Rounds after the first one; by default none, or as many as the time or the patience allows.
    reheat
        Whether later rounds go on from the best state of every chain, at the temperature at which the
        specific heat `β² Var(U)` of the first was largest, instead of starting anew.
    time_limit
        Seconds to anneal, compiling not counted; at least one row of steps is made.
    until
        When to stop earlier, as `steppe.until` makes it.
    initial
        Starting positions of the first round, one per chain; by default random ones where the log-density is
        finite.
    adapt
        Let the step size follow an acceptance rate of 0.574 all the way, unless the schedule sets it or the
        recipe is unadjusted.
    out
        A directory from which a call with the same arguments goes on, after a kill too; more time and more
        restarts are welcome.
    progress
        Show a progress bar with the best log-density so far; by default when standard error is a terminal.

    Notes
    -----
    Stationary distribution: none. Numbers that move leave nothing invariant; use `steppe.sample` for draws.

    Where sites have two levels and few neighbours, as in sparse graphs, chains are put together after every
    round: of each region in which the best state and another one differ, the better side is taken. That may
    change the best state of one chain, and nothing else, unless the next round begins from the best states.

    Examples
    --------
    >>> import jax, steppe
    >>> from steppe.targets import ising_lattice
    >>> found = steppe.anneal(ising_lattice((8, 8), 1.0), key=jax.random.key(0), num_steps=100)
    >>> float(found.best_log_density.max())
    128.0
    """
    request, reason = _read(
        target, recipe, schedule, random_key("anneal", key), num_steps, num_chains, restarts, reheat,
        time_limit, until, initial, adapt,
    )  # fmt: skip
    done = begin(request)
    directory = None if out is None else AnnealingDirectory(Path(out), request)
    total = _find_total(request)
    with count_bar("annealing", total, progress) as report, directory or nullcontext() as saved:
        if saved is not None:
            saved.restore(done)

        def after_row(done: Done) -> bool:
            report(_measure_done(request, done, total), f"best U = {done.best_met:.6g}")
            return saved is not None and saved.save_in_time(done)

        carry_on(request, done, after_row)
        if saved is not None:
            saved.save(done)
    return _collect(request, done, reason)


def _read(
    target: Target,
    recipe: Recipe | None,
    schedule: Schedule | Adaptive | None,
    key: Array,
    num_steps: int | None,
    num_chains: int | None,
    restarts: int | None,
    reheat: bool,
    time_limit: float | None,
    until: Until | None,
    initial: ArrayLike | None,
    adapt: bool,
) -> tuple[Request, str]:
    """Check the arguments and fill in what was left out."""
    reason = "it was given"
    if recipe is None:
        recipe, reason = recommend_for_search(target)
    sampler, temperatures = recipe.build(target, audit=False), None
    if schedule is None or isinstance(schedule, Adaptive):
        temperatures = choose_temperatures(target, jax.random.fold_in(key, 0), initial)
    if schedule is None:
        assert temperatures is not None
        schedule = cool(recipe, target, temperatures)
    moved = () if isinstance(schedule, Adaptive) else check_schedule(recipe, schedule)
    if num_chains is None:
        num_chains = _choose_chains(sampler)
    until = until or Until()
    if time_limit is not None:
        time_limit = positive(
            "anneal(time_limit=...)", time_limit, error=RunError, remedy="Leave it out to set `num_steps`."
        )
    is_timed = time_limit is not None or until.cpu_seconds is not None
    if num_steps is None and not is_timed:
        num_steps = DEFAULT_STEPS
    max_rounds = math.inf if is_timed or until.patience is not None else 1
    if restarts is not None:
        max_rounds = 1 + count("anneal(restarts=...)", restarts, minimum=0)
    num_chains = count("anneal(num_chains=...)", num_chains)
    is_followed = (
        adapt and recipe.is_adjusted and "step_size" in sampler.parameters and "step_size" not in moved
    )
    if initial is not None:
        initial = flatten_start(target.domain, initial)
        check_start(target, initial, batched=True, num_chains=num_chains)
    request = Request(
        sampler=sampler,
        schedule=schedule,
        follow=FollowAcceptance(target.domain.squared_unit) if is_followed else None,
        temperatures=temperatures,
        key=key,
        num_chains=num_chains,
        initial=None if initial is None else jnp.asarray(initial, jnp.result_type(float)),
        num_steps=None if num_steps is None else count("anneal(num_steps=...)", num_steps),
        max_rounds=max_rounds,
        reheats=reheat,
        time_limit=time_limit,
        until=until,
    )
    return request, reason


def _choose_chains(sampler: Sampler) -> int:
    if not sampler.chains_last:
        return FEW_CHAINS if sampler.target.domain.num_sites < MANY_SITES else 1
    blocks = sampler.recipe.blocks
    is_packed = any(isinstance(block, ChromaticBlock) and block.spins is not None for block in blocks)
    num_vectors = CACHE_BYTES // (4 * VECTOR * math.prod(sampler.target.domain.shape))
    return int(np.clip(VECTOR * num_vectors, WORD if is_packed else VECTOR, MANY_CHAINS))


def _find_total(request: Request) -> float:
    """Length of the progress bar, in seconds or rows."""
    if request.time_limit is not None or request.until.cpu_seconds is not None:
        return min(request.time_limit or math.inf, request.until.cpu_seconds or math.inf)
    num_rounds = 1 if math.isinf(request.max_rounds) else int(request.max_rounds)
    return sum(count_rows(request.num_steps or 0, round_) for round_ in range(num_rounds))


def _measure_done(request: Request, done: Done, total: float) -> float:
    if request.time_limit is not None:
        return min(done.seconds, total)
    return min(done.cpu_seconds, total) if request.until.cpu_seconds is not None else len(done.rows)


def _collect(request: Request, done: Done, reason: str) -> Annealed:
    end, domain = done.chains.state, request.sampler.target.domain
    history = {name: np.stack([row[name] for row in done.rows], axis=1) for name in done.rows[0]}
    trace = np.asarray(done.trace).T
    met = np.stack(list(done.met.values())) if done.met else np.zeros((0, domain.num_sites), np.int32)
    return Annealed(
        best_position=jnp.asarray(done.best_position),
        best_log_density=jnp.asarray(done.best_log_density, jnp.result_type(float)),
        position=end.position,
        center=end.center,
        log_density=end.log_density,
        history=history,
        trace=dict(zip(("evaluations", "seconds", "best_log_density"), trace, strict=True)),
        target=request.sampler.target,
        recipe=request.sampler.recipe,
        reason=reason,
        num_rounds=done.round + 1,
        stopped=done.stopped,
        cpu_seconds=done.cpu_seconds,
        met=np.asarray(_find_positions(pad_rows(met), domain))[: len(met)],
        shortfall=request.until.describe_shortfall(float(done.best_log_density.max())),
    )


@partial(quick_jit, static_argnames="domain")
def _find_positions(levels: Array, domain: Domain) -> Array:
    return domain.from_levels(levels)
