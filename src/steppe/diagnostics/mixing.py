"""What a run says about itself: statistics of the log-density and of chosen observables, and verdicts."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.diagnostics.chain_verdicts import ChainVerdicts, judge_chains, unique_rows
from steppe.diagnostics.quantity import Quantity, measure
from steppe.diagnostics.sites import RHAT_LIMIT, SiteVerdicts, judge_sites
from steppe.diagnostics.streamed import Streamed, StreamedRun
from steppe.diagnostics.swaps import Swaps, measure_swaps
from steppe.diagnostics.tails import Tail, estimate_tail
from steppe.domain import Domain
from steppe.errors import RunError
from steppe.trace import Trace
from steppe.validation import call_back

LOG_DENSITY = "log_density"
# Real coordinates that are summed up one by one.
MAX_REALS = 100

Observables = Mapping[str, Callable[[np.ndarray], ArrayLike]]


class Cost(NamedTuple):
    """What the whole run cost, warm-up included, all chains together.

    Attributes
    ----------
    num_steps
        Steps of all chains.
    num_evaluations
        Evaluations of the model (see `steppe.kernel.cost`); `None` for runs that did not record what a step
        costs.
    seconds
        Time spent stepping, compilation included.
    """

    num_steps: int
    num_evaluations: float | None
    seconds: float


class Mixing(NamedTuple):
    """Everything there is to say about the mixing of a run.

    Attributes
    ----------
    quantities
        The log-density first, then the observables.
    sites
        Verdicts by site, or `None` if levels were not kept.
    chains
        Verdicts by chain.
    chain_means, chain_acceptance_rates, chain_flip_rates
        Mean log-density, acceptance rate and fraction of sites that change in a step, by chain.
    acceptance_rate
        Mean over chains and kept steps.
    flip_rate
        Fraction of sites that change in a step.
    num_unique
        Number of different states among the kept draws (of all replicas), or `None`.
    num_draws
        Kept draws per chain.
    num_replicas
        Replicas in an ensemble, else 1.
    num_nonfinite
        Proposals rejected because the log-density or its gradient was not a number, warm-up included.
    has_step_size
        Whether the sampler has a step size that could be lowered or raised.
    limit
        Largest R-hat of chains that agree.
    swaps
        Statistics of the ladder of a tempered run, else `None`.
    streams
        Observables that were followed while chains ran.
    num_reals
        Real coordinates among the quantities, which come behind the log-density.
    tail
        Mass beyond the largest count of a domain of counts, else `None`.
    """

    quantities: tuple[Quantity, ...]
    sites: SiteVerdicts | None
    chains: ChainVerdicts
    chain_means: np.ndarray
    chain_acceptance_rates: np.ndarray
    chain_flip_rates: np.ndarray
    acceptance_rate: float
    flip_rate: float
    num_unique: int | None
    num_draws: int
    num_replicas: int
    num_nonfinite: int
    has_step_size: bool
    limit: float
    swaps: Swaps | None = None
    streams: tuple[Streamed, ...] = ()
    num_reals: int = 0
    tail: Tail | None = None

    @property
    def log_density(self) -> Quantity:
        """Statistics of the log-density."""
        return self.quantities[0]


@checked(RunError, thinning="[1, inf)", limit="(0, inf)")
def assess(
    trace: Trace,
    *,
    thinning: int = 1,
    observables: Observables | None = None,
    streams: Sequence[Streamed] = (),
    limit: float = RHAT_LIMIT,
) -> Mixing:
    """Look at a trace from all sides.

    Parameters
    ----------
    trace
        The run.
    thinning
        Steps per draw.
    observables
        Functions of a batch of positions, `(batch, *domain.shape)`, that return one number for each.
    streams
        Observables that were followed while chains ran.
    limit
        Largest R-hat of chains that agree, for sites and quantities.
    """
    log_density = _read_log_density(trace)
    levels = trace.levels() if trace.has("levels") else None
    reals = _list_reals(trace)
    measured = {
        LOG_DENSITY: log_density,
        **reals,
        **_observe(trace, levels, observables or {}),
    }
    quantities = (
        *(measure(name, values) for name, values in measured.items()),
        *(one.summarize() for one in streams),
    )
    num_replicas = log_density.shape[2] if log_density.ndim == 3 else 1
    acceptance = _average_by_chain(trace.statistic("acceptance_rate"))
    flips = _average_by_chain(trace.statistic("num_flips")) / (
        thinning * num_replicas * trace.domain.num_sites
    )
    return Mixing(
        quantities=quantities,
        sites=None if levels is None else judge_sites(levels, limit),
        chains=_judge_moving(judge_chains(trace, levels, limit), reals),
        chain_means=_average_by_chain(log_density),
        chain_acceptance_rates=acceptance,
        chain_flip_rates=flips,
        acceptance_rate=float(acceptance.mean()),
        flip_rate=float(flips.mean()),
        num_unique=None if levels is None else unique_rows(levels.reshape(-1, levels.shape[-1]))[0],
        num_draws=log_density.shape[1],
        num_replicas=num_replicas,
        num_nonfinite=int(sum(trace.statistic("num_nonfinite", warmup=w).sum() for w in (False, True))),
        has_step_size=trace.has("step_size"),
        limit=limit,
        swaps=measure_swaps(trace),
        streams=tuple(streams),
        num_reals=len(reals),
        tail=None if levels is None else estimate_tail(trace.domain, levels),
    )


def assess_streamed(followed: StreamedRun, domain: Domain, *, thinning: int, limit: float) -> Mixing:
    """Look at a run of which nothing was kept but what was followed.

    Parameters
    ----------
    followed
        Log-density and observables.
    domain
        Where positions live.
    thinning
        Steps per draw.
    limit
        Largest R-hat of chains that agree.
    """
    height = followed.log_density
    if not height.num_seen.all():
        raise RunError("The run has no draws after warm-up yet. Resume it, or wait for it.")
    num_chains, stands = len(height.mean), followed.flips == 0
    flips = followed.flips / (thinning * domain.num_sites)
    none = np.zeros(num_chains, int)
    return Mixing(
        quantities=tuple(one.summarize() for one in followed.all),
        sites=None,
        chains=ChainVerdicts(stands, none, none - 1, (), (), {}),
        chain_means=height.mean,
        chain_acceptance_rates=followed.acceptance_rates,
        chain_flip_rates=flips,
        acceptance_rate=float(followed.acceptance_rates.mean()),
        flip_rate=float(flips.mean()),
        num_unique=None,
        num_draws=int(height.num_seen.min()),
        num_replicas=1,
        num_nonfinite=0,
        has_step_size=False,
        limit=limit,
        streams=tuple(followed.all),
    )


def count_cost(num_chains: int, num_rows: int, thinning: int, per_step: float | None, seconds: float) -> Cost:
    """Count steps and model evaluations of a run.

    Parameters
    ----------
    num_chains, num_rows
        Chains, and rows of each, warm-up included.
    thinning
        Steps per row.
    per_step
        Model evaluations of one step of one chain, if they are known.
    seconds
        Time spent stepping.
    """
    num_steps = num_chains * num_rows * thinning
    return Cost(num_steps, None if per_step is None else num_steps * per_step, seconds)


def _average_by_chain(values: np.ndarray) -> np.ndarray:
    return values.reshape(len(values), -1).mean(axis=1, dtype=float)


def _read_log_density(trace: Trace) -> np.ndarray:
    if not trace.has(LOG_DENSITY):
        raise RunError(
            "The run kept no statistics, so nothing can be said about its mixing. Sample with `keep='draws'` "
            "or `keep='stats'`; what was kept is in `run.observers`."
        )
    log_density = trace.statistic(LOG_DENSITY)
    if log_density.shape[1] == 0:
        raise RunError("The run has no draws after warm-up yet. Resume it, or wait for it.")
    return log_density


def _list_reals(trace: Trace) -> dict[str, np.ndarray]:
    """Real coordinates of a mixed model by name, (chain, draw) each; of many the first."""
    named: dict[str, np.ndarray] = {}
    for variable, values in trace.real_values():
        flat = values.reshape((*values.shape[:2], -1))
        named |= {name: flat[..., place] for place, name in enumerate(variable.site_names)}
    return dict(list(named.items())[:MAX_REALS])


def _judge_moving(chains: ChainVerdicts, reals: dict[str, np.ndarray]) -> ChainVerdicts:
    """A chain whose real coordinates change is moving, whatever its sites do."""
    moves = [(values != values[:, :1]).any(axis=1) for values in reals.values()]
    return chains._replace(is_constant=chains.is_constant & ~np.any(moves, axis=0)) if moves else chains


def _observe(trace: Trace, levels: np.ndarray | None, observables: Observables) -> dict[str, np.ndarray]:
    if not observables:
        return {}
    if levels is None:
        raise RunError(
            f"Observables {sorted(observables)} need the draws, which this run did not keep. Sample with "
            "`keep='draws'`."
        )
    if LOG_DENSITY in observables:
        raise RunError(f"An observable cannot be called {LOG_DENSITY!r}, which is shown in any case.")
    return {name: _evaluate(name, function, trace, levels) for name, function in observables.items()}


def _evaluate(
    name: str, function: Callable[[np.ndarray], ArrayLike], trace: Trace, levels: np.ndarray
) -> np.ndarray:
    """Apply an observable chain by chain: positions are larger than levels."""
    values, domain, reals = [], trace.domain, trace.real_values()
    for index, chain in enumerate(levels):
        flat = np.asarray(domain.from_levels(chain.reshape(-1, domain.num_sites)))
        positions = domain.unflatten(flat)  # type: ignore[arg-type]
        if reals:
            positions = {**positions, **{variable.name: found[index] for variable, found in reals}}
        result = np.asarray(call_back(f"observables[{name!r}]", function, positions))
        if result.shape != flat.shape[:1]:
            raise RunError(
                f"The observable {name!r} must turn positions of shape {flat.shape} into "
                f"{flat.shape[:1]}, one number each; it returned shape {result.shape}. Reduce the axes "
                "of a position, for example `lambda positions: positions.mean(axis=-1)`."
            )
        values.append(result.reshape(chain.shape[:-1]))
    return np.stack(values)
