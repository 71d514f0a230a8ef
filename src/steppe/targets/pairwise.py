"""Log-densities with fields on single sites and couplings of pairs: Ising, Potts, QUBO, max-cut."""

from typing import Any

import jax
from jax import Array

from steppe.domain import Domain
from steppe.numerics import total
from steppe.pytree import piece, static
from steppe.targets.bonds import Bonds


@piece
class Pairwise:
    """`U = β (½ sᵀJs + h·s + c)`, linear in every single site, so that a slope is an exact difference.

    Attributes
    ----------
    bonds
        `J`, symmetric, without diagonal.
    field
        `h`, of the shape of a position.
    domain
        Where the position lives.
    reads_bits_as_spins
        Whether `s = 2·position − 1` instead of `s = position`.
    offset
        `c`.
    inverse_temperature
        `β`.
    """

    bonds: Bonds
    field: Array
    domain: Domain = static()
    reads_bits_as_spins: bool = static(default=False)
    offset: Array | float = 0.0
    inverse_temperature: Array | float = 1.0

    @property
    def is_incremental(self) -> bool:
        """Whether single sites can be followed."""
        return self.bonds.lists_neighbours

    def log_density(self, position: Array) -> Array:
        """`U` at a position."""
        return self.inverse_temperature * self.unscaled(position)

    def unscaled(self, position: Array) -> Array:
        """`U / β` at a position."""
        values = self._values(position)
        return self._unscaled(values, self.bonds.sums(values))

    def value_and_grad(self, position: Array) -> tuple[Array, Array]:
        """`U` and its gradient from one product with `J`."""
        values = self._values(position)
        sums = self.bonds.sums(values)
        return self.inverse_temperature * self._unscaled(values, sums), self._slope * (sums + self.field)

    def batched_value_and_grad(self, stack: Array) -> tuple[Array, Array]:
        """`U` and its gradient for a stack of positions."""
        values = self._values(stack)
        sums = self.bonds.batched_sums(values)
        unscaled = jax.vmap(self._unscaled)(values, sums)
        return self.inverse_temperature * unscaled, self._slope * (sums + self.field)

    def differences(self, position: Array) -> Array:
        """Exact differences of all one-site changes."""
        return self.domain.slopes(position, self.value_and_grad(position)[1])

    def start(self, position: Array) -> Any:
        """Make what the bonds remember."""
        return self.bonds.start(self._values(position))

    def differences_at(self, memory: Any, position: Array, sites: Array) -> Array:
        """Exact differences of one-site changes at a few sites."""
        sums = self.bonds.sums_at(memory, lambda where: self._values(position[where]), sites)
        return self.domain.slopes(position[sites], self._slope * (sums + self.field[sites]))

    def follow(self, memory: Any, position: Array, site: Array, level: Array) -> Any:
        """Keep what the bonds remember in step with a change of one site."""
        if not self.bonds.has_memory:
            return memory
        change = self._values(self.domain.from_levels(level)) - self._values(position[site])
        return self.bonds.follow(memory, site, change)

    def _values(self, position: Array) -> Array:
        return 2 * position - 1 if self.reads_bits_as_spins else position

    def _unscaled(self, values: Array, sums: Array) -> Array:
        return total((values * (0.5 * sums + self.field)).reshape(-1)) + self.offset

    @property
    def _slope(self) -> Array | float:
        return self.inverse_temperature * (2 if self.reads_bits_as_spins else 1)
