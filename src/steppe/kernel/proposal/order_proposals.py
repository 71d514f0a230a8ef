"""Which move of an order is proposed: informed by the exact gain of every move, or uniform."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.kernel import noise
from steppe.kernel.cost import evaluations_per_order_table
from steppe.kernel.landscape import Landscape
from steppe.kernel.noise import Keys
from steppe.kernel.order_coupling import OrderCoupling
from steppe.kernel.proposal.order_moves import (
    LONGEST_SHIFT,
    Move,
    as_move,
    back,
    differences,
    is_move,
    moved,
)
from steppe.kernel.state import State
from steppe.numerics import log_sum_exp
from steppe.pytree import piece, static


class OrderProposal:
    """What both proposals share: moves, their ends and their inverses."""

    kinds: tuple[str, ...]

    moves = ("position",)
    is_exact = False
    permutes = True

    def move(self, landscape: Landscape, state: State, value: Move) -> State:
        """Evaluate the order a move leads to."""
        return landscape.at(moved(self.kinds, state.position, value), state.center)

    def reverse(self, old: State, value: Move) -> Move:
        """Return the move that leads back."""
        return back(value)


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
        """Draw a row, then a column of it: the same law as one draw, with far fewer random numbers."""
        key_row, key_column = jax.random.split(keys.position)
        chosen = noise.categorical(key_row, self.rows.reshape(-1))
        kind, row = jnp.unravel_index(chosen, self.rows.shape)
        column = noise.categorical(key_column, self.scores[kind, row])
        candidates = [as_move(name, row, column, index) for index, name in enumerate(self.kinds)]
        return jax.tree.map(lambda *fields: jnp.stack(fields)[kind], *candidates)

    def terms(self, value: Move) -> list[Array]:
        """Log-probability of a move."""
        is_back = value.shift < 0
        row = jnp.where(is_back, value.last, value.first)
        column = jnp.where(is_back, value.first, value.last)
        return [self.scores[value.kind, row, column] - log_sum_exp(self.rows.reshape(-1))]


@piece
class InformedMoves(OrderProposal):
    """Draw a move with weight `exp(½ gain)`, the gain being its exact effect on the bent landscape.

    The square root is a balanced weight: Metropolis then accepts with a ratio of normalising sums, which
    is close to one when single moves change them little.

    Attributes
    ----------
    kinds
        Kinds of moves that compete, each with its table of gains.
    """

    kinds: tuple[str, ...] = static()

    def distribution(self, landscape: Landscape, state: State) -> ScoredMoves:
        """Softmax over all moves of all kinds, from their exact gains."""
        return ScoredMoves.of(
            self.kinds, jnp.stack([self._scores(landscape, state, kind) for kind in self.kinds])
        )

    def support(self, landscape: Landscape, state: State) -> Move:
        """All moves, for exact enumeration of small domains."""
        size = landscape.domain.num_sites
        lists = []
        for index, kind in enumerate(self.kinds):
            rows, columns = np.nonzero(is_move(kind, size))
            lists.append(as_move(kind, jnp.asarray(rows), jnp.asarray(columns), index))
        return _joined(lists)

    def evaluations(self, landscape: Landscape) -> int:
        """Evaluations that weigh a proposal and its way back: a table of every kind for each."""
        return 2 * sum(evaluations_per_order_table(landscape.target, kind) for kind in self.kinds)

    def _scores(self, landscape: Landscape, state: State, kind: str) -> Array:
        gains = landscape.inverse_temperature * differences(landscape.target, kind, state.position)
        coupling = landscape.coupling
        if isinstance(coupling, OrderCoupling):
            gains += coupling.move_differences(kind, state.position, state.center)
        return 0.5 * gains


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

    def terms(self, value: Move) -> list[Array]:
        """Log-probability of a move, the same as that of its inverse."""
        num_stretches = self.num_items * (self.num_items - 1) // 2
        num_moves = len(self.kinds) * num_stretches * 2 * self._longest_shifts
        return [-jnp.log(num_moves.astype(jnp.result_type(float)))[value.kind]]

    def _bounds(self, kind_word: Array) -> tuple[Any, ...]:
        longest = self._longest_shifts[kind_word % len(self.kinds)]
        return len(self.kinds), self.num_items, self.num_items - 1, longest

    @property
    def _longest_shifts(self) -> Array:
        sizes = [LONGEST_SHIFT if kind == "or_opt" else 1 for kind in self.kinds]
        return jnp.asarray(sizes, jnp.uint32)


@piece
class UniformMoves(OrderProposal):
    """Draw any move; one log-density per step, no tables.

    Attributes
    ----------
    kinds
        Kinds of moves, drawn equally often.
    """

    kinds: tuple[str, ...] = static()

    def distribution(self, landscape: Landscape, state: State) -> AnyMove:
        """Uniform over places and shifts."""
        return AnyMove(self.kinds, landscape.domain.num_sites)

    def support(self, landscape: Landscape, state: State) -> Move:
        """All moves, for exact enumeration of small domains."""
        first, last = np.triu_indices(landscape.domain.num_sites, 1)
        lists = []
        for index, kind in enumerate(self.kinds):
            longest = LONGEST_SHIFT if kind == "or_opt" else 1
            for shift in (*range(-longest, 0), *range(1, longest + 1)):
                shifts = jnp.full(len(first), shift)
                lists.append(Move(jnp.asarray(index), jnp.asarray(first), jnp.asarray(last), shifts))
        return _joined(lists)


def _joined(lists: list[Move]) -> Move:
    sizes = [moves.first.shape[0] for moves in lists]
    kinds = [jnp.full(size, moves.kind) for moves, size in zip(lists, sizes, strict=True)]
    full = [moves._replace(kind=kind) for moves, kind in zip(lists, kinds, strict=True)]
    return jax.tree.map(lambda *fields: jnp.concatenate(fields), *full)
