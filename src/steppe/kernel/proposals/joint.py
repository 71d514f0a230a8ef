"""Position and center proposed from the same state, for one joint decision."""

from typing import NamedTuple

import equinox as eqx
from jax import Array

from steppe.errors import DomainError
from steppe.kernel.density import JointDensity
from steppe.kernel.distributions import Flips, Gaussian, Levels
from steppe.kernel.keys import Keys
from steppe.kernel.proposals.center import CenterLangevin
from steppe.kernel.proposals.discrete_langevin import DiscreteLangevin
from steppe.kernel.types import POSITION_AND_CENTER, ChainState
from steppe.target import Target


class PositionAndCenter(NamedTuple):
    """Independent draws of position and center."""

    position: Flips | Levels
    center: Gaussian

    def sample(self, keys: Keys) -> tuple[Array, Array]:
        """Draw both, from the two words of the same pairs."""
        own = keys.share_words(self.center.mean.size)
        return self.position.sample(own), self.center.sample(own)

    def log_prob_terms(self, value: tuple[Array, Array]) -> list[Array]:
        """Log-probability terms of both."""
        return [*self.position.log_prob_terms(value[0]), *self.center.log_prob_terms(value[1])]


class JointProposal(eqx.Module):
    """The paper's Algorithm 1: one proposal for (θ, a), both drifts taken at the old pair."""

    component_id = "joint-proposal"

    position: DiscreteLangevin
    center: CenterLangevin

    moves = POSITION_AND_CENTER
    is_conditional = False

    def at(self, density: JointDensity, state: ChainState) -> PositionAndCenter:
        """Product of the two proposals."""
        return PositionAndCenter(self.position.at(density, state), self.center.at(density, state))

    def apply(self, density: JointDensity, state: ChainState, value: tuple[Array, Array]) -> ChainState:
        """Evaluate the drawn position beside the drawn center."""
        return density.evaluate(*value)

    def inverse(self, state: ChainState, value: tuple[Array, Array]) -> tuple[Array, Array]:
        """Return the value that leads back: the old pair."""
        assert state.center is not None
        return state.position, state.center

    def count_evaluations(self, density: JointDensity) -> int:
        """Evaluations beyond that of the proposed state: none."""
        return 0

    def support(self, density: JointDensity, state: ChainState) -> tuple[Array, Array]:
        """Refuse: pairs of a position and a real center are not enumerated."""
        raise DomainError(
            "Position and center move in one decision, so positions alone have no transition matrix. Use "
            "`edula_glu` or `edmala_glu`, or sample."
        )

    def check(self, name: str, target: Target) -> None:
        """Refuse what the position's proposal refuses."""
        self.position.check(name, target)
