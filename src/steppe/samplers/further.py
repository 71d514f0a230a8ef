"""Further samplers of `π`: other proposals, cycles of step sizes, replicas at several temperatures."""

from collections.abc import Sequence
from itertools import pairwise

from steppe.errors import CompositionError, RecipeError
from steppe.kernel.acceptance import Metropolis
from steppe.kernel.blocks.cycle import CycleBlock
from steppe.kernel.blocks.gibbs import GibbsBlock
from steppe.kernel.blocks.metropolis import ProposalBlock
from steppe.kernel.blocks.tempering import TemperedBlock
from steppe.kernel.compose import Recipe, recipe
from steppe.kernel.proposals.discrete_flow import DiscreteFlow
from steppe.kernel.proposals.discrete_langevin import DiscreteLangevin
from steppe.kernel.proposals.path_auxiliary import PathAuxiliary
from steppe.pytree import Relative
from steppe.samplers.langevin import ADJUSTED_STEP, dmala
from steppe.samplers.registry import register
from steppe.validation import count, number, positive, within

__all__ = ["dlmc", "dmala_cyclical", "parallel_tempering", "pas"]

FLOW_STEP = Relative(0.5)


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
def pas(*, max_flips: int = 3) -> Recipe:
    """Path-auxiliary sampler (Sun et al. 2022, fast form): `gwg` with a random number of flips.

    Parameters
    ----------
    max_flips
        Longest path, at least 1; its length is uniform from 1 to this. Raising it changes more sites per
        evaluation and lowers the acceptance rate.

    Notes
    -----
    Stationary distribution: `π` exactly. Unlike `gwg` with several flips it keeps no parity. Cost: one
    evaluation for any length.
    """
    return recipe("pas", ProposalBlock(PathAuxiliary(count("pas(max_flips=...)", max_flips)), Metropolis()))


@register(
    family="Langevin, adjusted",
    summary="`dmala` at n step sizes, from bold to careful",
    cost="n",
    stationary="π",
    color="#77AADD",
    marker="8",
    reference="Pynadath, Bhattacharya, Hariharan, Zhang (2024), *Gradient-based discrete sampling with "
    "automatic cyclical scheduling*; every move adjusted here.",
)
def dmala_cyclical(*, step_size: float | None = None, cycle_length: int = 4, smallest: float = 0.1) -> Recipe:
    """`dmala` whose step is a cycle of step sizes, from bold to careful, each with its own decision.

    Parameters
    ----------
    step_size
        `α > 0`, the largest of the cycle, default 0.2 units. Raising it makes the bold moves bolder, and less
        often accepted.
    cycle_length
        Number of step sizes in the cycle, at least 1. Raising it puts more of them between bold and careful,
        for an evaluation each.
    smallest
        The last of them relative to the first, in (0, 1]; they fall by half a cosine. Raising it makes the
        careful moves bolder; 1 is `dmala` over and over.

    Notes
    -----
    Stationary distribution: `π` exactly: every step size leaves it alone. Not reversible. Cost:
    `cycle_length` evaluations.
    """
    name = "dmala_cyclical"
    α = positive(f"{name}(step_size=...)", step_size, ADJUSTED_STEP)
    last = within(f"{name}(smallest=...)", smallest, "(0, 1]")
    decide = ProposalBlock(DiscreteLangevin(α), Metropolis())
    return recipe(name, CycleBlock(decide, count(f"{name}(cycle_length=...)", cycle_length), float(last)))


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
    base: Recipe | None = None, *, inverse_temperatures: Sequence[float] = (1.0, 0.6, 0.36)
) -> Recipe:
    """Any adjusted recipe without center, run at several temperatures whose chains swap places.

    Parameters
    ----------
    base
        How each chain moves, `dmala()` by default. One step size serves all temperatures.
    inverse_temperatures
        `β_r`, from 1 down to above 0. More and closer ones swap more often; the last should be so hot that
        its chain crosses between modes.

    Notes
    -----
    Stationary distribution: the product of `exp{β_r U}` exactly; what is seen is the chain at `β = 1`, of
    distribution `π`. A step moves
    every chain once and offers every pair of neighbours a swap. Cost: that of the base, times the number of
    temperatures.
    """
    name = "parallel_tempering"
    within = dmala() if base is None else base
    betas = _ladder(name, inverse_temperatures)
    if not isinstance(within, Recipe) or not _can_be_tempered(within):
        raise CompositionError(
            f"`{name}(base=...)` needs an adjusted recipe without center, such as `dmala()`, `gwg()` or "
            f"`gibbs()`; got {within!r}."
        )
    return recipe(name, TemperedBlock(within.blocks[0], betas), penalty=within.penalty)


def _can_be_tempered(base: Recipe) -> bool:
    is_plain = not base.coupling.has_center and len(base.blocks) == 1
    return is_plain and base.is_adjusted and isinstance(base.blocks[0], ProposalBlock | GibbsBlock)


def _ladder(name: str, given: Sequence[float]) -> tuple[float, ...]:
    is_listed = isinstance(given, Sequence) and not isinstance(given, str) and len(given) >= 2
    betas = [number(f"{name}(inverse_temperatures=...)", beta) for beta in given] if is_listed else []
    falls = all(cold > hot > 0 for cold, hot in pairwise(betas))
    if not is_listed or not falls or betas[0] != 1:
        raise RecipeError(
            f"`{name}(inverse_temperatures=...)` must be at least two numbers that fall from 1 and stay "
            f"above 0, such as (1.0, 0.6, 0.36); got {given!r}."
        )
    return tuple(betas)
