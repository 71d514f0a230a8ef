"""Samplers on the paper's four bits, beside what enumeration says: `python -m steppe.demo`.

The space has 16 states, so nothing has to be believed: the law a sampler should have, and the law an
unadjusted one has instead, are computed exactly and printed beside the sampled ones.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from rich.console import Console
from rich.progress import track

from steppe import samplers
from steppe.diagnostics.exact import stationary_law, target_law, total_variation, transition_matrix
from steppe.domain import Domain
from steppe.kernel.accept import Metropolis
from steppe.kernel.compose import Recipe
from steppe.kernel.sampler import Sampler
from steppe.kernel.state import State
from steppe.report import bernoulli as layout
from steppe.report.bernoulli import Estimate, Row
from steppe.target import Target
from steppe.targets.bernoulli import PAPER_MODES, paper_bernoulli

OUT = Path("out/demo")
SEED = 0
TABLE_WIDTH = 100
# Each program runs for a second: a third off its compilation is worth more than a tenth of its speed.
SHORT_COMPILATION = {"xla_backend_optimization_level": 1}
LEGEND = (
    "±: one standard error, from independent chains. Noise in TV: what sampling π itself would show. "
    "∇U: value and gradient. ΔU: table of all one-flip differences. Numbers of dula, edula and edmala are "
    "those of the paper's code; with its dmala(.1) a chain needs 116 steps to forget its past, here 5."
)


class Call(NamedTuple):
    """A recipe as one would type it."""

    make: Callable[..., Recipe]
    arguments: tuple[float, ...]

    @property
    def recipe(self) -> Recipe:
        """The recipe with these arguments."""
        return self.make(*self.arguments)

    def __str__(self) -> str:
        numbers = (f"{number:g}".removeprefix("0") or "0" for number in self.arguments)
        return f"{self.make.__name__}({', '.join(numbers)})"


class Entry(NamedTuple):
    """One sampler of the demo.

    Attributes
    ----------
    call
        The sampler and its numbers.
    law
        What it samples from.
    evaluations
        What a step asks of this target: log-densities (U), values with gradients (∇U), or tables of
        one-flip differences (ΔU).
    beside
        A recipe whose law is enumerated and shown below the sampled row.
    """

    call: Call
    law: str
    evaluations: str
    beside: Call | None = None


# Numbers of dula, edula and edmala are those of the paper's code; `LEGEND` says why dmala's is not.
# Couplings differ on purpose: π must not notice. Beside edula stands the dula whose law it would have if U
# were quadratic, with 1/α_eff = 1/α − 1/(4η − α_a) = 1/0.6.
PAPER_DULA = Call(samplers.dula, (0.1225,))
TILTED = Call(samplers.roughness_tilted, (2,))
ENTRIES = (
    Entry(PAPER_DULA, "biased", "1 ∇U", beside=PAPER_DULA),
    Entry(Call(samplers.edula, (0.2, 0.1, 0.1)), "biased", "1 ∇U", beside=Call(samplers.dula, (0.6,))),
    Entry(Call(samplers.dmala, (0.4,)), "π", "1 ∇U"),
    Entry(Call(samplers.edmala, (0.4, 0.1, 0.1)), "π", "1 ∇U"),
    Entry(Call(samplers.edmala_glu, (0.4, 0.5)), "π", "1 ∇U"),
    Entry(Call(samplers.edmala_ou, (0.4, 2, 0.9)), "π", "1 ∇U"),
    Entry(Call(samplers.gwg, (1,)), "π", "1 ∇U"),
    Entry(Call(samplers.gibbs, (1,)), "π", "1 ΔU"),
    Entry(Call(samplers.block_gibbs, (2,)), "π", "4 U"),
    Entry(Call(samplers.hamming_ball, (3, 1)), "π", "1 ΔU"),
    Entry(TILTED, "tilted", "1 ∇U", beside=TILTED),
)


class Budget(NamedTuple):
    """How long every sampler runs: chains side by side, steps dropped and steps kept in each."""

    num_chains: int = 1_024
    num_warmup: int = 200
    num_draws: int = 1_000


DEFAULT_BUDGET = Budget()


class Tally(NamedTuple):
    """Sums over the kept steps of one chain (or, stacked, of all)."""

    visits: Array
    acceptance: Array
    flips: Array


def collect_rows(budget: Budget, entries: Sequence[Entry]) -> Iterator[Row]:
    """Yield the rows of the table: `π`, then every sampler, with the enumerated laws beside them."""
    target = paper_bernoulli()
    keys = jax.random.split(jax.random.key(SEED), len(entries))
    jobs: list[Callable[[], Row]] = [partial(_row, "π, exact", target, target_law(target)[None])]
    for key, entry in zip(keys, entries, strict=True):
        jobs.append(partial(_sampled_row, entry, target, key, budget))
        if entry.beside is not None:
            jobs.append(partial(_enumerated_row, entry, entry.beside, target))
    # Most of the time goes into compiling, which one program does on one core: make several at once.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(lambda job: job(), jobs)


@partial(jax.jit, static_argnames="budget", compiler_options=SHORT_COMPILATION)
def _run(sampler: Sampler, key: Array, budget: Budget) -> Tally:
    """Run independent chains, started evenly over all states, and return their tallies."""
    domain = sampler.target.domain
    starts = domain.from_levels(jnp.resize(_levels(domain), (budget.num_chains, domain.num_sites)))
    states = jnp.arange(domain.num_states)

    def step(state: State, key: Array) -> tuple[State, Tally]:
        state, info = sampler.step(key, state)
        is_here = states == domain.index(state.position)
        return state, Tally(is_here, info.acceptance_rate, info.num_flips)

    def sweep(carry: tuple[State, Tally], now: tuple[Array, Array]) -> tuple[tuple[State, Tally], None]:
        (state, total), (key, is_kept) = carry, now
        state, news = jax.vmap(step)(state, jax.random.split(key, budget.num_chains))
        return (state, jax.tree.map(lambda old, new: old + is_kept * new, total, news)), None

    zero = jnp.zeros(budget.num_chains)
    nothing = Tally(jnp.zeros((budget.num_chains, domain.num_states)), zero, zero)
    num_steps = budget.num_warmup + budget.num_draws
    steps = jax.random.split(key, num_steps), jnp.arange(num_steps) >= budget.num_warmup
    (_, total), _ = jax.lax.scan(sweep, (jax.vmap(sampler.init)(starts), nothing), steps)
    return total


def _sampled_row(entry: Entry, target: Target, key: Array, budget: Budget) -> Row:
    recipe = entry.call.recipe
    sampler = recipe.build(target, audit=False)  # the target is ours, and its gradient is known to be exact
    tally = jax.tree.map(np.asarray, _run(sampler, key, budget))
    decides = any(isinstance(getattr(block, "accept", None), Metropolis) for block in recipe.blocks)
    return _row(
        str(entry.call),
        target,
        tally.visits.astype(float) / budget.num_draws,
        sampler=recipe.name,
        law=entry.law,
        evaluations=entry.evaluations,
        acceptance=float(tally.acceptance.mean() / budget.num_draws) if decides else None,
        flips=float(tally.flips.mean() / budget.num_draws),
    )


def _enumerated_row(entry: Entry, beside: Call, target: Target) -> Row:
    """Row of the law a recipe leaves invariant, from its transition matrix."""
    matrix = transition_matrix(beside.recipe, target)
    law = stationary_law(matrix)
    levels = _levels(target.domain)
    num_flips = (levels[:, None] != levels).sum(axis=-1)
    name = "exact" if beside == entry.call else f"{beside}, exact"
    return _row(f"└ {name}", target, law[None], flips=float(law @ (matrix * num_flips).sum(axis=1)))


def _row(
    label: str,
    target: Target,
    occupancies: np.ndarray,
    sampler: str | None = None,
    law: str = "",
    evaluations: str = "",
    acceptance: float | None = None,
    flips: float | None = None,
) -> Row:
    """Everything but acceptance and flips follows from how often each chain was in each state."""
    occupancy = occupancies.mean(axis=0)
    log_densities = np.asarray(jax.vmap(target.log_density)(target.domain.enumerate()))
    return Row(
        label=label,
        sampler=sampler,
        law=law,
        evaluations=evaluations,
        acceptance=acceptance,
        flips=flips,
        flat_mass=_estimate(occupancies[:, _indices(target, PAPER_MODES.flat)].sum(axis=1)),
        sharp_mass=_estimate(occupancies[:, _indices(target, PAPER_MODES.sharp)].sum(axis=1)),
        log_density=_estimate(occupancies @ log_densities),
        distance=total_variation(occupancy, target_law(target)),
        noise=_expected_noise(occupancies),
        occupancy=occupancy,
    )


def _levels(domain: Domain) -> np.ndarray:
    """Levels of all states, in the order of `domain.enumerate()`."""
    return np.indices(domain.num_levels).reshape(domain.num_sites, -1).T


def _indices(target: Target, states: Sequence[Sequence[int]]) -> np.ndarray:
    return np.asarray(target.domain.index(target.domain.from_levels(np.asarray(states))))


def _estimate(per_chain: np.ndarray) -> Estimate:
    """Mean over chains and its standard error; chains are independent, draws within one are not."""
    if len(per_chain) == 1:
        return Estimate(float(per_chain[0]), None)
    return Estimate(float(per_chain.mean()), float(per_chain.std(ddof=1) / np.sqrt(len(per_chain))))


def _expected_noise(occupancies: np.ndarray) -> float | None:
    """Total variation that a sampler of exactly `π` would show at this budget, from noise alone."""
    if len(occupancies) == 1:
        return None
    errors = occupancies.std(axis=0, ddof=1) / np.sqrt(len(occupancies))
    return float(0.5 * np.sqrt(2 / np.pi) * errors.sum())  # the mean of |normal| is √(2/π) deviations


def reading(rows: Sequence[Row]) -> str:
    """Say what the table shows, with its numbers."""
    target, sampled = rows[0], {row.sampler: row for row in rows if row.sampler}
    edula, tilted = sampled["edula"], sampled["roughness_tilted"]
    return (
        "Samplers of law π have π's masses whatever the coupling: at stationarity they do not prefer flat "
        "modes. Unadjusted ones are flattened by their bias: edula takes the sharp modes from "
        f"{target.sharp_mass.value:.2f} to {edula.sharp_mass.value:.2f} and leaves the flat ones at "
        f"{edula.flat_mass.value:.2f}, as dula does at the larger step .6. Only roughness_tilted, which has "
        f"a law of its own, moves mass to the flat modes: {tilted.flat_mass.value:.2f}."
    )


def main(out: Path = OUT, budget: Budget = DEFAULT_BUDGET, entries: Sequence[Entry] = ENTRIES) -> None:
    """Run the demo: a table to stdout, figures into `out`, progress to stderr."""
    num_rows = 1 + len(entries) + sum(entry.beside is not None for entry in entries)
    rows = list(_with_progress(collect_rows(budget, entries), num_rows))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = TABLE_WIDTH
    title = f"The paper's four bits, {budget.num_chains} chains × {budget.num_draws} steps"
    console.print(layout.table(rows, title, LEGEND))
    console.print(f"\n{reading(rows)}\n\nFigures:")
    for path in layout.write_figures(rows, *PAPER_MODES, out):
        console.print(f"  {path}", soft_wrap=True)


def _with_progress(rows: Iterator[Row], total: int) -> Iterable[Row]:
    console = Console(stderr=True)
    return track(rows, "Sampling", total, console=console, transient=True, disable=not console.is_terminal)


if __name__ == "__main__":
    main()
