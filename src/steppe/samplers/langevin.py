"""Langevin samplers: the paper's six and their Ornstein–Uhlenbeck relative.

Each is one expression, so that each reads as a difference from the one above it.
"""

from typing import Any, Literal

from steppe.kernel.acceptance import Acceptance, Metropolis, Unadjusted
from steppe.kernel.blocks.metropolis import ConditionalDraw, ProposalBlock
from steppe.kernel.compose import Recipe, recipe
from steppe.kernel.coupling import StarCoupling
from steppe.kernel.proposals.center import CenterLangevin, CenterRefresh
from steppe.kernel.proposals.discrete_langevin import DiscreteLangevin, JointProposal
from steppe.kernel.proposals.site_proposal import Balancing, Differences, choose_weights
from steppe.pytree import Relative
from steppe.samplers.registry import register
from steppe.validation import choice, positive, within

__all__ = ["dmala", "dula", "edmala", "edmala_glu", "edmala_ou", "edula", "edula_glu"]

CenterStart = Literal["position", "conditional"]
CouplingForm = Literal["linear", "exact"]

UNADJUSTED_STEP = Relative(0.1)
ADJUSTED_STEP = Relative(0.2)
COUPLING_VARIANCE = Relative(1.0)
CENTER_STEP_PER_VARIANCE = 0.1
PAPER = "Mohanty, Bhattacharya, Zhang (2025), *Entropy-guided sampling of flat modes in discrete spaces*"


@register(
    family="Langevin, unadjusted",
    summary="moves all sites along the gradient",
    cost="1",
    stationary="biased; the bias grows with the step size",
    color="#CC3311",
    marker="o",
    reference="Zhang, Liu, Liu (2022), *A Langevin-like sampler for discrete distributions*.",
)
def dula(*, step_size: float | None = None) -> Recipe:
    """Discrete unadjusted Langevin: every site moves at once, nothing is corrected.

    Parameters
    ----------
    step_size
        `α > 0`, default 0.1 units. Raising it flips more sites per step and increases the bias.

    Notes
    -----
    Stationary distribution: biased. The bias grows with `α`, and for a log-density that is neither quadratic
    nor linear in
    each site it does not vanish even as `α → 0`. Cost: one evaluation.

    Examples
    --------
    >>> import steppe
    >>> from steppe.diagnostics.exact import exact_tv
    >>> target = steppe.targets.paper_bernoulli()
    >>> exact_tv(steppe.dula(step_size=0.5), target) < exact_tv(steppe.dula(step_size=2.0), target)
    True
    """
    α = positive("dula(step_size=...)", step_size, UNADJUSTED_STEP)
    return recipe("dula", ProposalBlock(DiscreteLangevin(α), Unadjusted()))


@register(
    family="Langevin, adjusted",
    summary="`dula`, accepted or rejected",
    cost="1",
    stationary="π",
    color="#0077BB",
    marker="s",
    reference="Zhang, Liu, Liu (2022), *A Langevin-like sampler for discrete distributions*.",
)
def dmala(
    *,
    step_size: float | None = None,
    balancing: Balancing = "sqrt",
    differences: Differences = "auto",
) -> Recipe:
    """Metropolis-adjusted `dula`.

    Parameters
    ----------
    step_size
        `α > 0`, default 0.2 units. Raising it proposes more flips and lowers the acceptance rate.
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
    Stationary distribution: `π` exactly. Cost: one evaluation, accepted or not; with exact
    differences also two tables.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((4, 4), coupling=0.2)
    >>> run = steppe.sample(target, steppe.dmala(step_size=2.0), key=jax.random.key(0), num_draws=500)
    >>> bool(abs(run.positions.mean()) < 0.2)  # no spin prefers a side
    True
    """
    α = positive("dmala(step_size=...)", step_size, ADJUSTED_STEP)
    weighed = choose_weights("dmala", balancing, differences)
    return recipe("dmala", ProposalBlock(DiscreteLangevin(α, **weighed), Metropolis()))


