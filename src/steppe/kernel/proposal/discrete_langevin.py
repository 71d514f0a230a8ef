"""The discrete Langevin proposal (DLP): every site at once, guided by the gradient."""

import jax.numpy as jnp
from jax import Array

from steppe.kernel.landscape import Landscape
from steppe.kernel.proposal.sites import Flips, Levels
from steppe.kernel.state import State
from steppe.pytree import piece, static


@piece
class DiscreteLangevin:
    """Draw every site's level with log-weight `½ g·(e_k − θ_i) − |e_k − θ_i|² / (2α)`.

    Notation: DLP eq. (4) and paper eq. (8); `g` is the gradient of the bent landscape at the state,
    `e_k` the level. Smaller `α` flips fewer sites.

    The coupling is known exactly, and its linearisation in `g` leaves out
    `−|e_k − θ_i|² / (4η)`. With `exact_coupling` that part is put back, which is the same proposal at
    `1/α + 1/(2η)` in place of `1/α`.

    Attributes
    ----------
    step_size
        `α`.
    exact_coupling
        Use the exact difference of the coupling term instead of the paper's linearised one.
    """

    step_size: Array | float
    exact_coupling: bool = static(default=False)

    moves = ("position",)
    is_exact = False

    def distribution(self, landscape: Landscape, state: State) -> Flips | Levels:
        """Product over sites, from one gradient."""
        domain, slope = landscape.domain, landscape.slope(state)
        stiffness = 1 / self.step_size
        if self.exact_coupling:
            stiffness += 0.5 * landscape.coupling.inverse_variance
        if domain.is_two_level:
            gain = domain.flip_slopes(state.position, slope)
            return Flips(domain, state.position, 0.5 * (gain - domain.squared_flip * stiffness))
        gain = domain.slopes(state.position, slope)
        logits = 0.5 * (gain - domain.squared_jumps(state.position) * stiffness)
        return Levels(domain, jnp.where(domain.level_mask, logits, -jnp.inf))

    def move(self, landscape: Landscape, state: State, value: Array) -> State:
        """Evaluate the drawn position; the center stays."""
        return landscape.at(value, state.center)

    def reverse(self, old: State, value: Array) -> Array:
        """Return the value that leads back: the old position."""
        return old.position

    def support(self, landscape: Landscape, state: State) -> Array:
        """All values, for exact enumeration on small domains."""
        return landscape.domain.enumerate()
