"""Further samplers of `π`: other proposals, cycles of step sizes, replicas at several temperatures."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.errors import CompositionError, RecipeError
from steppe.kernel.acceptance import Metropolis
from steppe.kernel.blocks.cycle import BALANCED, CycleBlock, fall_by_cosine, follow_factors
from steppe.kernel.blocks.isoenergetic import IsoenergeticBlock
from steppe.kernel.blocks.metropolis import ConditionalDraw, ProposalBlock
from steppe.kernel.blocks.tempering import Fate, TemperedBlock
from steppe.kernel.compose import Recipe, recipe
from steppe.kernel.density import NoPenalty
from steppe.kernel.logistic_coupling import LogisticCoupling
from steppe.kernel.proposals.center import CenterRefresh
from steppe.kernel.proposals.discrete_langevin import DiscreteFlow, DiscreteLangevin
from steppe.kernel.proposals.path_auxiliary import PathAuxiliary
from steppe.kernel.proposals.site_proposal import Balancing, Differences, choose_weights
from steppe.pytree import Relative
from steppe.samplers.langevin import ADJUSTED_STEP, COUPLING_VARIANCE, dmala
from steppe.samplers.registry import register
from steppe.validation import choice, count, flag, number, positive, real_array, shorten, within

__all__ = ["dlmc", "dmala_cyclical", "hiss", "parallel_tempering", "pas"]

FLOW_STEP = Relative(0.5)
PATH_STEP = Relative(3.0)
MAX_FLIPS = {"uniform": 3, "poisson": 16}
PathLength = Literal["uniform", "poisson"]
# Rungs of a ladder before it is adapted.
NUM_RUNGS = 12
MAX_RUNGS = 4096


@register(
    family="Langevin, adjusted",
    summary="sites follow their own jump process for a time, then a decision",
    cost="1",
    stationary="π",
    color="#0044AA",
    marker="H",
    reference="Sun, Dai, Dai, Zhou, Schuurmans (2023), *Discrete Langevin samplers via Wasserstein gradient "
    "flow*.",
)
def dlmc(*, step_size: float | None = None) -> Recipe:
    """Discrete Langevin Monte Carlo (Sun et al. 2023): `dmala` whose sites follow a jump process for a time.

    Parameters
    ----------
    step_size
        `α > 0`, default 0.5 units: the time for which sites jump is `α` in units. Raising it proposes more
        flips and lowers the acceptance rate.

    Notes
    -----
    Stationary distribution: `π` exactly. Where sites are nearly independent a proposal is nearly a draw from
    `π`, so in high
    dimension it flips more sites than `dmala`; on four bits with strong interactions fewer. Cost: one
    evaluation.

    Examples
    --------
    >>> import steppe
    >>> from steppe.diagnostics.exact import exact_tv
    >>> exact_tv(steppe.dlmc(step_size=1.0), steppe.targets.paper_bernoulli()) < 1e-6
    True
    """
    α = positive("dlmc(step_size=...)", step_size, FLOW_STEP)
    return recipe("dlmc", ProposalBlock(DiscreteFlow(α), Metropolis()))


@register(
    family="few sites by gradient",
    summary="`gwg` with a random number of sites",
    cost="1",
    stationary="π",
    color="#DDAACC",
    marker="|",
    reference="Sun, Dai, Xia, Ramamurthy (2022), *Path auxiliary proposal for MCMC in discrete space*.",
)
def pas(
    *,
    max_flips: int | None = None,
    path_length: PathLength = "uniform",
    step_size: float | None = None,
    balancing: Balancing = "sqrt",
    differences: Differences = "auto",
) -> Recipe:
    """Path-auxiliary sampler (Sun et al. 2022, fast form): `gwg` with a random number of flips.

    Parameters
    ----------
    max_flips
        Longest path, at least 1, by default 3 for uniform lengths and 16 for Poisson ones. Raising it changes
        more sites per evaluation and lowers the acceptance rate.
    path_length
        `"uniform"`: from 1 to `max_flips`. `"poisson"`: Poisson, given that it is from 1 to `max_flips`, with
        a mean that warm-up adapts to the acceptance rate (Sun et al. 2023, iSCO).
    step_size
        `α > 0`, default 3 units, of Poisson lengths: their mean is `α` in units. Raising it flips more sites
        and lowers the acceptance rate.
    balancing
        How a change with ratio of densities `t` is weighed: `"sqrt"` (√t), `"barker"` (t/(1+t)), `"min"`
        (min(1, t)) or `"max"` (max(1, t)). Bounded ones (barker, min) do better on steep targets, where
        √t always goes back to where it came from.
    differences
        `"gradient"`: changes are predicted from the gradient. `"exact"`: from tables of exact differences,
        one there and one back, and no gradient is taken. `"auto"`: exact where the target makes tables and
        its gradient explains less than half of them at random states.

    Notes
    -----
    Stationary distribution: `π` exactly. Unlike `gwg` with several flips it keeps no parity. Cost: one
    evaluation for any length, with exact differences also two tables.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((4, 4), coupling=0.2)
    >>> run = steppe.sample(target, steppe.pas(max_flips=3), key=jax.random.key(0), num_draws=200)
    >>> run.recipe.name, run.levels.shape
    ('pas', (4, 200, 16))
    """
    weighed = choose_weights("pas", balancing, differences)
    is_poisson = choice("pas(path_length=...)", path_length, PathLength) == "poisson"
    if step_size is not None and not is_poisson:
        raise RecipeError(
            "`pas(step_size=...)` is the mean of Poisson lengths: give `path_length='poisson'`."
        )
    longest = count("pas(max_flips=...)", MAX_FLIPS[path_length] if max_flips is None else max_flips)
    mean = positive("pas(step_size=...)", step_size, PATH_STEP) if is_poisson else None
    return recipe("pas", ProposalBlock(PathAuxiliary(longest, mean, **weighed), Metropolis()))


@register(
    family="Langevin, adjusted",
    summary="fresh logistic center, then `dmala` given it",
    cost="1",
    stationary="π",
    color="#999933",
    marker="_",
    reference="Mohanty, Bhattacharya, Zhang, *Hyperbolic secant-squared Gibbs sampling* (HiSS).",
)
def hiss(*, step_size: float | None = None, coupling_variance: float | None = None) -> Recipe:
    """Hyperbolic-secant-squared Gibbs sampling: `edmala_glu` with a logistic in place of the Gaussian.

    Parameters
    ----------
    step_size
        `α > 0`, default 0.2 units, as in `dmala`.
    coupling_variance
        `η > 0`, the variance of the center about the position, default 1 unit; the logistic has the scale
        `s = √(3η)/π`. Raising it loosens the tie.

    Notes
    -----
    Stationary distribution: the joint `exp{U(θ)} ∏_i sech²((θ_i − a_i)/(2s))` exactly, so the position has
    distribution `π` for every `η`. The tails of a logistic are heavier than those of a Gaussian: a center far
    away pulls with at most `1/s`. Cost: one evaluation per full sweep (center and position).

    Examples
    --------
    >>> import steppe
    >>> steppe.hiss(coupling_variance=0.5).is_adjusted
    True
    """
    return recipe(
        "hiss",
        ConditionalDraw(CenterRefresh()),
        ProposalBlock(
            DiscreteLangevin(positive("hiss(step_size=...)", step_size, ADJUSTED_STEP)), Metropolis()
        ),
        coupling=LogisticCoupling(
            positive("hiss(coupling_variance=...)", coupling_variance, COUPLING_VARIANCE)
        ),
    )


@register(
    family="Langevin, adjusted",
    summary="`dmala` in a cycle of n moves, from bold to careful",
    cost="n",
    stationary="π",
    color="#77AADD",
    marker="8",
    reference="Pynadath, Bhattacharya, Hariharan, Zhang (2024), *Gradient-based discrete sampling with "
    "automatic cyclical scheduling*; every move adjusted here.",
)
def dmala_cyclical(
    *,
    step_size: float | None = None,
    cycle_length: int = 4,
    smallest: float | None = None,
    balancing: float | None = None,
) -> Recipe:
    """`dmala` whose step is a cycle from bold to careful moves, each with its own decision (ACS).

    Parameters
    ----------
    step_size
        `α > 0`, the largest of the cycle. Raising it makes the bold moves bolder, and less often accepted.
    cycle_length
        Number of moves in the cycle, at least 1. Raising it puts more of them between bold and careful, for
        an evaluation each.
    smallest
        The smallest step size relative to the largest, in (0, 1]; they fall by half a cosine until they reach
        it. Raising it makes the careful moves bolder; 1 is `dmala` over and over.
    balancing
        `β` of the boldest move, in [0.5, 1): changes are weighed by `exp(β Δ)`, and `β` falls with the step
        size to a half, where small steps are balanced. Raising it lets bold moves follow the gradient
        further.

    Notes
    -----
    Stationary distribution: `π` exactly: every move leaves it alone. Not reversible.
    Where none of `step_size`, `smallest` and `balancing` is given, they are adapted before a run, as the
    paper does it: the smallest step size is accepted as often as wanted at `β = 1/2`, the largest is the
    largest that still is at `β = 0.95`, and every move in between has the `β` that is accepted most often.
    Otherwise, and without adaptation, they are 0.2 units, 0.1 and a half. Cost: `cycle_length` evaluations.

    Examples
    --------
    >>> import steppe
    >>> from steppe.diagnostics.exact import exact_tv
    >>> recipe = steppe.dmala_cyclical(step_size=2.0, cycle_length=4, smallest=0.1)
    >>> exact_tv(recipe, steppe.targets.paper_bernoulli()) < 1e-6
    True
    """
    name = "dmala_cyclical"
    is_adapted = step_size is None and smallest is None and balancing is None
    α = positive(f"{name}(step_size=...)", step_size, ADJUSTED_STEP)
    last = within(f"{name}(smallest=...)", 0.1 if smallest is None else smallest, "(0, 1]")
    β = within(f"{name}(balancing=...)", BALANCED if balancing is None else balancing, "[0.5, 1)")
    factors = fall_by_cosine(count(f"{name}(cycle_length=...)", cycle_length), float(last))
    places = jnp.asarray(factors), jnp.asarray(follow_factors(factors, float(β)))
    decide = ProposalBlock(DiscreteLangevin(α, exponent=BALANCED), Metropolis())
    return recipe(name, CycleBlock(decide, *places, "adapted" if is_adapted else "fixed"))


@register(
    family="several temperatures",
    summary="any of these at k temperatures, with swaps",
    cost="k · those of the base",
    stationary="π",
    color="#225555",
    marker="x",
    reference="Swendsen, Wang (1986); Geyer (1991).",
)
def parallel_tempering(
    *,
    base: Recipe | None = None,
    inverse_temperatures: Sequence[float] | None = None,
    num_rungs: int | None = None,
    hottest: float | None = None,
    reference: ArrayLike | None = None,
    cluster_moves: bool = False,
) -> Recipe:
    """Any adjusted recipe without center, run at several temperatures whose replicas swap places.

    Parameters
    ----------
    base
        How each replica moves, `dmala()` by default.
    inverse_temperatures
        `β_r`, increasing from 0 or more to 1. By default they are adapted before a run (see
        `steppe.tune_ladder`), with the step size at each.
    num_rungs
        Number of temperatures, if they are adapted; by default about twice the barrier `Λ` of the target, and
        one more.
    hottest
        `β` of the hottest rung, if rungs are adapted. By default 0 where at most 12 rungs are needed, where
        `num_rungs` or a `reference` is given, and for log Z; else the largest `β` up to 0.5 at which 16 steps
        of the base forget a state found at `β = 1`, and 0 if there is none. Raising it saves rungs, and goes
        too far where the base does not mix at the hot end.
    reference
        Probabilities of the product distribution `ρ` at `β = 0`, uniform by default: of the upper level of
        every site on two levels, or (site, level). One near the target, such as `steppe.mean_field(target)`
        or that of an RBM without its weights, lowers the barrier. Rung `r` has the density
        `ρ^{1 − β_r} exp{β_r U}`.
    cluster_moves
        Run two ladders, and let replicas of the same rung exchange clusters of sites at which they differ
        (isoenergetic moves, Houdayer 2001), for sums over pairs of sites on sparse graphs such as planar
        ones. Refused where clusters percolate. The first ladder is what is seen; the cost is twice as high.

    Notes
    -----
    Stationary distribution: the product of `exp{β_r U}` exactly; what is seen is the replica at `β = 1`, of
    distribution `π`. A step moves every replica once and offers every second pair of neighbours a swap, even
    and odd pairs in turns. Cost: that of the base, times the number of temperatures.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((4, 4), coupling=0.6)  # two modes: all spins up, all down
    >>> sweeps = steppe.gibbs(num_updates=16)
    >>> recipe = steppe.parallel_tempering(base=sweeps, inverse_temperatures=[0.2, 0.5, 0.8, 1])
    >>> run = steppe.sample(target, recipe, key=jax.random.key(0), num_draws=1000)
    >>> bool(abs(run.positions.mean()) < 0.3)  # both are visited
    True
    """
    name = "parallel_tempering"
    moves = dmala() if base is None else base
    if not isinstance(moves, Recipe) or not can_be_tempered(moves):
        raise CompositionError(
            f"`{name}(base=...)` needs an adjusted recipe without center, such as `dmala()`, `gwg()` or "
            f"`gibbs()`; got {moves!r}."
        )
    if inverse_temperatures is not None and num_rungs is not None:
        raise RecipeError(f"`{name}` takes `inverse_temperatures` or `num_rungs`, which is their number.")
    if num_rungs is not None:
        count(f"{name}(num_rungs=...)", num_rungs, 2)
        if num_rungs > MAX_RUNGS:
            raise RecipeError(
                f"`{name}(num_rungs=...)` must be at most {MAX_RUNGS}, a replica each; got {num_rungs!r}."
            )
    start = 0.0 if hottest is None else float(within(f"{name}(hottest=...)", hottest, "[0, 1)"))
    fate: Fate = "fixed"
    if inverse_temperatures is None:
        betas = start + (1 - start) * np.linspace(0, 1, NUM_RUNGS if num_rungs is None else num_rungs) ** 2
        is_found = hottest is None and reference is None
        fate = "placed" if num_rungs is not None else "adapted" if is_found else "sized"
    else:
        betas = np.array(_check_ladder(name, inverse_temperatures))
        if hottest is not None:
            raise RecipeError(f"`{name}` takes `inverse_temperatures` or `hottest`, which is their first.")
    logs = None
    if reference is not None:
        logs = check_reference(f"{name}(reference=...)", reference)
        if not moves.blocks[0].takes_field:
            raise CompositionError(
                f"`{name}(reference=...)` needs a base that takes one, such as `dmala()`, `gwg()`, `pas()` "
                f"or `layerwise_gibbs()` of an RBM; got {moves!r}."
            )
    block = TemperedBlock(moves.blocks[0], jnp.asarray(betas), jnp.ones(len(betas)), logs, fate)
    if not flag(f"{name}(cluster_moves=...)", cluster_moves, error=RecipeError):
        return recipe(name, block, penalty=moves.penalty)
    if not isinstance(moves.penalty, NoPenalty):
        raise CompositionError(
            f"`{name}(cluster_moves=True)` exchanges clusters at equal log-density, which the penalty of "
            f"{moves!r} does not keep. Leave one of them out."
        )
    return recipe(name, IsoenergeticBlock(block))


def check_reference(given: str, value: ArrayLike) -> Array:
    """Return the log-probabilities of a product distribution that forbids no state, (site, level)."""
    table = np.asarray(real_array(given, value, error=RecipeError), float)
    if table.ndim == 1:
        table = np.stack([1 - table, table], axis=1)
    is_table = table.ndim == 2 and table.size > 0
    if not is_table or not (table > 0).all() or not np.allclose(table.sum(axis=1), 1, atol=1e-4):
        raise RecipeError(
            f"`{given}` must be a distribution of every site that gives each level some probability: numbers "
            "between 0 and 1 of the upper level, or (site, level) with rows that sum to 1; got "
            f"{shorten(value)}."
        )
    return jnp.log(jnp.asarray(table / table.sum(axis=1, keepdims=True)))


def can_be_tempered(base: Recipe) -> bool:
    """Whether replicas at several temperatures may move by a recipe."""
    is_plain = not base.coupling.has_center and len(base.blocks) == 1
    return is_plain and base.is_adjusted and not base.blocks[0].moves_replicas


def _check_ladder(name: str, given: Sequence[float]) -> list[float]:
    is_listed = (
        isinstance(given, Sequence | np.ndarray | Array) and not isinstance(given, str) and len(given) >= 2
    )
    betas = [number(f"{name}(inverse_temperatures=...)", beta) for beta in given] if is_listed else []
    rises = all(hot < cold for hot, cold in pairwise(betas))
    if not is_listed or not rises or betas[0] < 0 or betas[-1] != 1:
        raise RecipeError(
            f"`{name}(inverse_temperatures=...)` must be at least two numbers that increase from 0 or more "
            f"to 1, such as (0.0, 0.3, 0.6, 1.0); got {given!r}."
        )
    return betas