@register(
    family="Langevin, unadjusted",
    summary="`dula` tied to a center that moves along",
    cost="1",
    stationary="biased, much like `dula` at a larger step",
    color="#EE7733",
    marker="D",
    reference=f"{PAPER}, Algorithm 1.",
)
def edula(
    *,
    step_size: float | None = None,
    center_step_size: float | None = None,
    coupling_variance: float | None = None,
    coupling_form: CouplingForm = "linear",
    center_start: CenterStart = "position",
) -> Recipe:
    """Entropic `dula` (paper, Algorithm 1 without the decision): position and center move together.

    Parameters
    ----------
    step_size
        `α > 0`, default 0.1 units, as in `dula`.
    center_step_size
        `0 < α_a < 4η`, default `η/10`. Raising it makes the center follow the position faster, with
        more bias.
    coupling_variance
        `η > 0`, the variance of the center given the position, default 1 unit. Raising it loosens the
        coupling.
    coupling_form
        `"linear"`: the coupling enters the logits linearised, as in the paper; `"exact"`: as the exact
        difference, which is `"linear"` at `1/α + 1/(2η)` in place of `1/α`.
    center_start
        `"position"` (paper) or `"conditional"`, a draw from `N(position, η I)`.

    Notes
    -----
    Stationary distribution: biased. For quadratic log-densities the distribution of the position is that of
    `dula` at a larger
    step, `1/α_eff = 1/α − 1/(4η − α_a)`; the coupling adds no preference for flat modes beyond that.
    Cost: one evaluation.

    Examples
    --------
    >>> import steppe
    >>> from steppe.theory import effective_step_size
    >>> recipe = steppe.edula(step_size=0.2, coupling_variance=1.0, center_step_size=0.4)
    >>> recipe.is_adjusted
    False
    >>> round(effective_step_size(0.2, 1.0, 0.4).value, 3)  # the step at which `dula` has its distribution
    0.212
    """
    return _joint(
        "edula",
        step_size,
        center_step_size,
        coupling_variance,
        coupling_form,
        center_start,
        Unadjusted(),
    )


@register(
    family="Langevin, adjusted",
    summary="`edula`, one decision for both",
    cost="1",
    stationary="π",
    color="#33BBEE",
    marker="v",
    reference=f"{PAPER}, Algorithm 1.",
)
def edmala(
    *,
    step_size: float | None = None,
    center_step_size: float | None = None,
    coupling_variance: float | None = None,
    coupling_form: CouplingForm = "linear",
    center_start: CenterStart = "position",
) -> Recipe:
    """Metropolis-adjusted `edula` (paper, Algorithm 1): one decision for position and center.

    Parameters
    ----------
    step_size
        `α > 0`, default 0.2 units, as in `dmala`.
    center_step_size
        `α_a > 0`, default `η/10`. Raising it lets the center move further per step and lowers the acceptance
        rate.
    coupling_variance, coupling_form, center_start
        As in `edula`.

    Notes
    -----
    Stationary distribution: the joint `exp{U(θ) − |θ − a|²/(2η)}` exactly, so the position has distribution
    `π` for every `η`: at
    stationarity there is no preference for flat modes. The one decision covers `2d` coordinates and its
    acceptance falls with dimension; `edmala_glu` scales better. Cost: one evaluation.

    Examples
    --------
    >>> import numpy as np, steppe
    >>> target = steppe.targets.paper_bernoulli()
    >>> coupled = steppe.edmala(coupling_variance=2.0).stationary(target).probabilities()
    >>> plain = steppe.dmala().stationary(target).probabilities()
    >>> bool(np.abs(coupled - plain).max() < 1e-6)  # the center changes no probability
    True
    """
    return _joint(
        "edmala",
        step_size,
        center_step_size,
        coupling_variance,
        coupling_form,
        center_start,
        Metropolis(),
    )


@register(
    family="Langevin, unadjusted",
    summary="fresh center, then `dula` given it",
    cost="1",
    stationary="biased, like `dula` with noisy logits",
    color="#BBAA22",
    marker="p",
    reference=f"{PAPER}, the Gibbs-like update of the appendix.",
)
def edula_glu(
    *,
    step_size: float | None = None,
    coupling_variance: float | None = None,
    coupling_form: CouplingForm = "linear",
    center_start: CenterStart = "position",
) -> Recipe:
    """Gibbs-like `edula`: draw the center afresh from `N(θ, η I)`, then one `dula` step given it.

    Parameters
    ----------
    step_size, coupling_variance, coupling_form, center_start
        As in `edula`.

    Notes
    -----
    Stationary distribution: biased; it is `dula` whose flip logits carry noise of variance `1/(4η)` per unit
    of squared
    jump. Cost: one evaluation per full sweep (center and position).

    Examples
    --------
    >>> import steppe
    >>> recipe = steppe.edula_glu(step_size=0.2, coupling_variance=4.0)
    >>> recipe.is_adjusted
    False
    >>> print(recipe.stationary(steppe.targets.paper_bernoulli()).description)
    biased; it is `dula` whose flip logits carry Gaussian noise of variance 1/(4η) per unit of squared jump.
    """
    return _alternate(
        "edula_glu", step_size, coupling_variance, None, coupling_form, center_start, Unadjusted()
    )


