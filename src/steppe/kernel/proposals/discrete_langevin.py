"""The discrete Langevin proposal (DLP): every site at once, guided by the gradient."""

import equinox as eqx
import jax.numpy as jnp

from steppe.kernel.density import JointDensity
from steppe.kernel.distributions import Flips, Levels
from steppe.kernel.parameters import POSITIVE, Number, parameter
from steppe.kernel.proposals.site_proposal import PositionProposal
from steppe.kernel.types import ChainState


class DiscreteLangevin(PositionProposal):
    """Draw every site's level with log-weight `½ g·(e_k − θ_i) − |e_k − θ_i|² / (2α)`.

    Notation: DLP eq. (4) and paper eq. (8); `g` is the gradient of the joint density at the state,
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

    component_id = "discrete-langevin"

    step_size: Number = parameter(POSITIVE)
    exact_coupling: bool = eqx.field(static=True, default=False)

    def at(self, density: JointDensity, state: ChainState) -> Flips | Levels:
        """Product over sites, from one gradient."""
        domain, gradient = density.domain, density.gradient(state)
        stiffness = 1 / self.step_size
        if self.exact_coupling:
            stiffness += 0.5 * density.coupling.inverse_variance
        if domain.is_two_level:
            change = domain.flip_slopes(state.position, gradient)
            return Flips(domain, state.position, 0.5 * (change - domain.squared_flip * stiffness))
        change = domain.slopes(state.position, gradient)
        logits = 0.5 * (change - domain.squared_jumps(state.position) * stiffness)
        return Levels(domain, jnp.where(domain.level_mask, logits, -jnp.inf))
