"""Proposals of permutations: informed by the exact change of the density by every move, or uniform."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.errors import RecipeError
from steppe.kernel.cost import evaluations_per_move_table
from steppe.kernel.density import JointDensity
from steppe.kernel.keys import Keys
from steppe.kernel.proposals.permutation_moves import (
    LONGEST_SHIFT,
    Move,
    apply_move,
    as_move,
    differences,
    invert,
    is_move,
)
from steppe.kernel.types import POSITION, ChainState, Guided
from steppe.numerics import log_sum_exp
from steppe.random import draws
from steppe.target.log_density import Target


class PermutationProposal(Guided, eqx.Module):
    """What both proposals share: moves, their ends and their inverses."""

    kinds: tuple[str, ...] = eqx.field(static=True)

    moves = POSITION
    is_conditional = False

    def apply(self, density: JointDensity, state: ChainState, value: Move) -> ChainState:
        """Evaluate the permutation a move leads to."""
        return density.evaluate(apply_move(self.kinds, state.position, value), state.center)

    def inverse(self, state: ChainState, value: Move) -> Move:
        """Return the move that leads back."""
        return invert(value)

    def check(self, name: str, target: Target) -> None:
        """Refuse domains whose sites take any level whatever the others do."""
        if target.domain.is_site_product:
            raise RecipeError(
                f"`{name}` moves permutations, and {target.domain!r} has none. Use a recipe such as "
                "`dmala()`."
            )


class ScoredMoves(NamedTuple):
    """Moves with probability proportional to `exp(scores)`, by kind, row and column."""

    kinds: tuple[str, ...]
    scores: Array
    rows: Array

    @classmethod
    def of(cls, kinds: tuple[str, ...], scores: Array) -> "ScoredMoves":
        """Normalise every row once; draws and probabilities both need it."""
        return cls(kinds, scores, log_sum_exp(scores))

    def sample(self, keys: Keys) -> Move:
        """Draw a row, then a column of it: the same as one draw, with far fewer random numbers."""
        key_row, key_column = jax.random.split(keys.position)
        chosen = draws.categorical(key_row, self.rows.reshape(-1))
        kind, row = jnp.unravel_index(chosen, self.rows.shape)
        column = draws.categorical(key_column, self.scores[kind, row])
        candidates = [as_move(name, row, column, index) for index, name in enumerate(self.kinds)]
        return jax.tree.map(lambda *fields: jnp.stack(fields)[kind], *candidates)

    def log_prob_terms(self, value: Move) -> list[Array]:
        """Log-probability of a move."""
        is_back = value.shift < 0
        row = jnp.where(is_back, value.last, value.first)
        column = jnp.where(is_back, value.first, value.last)
        return [self.scores[value.kind, row, column] - log_sum_exp(self.rows.reshape(-1))]


class InformedMoves(PermutationProposal):
    """Draw a move with weight `exp(½ change)`, the change being its exact effect on the joint density.

    The square root is a balanced weight: Metropolis then accepts with a ratio of normalising sums, which
    is close to one when single moves change them little.

    Attributes
    ----------
    kinds
        Kinds of moves that compete, each with its table of changes.
    """

    component_id = "informed-moves"

    def at(self, density: JointDensity, state: ChainState) -> ScoredMoves:
        """Softmax over all moves of all kinds, from their exact changes."""
        scores = [self._score(density, state, kind) for kind in self.kinds]
        return ScoredMoves.of(self.kinds, jnp.stack(scores))

    def support(self, density: JointDensity, state: ChainState) -> Move:
        """All moves, for exact enumeration of small domains."""
        size = density.domain.num_sites
        lists = []
        for index, kind in enumerate(self.kinds):
            rows, columns = np.nonzero(is_move(kind, size))
            lists.append(as_move(kind, jnp.asarray(rows), jnp.asarray(columns), index))
        return _join(lists)

    def count_evaluations(self, density: JointDensity) -> int:
        """Evaluations that weigh a proposal and its way back: a table of every kind for each."""
        return 2 * sum(evaluations_per_move_table(density.target, kind) for kind in self.kinds)

    def _score(self, density: JointDensity, state: ChainState, kind: str) -> Array:
        changes = density.inverse_temperature * differences(density.target, kind, state.position)
        return 0.5 * (changes + density.coupling.move_differences(kind, state.position, state.center))


class AnyMove(NamedTuple):
    """Every kind, then every move of the kind, equally likely; a move and its inverse alike."""

    kinds: tuple[str, ...]
    num_items: int

    def sample(self, keys: Keys) -> Move:
        """Draw a kind, two places and a shift."""
        # Remainders of whole words: uniform to 2⁻³² of their number, and a shift is exactly as likely as
        # its opposite, which is all that Metropolis asks.
        words = jax.random.bits(keys.position, (5,), jnp.uint32) >> 1
        kind, first, other, size = (
            jnp.asarray(word % bound, jnp.int32)
            for word, bound in zip(words, self._bounds(words[0]), strict=False)
        )
        other += other >= first
        shift = jnp.where(words[4] % 2 == 0, 1, -1) * (size + 1)
        return Move(kind, jnp.minimum(first, other), jnp.maximum(first, other), shift)

    def log_prob_terms(self, value: Move) -> list[Array]:
        """Log-probability of a move, the same as that of its inverse."""
        num_stretches = self.num_items * (self.num_items - 1) // 2
        num_moves = len(self.kinds) * num_stretches * 2 * self._longest_shifts
        return [-jnp.log(num_moves.astype(jnp.result_type(float)))[value.kind]]

    def _bounds(self, kind_word: Array) -> tuple[int | Array, ...]:
        longest = self._longest_shifts[kind_word % len(self.kinds)]
        return len(self.kinds), self.num_items, self.num_items - 1, longest

    @property
    def _longest_shifts(self) -> Array:
        sizes = [LONGEST_SHIFT if kind == "or_opt" else 1 for kind in self.kinds]
        return jnp.asarray(sizes, jnp.uint32)


class UniformMoves(PermutationProposal):
    """Draw any move; one log-density per step, no tables.

    Attributes
    ----------
    kinds
        Kinds of moves, drawn equally often.
    """

    component_id = "uniform-moves"

    def at(self, density: JointDensity, state: ChainState) -> AnyMove:
        """Uniform over places and shifts."""
        return AnyMove(self.kinds, density.domain.num_sites)

    def count_evaluations(self, density: JointDensity) -> int:
        """Evaluations beyond that of the proposed state: none."""
        return 0

    def support(self, density: JointDensity, state: ChainState) -> Move:
        """All moves, for exact enumeration of small domains."""
        first, last = np.triu_indices(density.domain.num_sites, 1)
        lists = []
        for index, kind in enumerate(self.kinds):
            longest = LONGEST_SHIFT if kind == "or_opt" else 1
            for shift in (*range(-longest, 0), *range(1, longest + 1)):
                shifts = jnp.full(len(first), shift)
                lists.append(Move(jnp.asarray(index), jnp.asarray(first), jnp.asarray(last), shifts))
        return _join(lists)


def _join(lists: list[Move]) -> Move:
    sizes = [moves.first.shape[0] for moves in lists]
    kinds = [jnp.full(size, moves.kind) for moves, size in zip(lists, sizes, strict=True)]
    full = [moves._replace(kind=kind) for moves, kind in zip(lists, kinds, strict=True)]
    return jax.tree.map(lambda *fields: jnp.concatenate(fields), *full)
