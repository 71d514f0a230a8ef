"""The samplers the paper compares with: Gibbs with gradients, Gibbs, block Gibbs, Hamming balls."""

from typing import Literal

from steppe.errors import RecipeError
from steppe.kernel.acceptance import Metropolis
from steppe.kernel.blocks.gibbs import GibbsBlock
from steppe.kernel.blocks.metropolis import ProposalBlock
from steppe.kernel.blocks.site_gibbs import SiteGibbsBlock
from steppe.kernel.compose import Recipe, recipe
from steppe.kernel.proposals.gibbs_with_gradients import GibbsWithGradients
from steppe.kernel.proposals.site_proposal import Balancing, Differences, choose_weights
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
def gwg(*, num_flips: int = 1, balancing: Balancing = "sqrt", differences: Differences = "auto") -> Recipe:
    """Gibbs with gradients: change a few sites, picked with weight `exp(½ gradient · jump)`.

    Parameters
    ----------
    num_flips
        Number of distinct sites changed per proposal, from 1 to all (GWG-X). Raising it moves further per
        evaluation and lowers the acceptance rate.
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
    Stationary distribution: `π` exactly. Every proposal changes exactly `num_flips` sites, so with an even
    number on
    two-level sites only states of one parity are ever visited: use an odd one. Cost: one
    evaluation, with exact differences also two tables.

    Examples
    --------
    >>> import steppe
    >>> from steppe.diagnostics.exact import exact_tv
    >>> exact_tv(steppe.gwg(), steppe.targets.paper_bernoulli()) < 1e-6  # its distribution is π
    True
    """
    weighed = choose_weights("gwg", balancing, differences)
    picks = GibbsWithGradients(count("gwg(num_flips=...)", num_flips), **weighed)
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
def gibbs(*, num_updates: int = 1, scan: Scan = "systematic", num_swaps: int = 0) -> Recipe:
    """Gibbs sampling: resample single sites from their exact conditionals (Gibbs-X).

    Parameters
    ----------
    num_updates
        Number of sites resampled one after another in a step, at least 1. Raising it moves further per step,
        at a cost in proportion.
    scan
        `"systematic"`: sites in order, wrapping around, which mixes faster on most targets and is not
        reversible; `"random"`: each site drawn uniformly, with replacement.
    num_swaps
        Number of swaps after the updates, on two-level sites: a site at level 1, drawn uniformly, goes to 0,
        and the site that takes its place is drawn from its exact conditional. Raising it moves further along
        states with the same number of ones, such as correlated columns of a `variable_selection`, for a
        table and two updates each.

    Notes
    -----
    Stationary distribution: `π` exactly. Driven by events: one table of differences decides all sites up to
    the first that changes, so that with an incremental form the cache is updated once per change, not per
    site; the chain is that of a loop over sites. Cost: of an incremental form `num_updates / d`; else at most
    one table per update where the target makes tables, or one log-density per level.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((4, 4), coupling=0.2)
    >>> sweeps = steppe.gibbs(num_updates=16)  # every site once per step
    >>> run = steppe.sample(target, sweeps, key=jax.random.key(0), num_draws=500)
    >>> run.diagnose().ok
    True
    """
    updates = count("gibbs(num_updates=...)", num_updates)
    scan = choice("gibbs(scan=...)", scan, Scan)
    swaps = count("gibbs(num_swaps=...)", num_swaps, 0)
    return recipe("gibbs", SiteGibbsBlock(updates, scan, swaps))


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

    Examples
    --------
    >>> import steppe
    >>> from steppe.diagnostics.exact import spectral_gap, transition_matrix
    >>> target = steppe.targets.paper_bernoulli()
    >>> one, two = (spectral_gap(transition_matrix(steppe.block_gibbs(block_size=b), target)) for b in (1, 2))
    >>> two > one  # larger blocks mix faster, and cost more
    True
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

    Examples
    --------
    >>> import steppe
    >>> from steppe.diagnostics.exact import exact_tv
    >>> exact_tv(steppe.hamming_ball(block_size=4), steppe.targets.paper_bernoulli()) < 1e-6
    True
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
