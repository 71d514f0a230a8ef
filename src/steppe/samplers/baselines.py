"""The samplers the paper compares with: Gibbs with gradients, Gibbs, block Gibbs, Hamming balls."""

from typing import Literal

from steppe.errors import RecipeError
from steppe.kernel.acceptance import Metropolis
from steppe.kernel.blocks.gibbs import GibbsBlock
from steppe.kernel.blocks.metropolis import ProposalBlock
from steppe.kernel.compose import Recipe, recipe
from steppe.kernel.proposals.gibbs_with_gradients import GibbsWithGradients
from steppe.samplers.registry import register
from steppe.validation import choice, count

__all__ = ["block_gibbs", "gibbs", "gwg", "hamming_ball"]

Scan = Literal["random", "systematic"]


@register(
    family="few sites by gradient",
    summary="changes a few sites chosen by gradient",
    cost="1",
    stationary="π",
    color="#AA4499",
    marker=">",
    reference="Grathwohl, Swersky, Hashemi, Duvenaud, Maddison (2021), *Oops I took a gradient*.",
)
def gwg(*, num_flips: int = 1) -> Recipe:
    """Gibbs with gradients: change a few sites, picked with weight `exp(½ gradient · jump)`.

    Parameters
    ----------
    num_flips
        Number of distinct sites changed per proposal, from 1 to all (GWG-X). Raising it moves further per
        evaluation and lowers the acceptance rate.

    Notes
    -----
    Stationary distribution: `π` exactly. Every proposal changes exactly `num_flips` sites, so with an even
    number on
    two-level sites only states of one parity are ever visited: use an odd one. Cost: one evaluation.
    """
    picks = GibbsWithGradients(count("gwg(num_flips=...)", num_flips))
    return recipe("gwg", ProposalBlock(picks, Metropolis()))


@register(
    family="exact conditionals",
    summary="resamples n sites one by one",
    cost="n · L",
    stationary="π",
    color="#111111",
    marker="P",
    reference="Geman, Geman (1984).",
)
def gibbs(*, num_updates: int = 1, scan: Scan = "random") -> Recipe:
    """Gibbs sampling: resample single sites from their exact conditionals (Gibbs-X).

    Parameters
    ----------
    num_updates
        Number of sites resampled one after another in a step, at least 1. Raising it moves further per step,
        at a cost in proportion.
    scan
        `"random"`: each site drawn uniformly, with replacement; `"systematic"`: in order.

    Notes
    -----
    Stationary distribution: `π` exactly. Cost per site: the target's incremental form or difference table if
    it has one,
    else one log-density per level.
    """
    updates = count("gibbs(num_updates=...)", num_updates)
    scan = choice("gibbs(scan=...)", scan, Scan)
    return recipe("gibbs", GibbsBlock(block_size=1, num_updates=updates, scan=scan))


@register(
    family="exact conditionals",
    summary="resamples b sites jointly",
    cost="L^b",
    stationary="π",
    color="#777777",
    marker="X",
    reference="Textbook material; BG-X in the paper.",
)
def block_gibbs(*, block_size: int = 1, scan: Scan = "random") -> Recipe:
    """Block Gibbs: resample a block of sites jointly over all its levels (BG-X).

    Parameters
    ----------
    block_size
        Number of sites in a block, from 1 to all. Raising it moves more sites together; cost grows as
        `levels ** block_size`.
    scan
        `"random"`: a uniform subset each step; `"systematic"`: consecutive sites, wrapping around.

    Notes
    -----
    Stationary distribution: `π` exactly. Cost: one log-density per joint level, or incremental.
    """
    size = count("block_gibbs(block_size=...)", block_size)
    scan = choice("block_gibbs(scan=...)", scan, Scan)
    return recipe("block_gibbs", GibbsBlock(block_size=size, scan=scan))


@register(
    family="exact conditionals",
    summary="resamples b sites within radius 1 of a random point",
    cost="1 + b(L − 1)",
    stationary="π",
    color="#882255",
    marker="h",
    reference="Titsias, Yau (2017), *The Hamming ball sampler*.",
)
def hamming_ball(*, block_size: int = 10, radius: int = 1, scan: Scan = "random") -> Recipe:
    """Hamming-ball sampler: resample a block within a ball about a uniform point near it (HB-X-Y).

    Parameters
    ----------
    block_size
        Number of sites in a block, from 1 to all. Raising it offers more changes to choose from, each for an
        evaluation.
    radius
        How many sites of the block may differ from the intermediate point, from 1 to `block_size`. Raising it
        moves further; cost grows as `block_size ** radius`.
    scan
        As in `block_gibbs`.

    Notes
    -----
    Stationary distribution: `π` exactly. Cost: one log-density per point of the ball, or incremental.
    """
    size = count("hamming_ball(block_size=...)", block_size)
    radius = count("hamming_ball(radius=...)", radius)
    if radius > size:
        raise RecipeError(
            f"`hamming_ball(block_size={size}, radius={radius})`: the radius counts changed sites of the "
            f"block, so it is at most {size}. `block_gibbs(block_size={size})` resamples the whole block."
        )
    scan = choice("hamming_ball(scan=...)", scan, Scan)
    return recipe("hamming_ball", GibbsBlock(block_size=size, radius=radius, scan=scan))
