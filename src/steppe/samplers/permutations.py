"""Samplers of permutations, for targets on a `Permutation` domain."""

from collections.abc import Sequence
from typing import Any

from steppe.errors import RecipeError
from steppe.kernel.acceptance import Metropolis
from steppe.kernel.blocks.metropolis import ConditionalDraw, ProposalBlock
from steppe.kernel.compose import Recipe, recipe
from steppe.kernel.permutation_coupling import PermutationCoupling
from steppe.kernel.proposals.center import CenterRefresh
from steppe.kernel.proposals.permutation_moves import KINDS, TABLED
from steppe.kernel.proposals.permutation_proposals import InformedMoves, UniformMoves
from steppe.samplers.registry import register
from steppe.validation import positive

__all__ = ["informed_permutation", "uniform_permutation"]


@register(
    family="permutations",
    summary="one swap, reversal or insertion, weighed by what it gains",
    cost="tables of all moves, O(n²)",
    stationary="π",
    color="#6655AA",
    marker="1",
    reference="Zanella (2020), *Informed proposals for local MCMC in discrete spaces*.",
)
def informed_permutation(
    *, moves: str | Sequence[str] = "two_opt", coupling_variance: float | None = None
) -> Recipe:
    """Locally informed moves of a permutation: every move is weighed by `exp(½ ΔU)`, one is decided on.

    Parameters
    ----------
    moves
        `"swap"` (two items change places), `"two_opt"` (a stretch is reversed), `"insert"` (an item goes
        elsewhere), or several of them, which then compete.
    coupling_variance
        `η > 0`: tie a center to the one-hot matrix of the order with this variance and draw it afresh in
        every step, as `edmala_glu` does on sites. Raising it loosens the tie. `None`: no center.

    Notes
    -----
    Stationary distribution: `π` exactly, for every `η`; the center changes how the order moves, not where it
    stays. Cost: two
    tables of all `O(n²)` exact differences per step, `O(n²)` where the target makes them
    (`targets.tsp`), else one log-density per neighbour. Every proposal changes the order; with `"swap"` alone
    it also changes its parity, so add another kind where nearly all proposals are accepted.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.tsp_paper("permutation", inverse_temperature=5.0)
    >>> run = steppe.sample(target, steppe.informed_permutation(), key=jax.random.key(0), num_draws=500)
    >>> round(float(-run.data.sample_stats["log_density"].max() / 5), 3)  # the shortest tour was met
    13.194
    """
    kinds = _kinds("informed_permutation", moves, TABLED)
    decide = ProposalBlock(InformedMoves(kinds), Metropolis())
    if coupling_variance is None:
        return recipe("informed_permutation", decide)
    return recipe(
        "informed_permutation",
        ConditionalDraw(CenterRefresh()),
        decide,
        coupling=PermutationCoupling(
            positive("informed_permutation(coupling_variance=...)", coupling_variance)
        ),
        center_start="conditional",
    )


@register(
    family="permutations",
    summary="one swap, reversal or insertion at random, accepted or rejected",
    cost="1",
    stationary="π",
    color="#AA7744",
    marker="2",
    reference="Kirkpatrick, Gelatt, Vecchi (1983), with 2-opt of Croes (1958) and Or-opt of Or (1976).",
)
def uniform_permutation(*, moves: str | Sequence[str] = ("two_opt", "or_opt")) -> Recipe:
    """Uniform moves of a permutation, accepted or rejected: cheap steps, for annealing and large problems.

    Parameters
    ----------
    moves
        One or several of `"swap"`, `"two_opt"`, `"insert"` and `"or_opt"` (up to three neighbouring items
        go elsewhere together).

    Notes
    -----
    Stationary distribution: `π` exactly. Cost: one log-density per step.

    Examples
    --------
    >>> import jax, steppe
    >>> cities = [[0, 0], [0, 1], [2, 1], [2, 0], [1, 3]]
    >>> target = steppe.targets.tsp(coordinates=cities, inverse_temperature=2.0)
    >>> recipe = steppe.uniform_permutation(moves=["swap", "two_opt"])
    >>> found = steppe.anneal(target, recipe, key=jax.random.key(0), num_steps=200)
    >>> round(float(target.cost(found.best)), 3)
    8.472
    """
    kinds = _kinds("uniform_permutation", moves, KINDS)
    return recipe("uniform_permutation", ProposalBlock(UniformMoves(kinds), Metropolis()))


def _kinds(name: str, moves: Any, allowed: tuple[str, ...]) -> tuple[str, ...]:
    given = (moves,) if isinstance(moves, str) else moves
    is_listed = isinstance(given, Sequence) and len(given) > 0 and all(kind in allowed for kind in given)
    if not is_listed or len(set(given)) != len(given):
        options = ", ".join(repr(kind) for kind in allowed)
        raise RecipeError(
            f"`{name}(moves=...)` must be one or several, each once, of {options}; got {moves!r}."
        )
    return tuple(given)