@register(
    family="Langevin, adjusted",
    summary="fresh center, then `dmala` given it",
    cost="1",
    stationary="π",
    color="#009988",
    marker="^",
    reference=f"{PAPER}, the Gibbs-like update of the appendix, with the coupling in the ratio.",
)
def edmala_glu(
    *,
    step_size: float | None = None,
    coupling_variance: float | None = None,
    coupling_form: CouplingForm = "linear",
    center_start: CenterStart = "position",
) -> Recipe:
    """Metropolis-adjusted `edula_glu`: the decision is on the position alone.

    Parameters
    ----------
    step_size
        `α > 0`, default 0.2 units, as in `dmala`.
    coupling_variance, coupling_form, center_start
        As in `edula`.

    Notes
    -----
    Stationary distribution: the joint exactly, the position has distribution `π` for every `η`. Cost: one
    evaluation per full sweep.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.paper_bernoulli()
    >>> sampler = steppe.edmala_glu(coupling_variance=2.0).build(target)
    >>> state = sampler.init(target.domain.draw(jax.random.key(0)))
    >>> state, info = sampler.step(jax.random.key(1), state)
    >>> target.domain.contains(state.position), state.center.shape
    (True, (4,))
    """
    return _alternate(
        "edmala_glu", step_size, coupling_variance, None, coupling_form, center_start, Metropolis()
    )


@register(
    family="Langevin, adjusted",
    summary="center refreshed in part, then `dmala` given it",
    cost="1",
    stationary="π",
    color="#332288",
    marker="<",
    reference="This library; the Ornstein–Uhlenbeck refresh is textbook material.",
)
def edmala_ou(
    *,
    step_size: float | None = None,
    coupling_variance: float | None = None,
    persistence: float = 0.9,
    coupling_form: CouplingForm = "linear",
    center_start: CenterStart = "position",
) -> Recipe:
    """`edmala_glu` whose center keeps part of its deviation: `θ + ρ(a − θ) + √(η(1 − ρ²)) ξ`.

    Parameters
    ----------
    step_size
        `α > 0`, default 0.2 units, as in `dmala`.
    coupling_variance, coupling_form, center_start
        As in `edula`.
    persistence
        `0 ≤ ρ < 1`. Raising it lets the center stay where it is for longer. 0 is `edmala_glu`; at
        `1 − α_a/(2η)` the center drifts as in `edmala`.

    Notes
    -----
    Stationary distribution: the joint exactly, the position has distribution `π` for every `η` and `ρ`.
    Cost: one evaluation.

    Examples
    --------
    >>> import steppe
    >>> recipe = steppe.edmala_ou(persistence=0.5)
    >>> round(float(recipe.parameters["persistence"]), 2), recipe.is_adjusted
    (0.5, True)
    >>> print(recipe.stationary(steppe.targets.paper_bernoulli()).description)
    the joint exp{β U(θ) − |θ − a|²/(2η)} exactly; the position alone has exp{β U(θ)}.
    """
    remedy = "0 draws the center afresh, values near 1 let it drift slowly."
    ρ = within("edmala_ou(persistence=...)", persistence, "[0, 1)", remedy=remedy)
    return _alternate("edmala_ou", step_size, coupling_variance, ρ, coupling_form, center_start, Metropolis())


def _joint(
    name: str,
    step_size: float | None,
    center_step_size: float | None,
    coupling_variance: float | None,
    form: str,
    center_start: str,
    accept: Acceptance,
) -> Recipe:
    coupling = _star(name, coupling_variance)
    follow = _scale(coupling.coupling_variance, CENTER_STEP_PER_VARIANCE)
    center = CenterLangevin(positive(f"{name}(center_step_size=...)", center_step_size, follow))
    return recipe(
        name,
        ProposalBlock(JointProposal(_langevin(name, step_size, form, accept), center), accept),
        coupling=coupling,
        center_start=choice(f"{name}(center_start=...)", center_start, CenterStart),
    )


def _alternate(
    name: str,
    step_size: float | None,
    coupling_variance: float | None,
    persistence: float | None,
    form: str,
    center_start: str,
    accept: Acceptance,
) -> Recipe:
    return recipe(
        name,
        ConditionalDraw(CenterRefresh(persistence)),
        ProposalBlock(_langevin(name, step_size, form, accept), accept),
        coupling=_star(name, coupling_variance),
        center_start=choice(f"{name}(center_start=...)", center_start, CenterStart),
    )


def _star(name: str, coupling_variance: float | None) -> StarCoupling:
    return StarCoupling(positive(f"{name}(coupling_variance=...)", coupling_variance, COUPLING_VARIANCE))


def _langevin(name: str, step_size: float | None, form: str, accept: Acceptance) -> DiscreteLangevin:
    default = UNADJUSTED_STEP if isinstance(accept, Unadjusted) else ADJUSTED_STEP
    exact = choice(f"{name}(coupling_form=...)", form, CouplingForm) == "exact"
    return DiscreteLangevin(positive(f"{name}(step_size=...)", step_size, default), exact)


def _scale(number: Any, factor: float) -> Any:
    return Relative(factor * number.multiple) if isinstance(number, Relative) else factor * number
