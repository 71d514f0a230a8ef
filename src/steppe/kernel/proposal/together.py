"""Position and center proposed from the same state, for one joint decision."""

from typing import Any, NamedTuple

from jax import Array

from steppe.kernel.landscape import Landscape
from steppe.kernel.noise import Keys
from steppe.kernel.proposal.center import CenterLangevin
from steppe.kernel.proposal.discrete_langevin import DiscreteLangevin
from steppe.kernel.state import State
from steppe.pytree import piece


class Product(NamedTuple):
    """Independent draws of position and center."""

    position: Any
    center: Any

    def sample(self, keys: Keys) -> tuple[Array, Array]:
        """Draw both, from the two words of the same pairs."""
        own = keys.shared(self.center.mean.size)
        return self.position.sample(own), self.center.sample(own)

    def terms(self, value: tuple[Array, Array]) -> list[Array]:
        """Log-probability terms of both."""
        return [*self.position.terms(value[0]), *self.center.terms(value[1])]


@piece
class Together:
    """The paper's Algorithm 1: one proposal for (θ, a), both drifts taken at the old pair."""

    position: DiscreteLangevin
    center: CenterLangevin

    moves = ("position", "center")
    is_exact = False

    def distribution(self, landscape: Landscape, state: State) -> Product:
        """Product of the two proposals."""
        return Product(
            self.position.distribution(landscape, state), self.center.distribution(landscape, state)
        )

    def move(self, landscape: Landscape, state: State, value: tuple[Array, Array]) -> State:
        """Evaluate the drawn position beside the drawn center."""
        return landscape.at(*value)

    def reverse(self, old: State, value: tuple[Array, Array]) -> tuple[Array, Array]:
        """Return the value that leads back: the old pair."""
        return old.position, old.center
