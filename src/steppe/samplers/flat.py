"""Samplers whose stationary distribution favours flat modes, by a known amount."""

from typing import Literal

from steppe.errors import RecipeError
from steppe.kernel.acceptance import Metropolis
from steppe.kernel.blocks.metropolis import ConditionalDraw, ProposalBlock
from steppe.kernel.blocks.replicas import ReplicasBlock, WeightedCenterBlock
from steppe.kernel.compose import Recipe, recipe
from steppe.kernel.coupling import StarCoupling
from steppe.kernel.density import RoughnessPenalty
from steppe.kernel.proposals.center import CenterRefresh
from steppe.kernel.proposals.discrete_langevin import DiscreteLangevin
from steppe.pytree import is_concrete
from steppe.samplers.flip_fraction import CenterKind
from steppe.samplers.langevin import ADJUSTED_STEP, COUPLING_VARIANCE
from steppe.samplers.registry import register
from steppe.validation import choice, count, not_negative, positive

__all__ = ["robust_ensemble", "roughness_tilted"]

TiltBase = Literal["dmala", "glu"]
Differences = Literal["gradient", "exact"]


@register(
    family="favours flat modes",
    summary="`y` replicas around one center, `dmala` for each",
    cost="y",
    stationary="center: exp(y · local entropy)",
    color="#99BB55",
    marker="*",
    reference="Baldassi et al. (2016), *Unreasonable effectiveness of learning neural networks*; the exact "
    "center draws are ours.",
)
def robust_ensemble(
    *,
    step_size: float | None = None,
    coupling_variance: float | None = None,
    replicas: int = 4,
    center: CenterKind = "gaussian",
    center_weight: float = 0.0,
) -> Recipe:
    """Several replicas of the position tied to one center: the center seeks mass within a radius.

    Parameters
    ----------
    replicas
        `y ≥ 1`, the number of replicas. Raising it concentrates the center distribution on its maxima.
    coupling_variance
        `η > 0`, the variance of a replica's distance to the center on flat ground, default 1 unit. Raising it
        widens the radius.
    step_size
        `α > 0` of the replicas (and of a weighted center), default 0.2 units, as in `dmala`.
    center
        `"gaussian"`: a real center, drawn from `N(mean of the replicas, η/y)`; `"lattice"`: a center on the
        levels of the domain, drawn exactly too.
    center_weight
        `γ ≥ 0`: the center itself counts with `γ U`. Raising it draws the center to states of high `U`. Needs
        `center="lattice"`, and then costs one more evaluation.

    Notes
    -----
    Stationary distribution: the joint `exp{γ U(c) + Σ_r [U(θ_r) − |θ_r − c|²/(2η)]}` exactly. The center has
    the distribution
    `exp{γ U(c) + y F(c; η)}`, where `F(c; η) = log Σ_θ exp{U(θ) − |θ − c|²/(2η)}` is the local entropy:
    mass within a radius. It prefers wide modes among equally high ones, and narrow modes among equally
    heavy ones. With `replicas=1` and a Gaussian center this is `edmala_glu`, and the replicas have
    distribution `π`.
    Cost: `y` evaluations, made as one batch.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.planted_mixture().target
    >>> run = steppe.sample(target, steppe.robust_ensemble(replicas=3), key=jax.random.key(0), num_draws=100)
    >>> run.trace.levels().shape  # chain, draw, replica, site
    (4, 100, 3, 10)
    """
    name = "robust_ensemble"
    num_replicas = count(f"{name}(replicas=...)", replicas)
    η = positive(f"{name}(coupling_variance=...)", coupling_variance, COUPLING_VARIANCE)
    move = DiscreteLangevin(positive(f"{name}(step_size=...)", step_size, ADJUSTED_STEP))
    γ = not_negative(f"{name}(center_weight=...)", center_weight)
    is_lattice = choice(f"{name}(center=...)", center, CenterKind) == "lattice"
    is_weighted = not is_concrete(γ) or γ > 0
    if is_weighted and not is_lattice:
        raise RecipeError(
            f"`robust_ensemble(center_weight={center_weight})` evaluates the log-density at the center, so "
            "it needs a center on the domain: use `center='lattice'`."
        )
    weighted = WeightedCenterBlock(DiscreteLangevin(move.step_size, exact_coupling=True))
    return recipe(
        name,
        weighted if is_weighted else ConditionalDraw(CenterRefresh()),
        ReplicasBlock(ProposalBlock(move, Metropolis())),
        coupling=StarCoupling(η, num_replicas, is_lattice, γ if is_weighted else None),
    )


@register(
    family="favours flat modes",
    summary="`dmala` with a penalty λ on roughness R",
    cost="1",
    stationary="exp(U − λR)",
    color="#117733",
    marker="d",
    reference="This library.",
)
def roughness_tilted(
    *,
    step_size: float | None = None,
    strength: float = 1.0,
    base: TiltBase = "dmala",
    differences: Differences = "gradient",
    coupling_variance: float | None = None,
) -> Recipe:
    """`dmala` with a penalty on rough neighbourhoods: mass moves from peaks to plateaus.

    Parameters
    ----------
    strength
        `λ ≥ 0`. Raising it prefers states whose one-site changes matter little, at a loss in `U`; 0 is
        `dmala` bit for bit. Negative values would favour roughness and are refused.
    step_size
        `α > 0`, default 0.2 units, as in `dmala`.
    base
        `"dmala"`, or `"glu"` for the moves of `edmala_glu`.
    differences
        Which `R` the distribution uses. `"gradient"`: `R = mean |gradient · jump|` over one-site changes; it
        needs
        no extra evaluation and equals the mean absolute difference when `U` is linear in each site;
        otherwise the distribution has this surrogate. `"exact"`: `R = mean |ΔU|` from `target.differences`.
    coupling_variance
        `η > 0` for `base="glu"`, default 1 unit, as in `edula`.

    Notes
    -----
    Stationary distribution: `exp{U(θ) − λ R(θ)}` exactly, with the `R` chosen by `differences`. The proposal
    follows `∇U`, not
    the tilted gradient, which would need second derivatives. Cost: one evaluation; with `"exact"` also one
    table of differences.

    Examples
    --------
    >>> import steppe
    >>> from steppe.diagnostics.flatness import single_site_differences
    >>> target = steppe.targets.paper_bernoulli()
    >>> roughness = single_site_differences(target, target.domain.enumerate()).mean_absolute
    >>> plain, tilted = (
    ...     steppe.roughness_tilted(strength=λ).stationary(target).probabilities() for λ in (0, 2)
    ... )
    >>> bool(tilted @ roughness < plain @ roughness)
    True
    """
    name = "roughness_tilted"
    penalty = RoughnessPenalty(
        not_negative(f"{name}(strength=...)", strength),
        choice(f"{name}(differences=...)", differences, Differences),
    )
    move = DiscreteLangevin(positive(f"{name}(step_size=...)", step_size, ADJUSTED_STEP))
    decide = ProposalBlock(move, Metropolis())
    if choice(f"{name}(base=...)", base, TiltBase) == "dmala":
        if coupling_variance is not None:
            raise RecipeError(
                f"`{name}(coupling_variance={coupling_variance!r})` has no center to tie: `base='dmala'` has "
                "none. Leave it out, or use `base='glu'`."
            )
        return recipe(name, decide, penalty=penalty)
    η = positive(f"{name}(coupling_variance=...)", coupling_variance, COUPLING_VARIANCE)
    return recipe(name, ConditionalDraw(CenterRefresh()), decide, coupling=StarCoupling(η), penalty=penalty)
