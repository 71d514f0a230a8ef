"""Pairwise log-densities: fields on single sites and couplings of pairs (Ising, Potts, QUBO, max-cut)."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from steppe.numerics import total
from steppe.target import Incremental, Target
from steppe.target.interactions import Interactions, PairForm
from steppe.target.picture import Picture
from steppe.targets.bonds import Bonds, GraphBonds, LatticeBonds, Sums

# Sites that are decided from one table where they rarely change.
TABLE_SIZE = 256


class Pairwise(Target):
    """`U = β (½ sᵀJs + h·s + c)`, linear in every single site, so that a slope is an exact difference.

    Attributes
    ----------
    domain
        Where the position lives.
    bonds
        `J`, symmetric, without diagonal.
    field
        `h`, of the shape of a position.
    reads_bits_as_spins
        Whether `s = 2·position − 1` instead of `s = position`.
    offset
        `c`.
    inverse_temperature
        `β`.
    """

    bonds: Bonds
    field: Array
    reads_bits_as_spins: bool = eqx.field(static=True, default=False)
    offset: Array = eqx.field(default_factory=partial(jnp.zeros, ()))
    inverse_temperature: Array = eqx.field(default_factory=partial(jnp.ones, ()))

    def log_density(self, position: Array) -> Array:
        """`U` at a position."""
        return self.inverse_temperature * self.unscale(position)

    def unscale(self, position: Array) -> Array:
        """`U / β` at a position."""
        values = self._values(position)
        return self._unscale(values, self.bonds.sums(values))

    def score(self, position: ArrayLike) -> Array:
        """`U / β` of one position, larger is better; problems that count otherwise say so."""
        return self.unscale(jnp.asarray(position))

    def is_feasible(self, position: ArrayLike) -> bool:
        """Always: there is no constraint."""
        return True

    def repair(self, position: ArrayLike) -> Array:
        """Return the position as it is: there is no constraint."""
        return jnp.asarray(position)

    def value_and_grad(self, position: Array) -> tuple[Array, Array]:
        """`U` and its gradient from one product with `J`."""
        values = self._values(position)
        sums = self.bonds.sums(values)
        return self.inverse_temperature * self._unscale(values, sums), self._slope * (sums + self.field)

    def batched_value_and_grad(self, stack: Array) -> tuple[Array, Array]:
        """`U` and its gradient for a stack of positions."""
        values = self._values(stack)
        sums = self.bonds.sum_batch(values)
        unscale = jax.vmap(self._unscale)(values, sums)
        return self.inverse_temperature * unscale, self._slope * (sums + self.field)

    def differences(self, position: Array) -> Array:
        """Exact differences of all one-site changes."""
        sums = self.bonds.sums(self._values(position))
        return self.domain.slopes(position, self._slope * (sums + self.field))

    # ---- pairs ---------------------------------------------------------------------------------

    @property
    def interactions(self) -> Interactions:
        """Which sites are bound."""
        return self.bonds.pairs()

    @property
    def picture(self) -> Picture | None:
        """The rows of a lattice in two dimensions, else the graph of bonds, where it is small and sparse."""
        shape = self.bonds.shape if isinstance(self.bonds, LatticeBonds) else ()
        if len(shape) == 2 and min(shape) > 1:
            return Picture("image", [], [], list(shape))
        return super().picture

    @property
    def pair_form(self) -> PairForm | None:
        """The sum itself: of products of values, on one-hot sites of agreements."""
        values, β = None, self.inverse_temperature
        if self.field.ndim == 1:
            low, high = self.domain.points(0)[:, 0].tolist()
            values = (2 * low - 1, 2 * high - 1) if self.reads_bits_as_spins else (low, high)
        return PairForm(
            strengths=self.bonds.strengths,
            field=self.field,
            values=values,
            scale=β,
            offset=β * self.offset,
        )

    # ---- incremental form ----------------------------------------------------------------------

    @property
    def incremental(self) -> Incremental[Sums] | None:
        """What the bonds remember, where they list neighbours."""
        if not self.bonds.lists_neighbours:
            return None
        # Where sites have many neighbours each is nearly decided by them and rarely changes.
        table_size = TABLE_SIZE if isinstance(self.bonds, GraphBonds) and self.bonds.has_memory else None
        return Incremental(self.init_cache, self.differences_at, self.update_cache, table_size=table_size)

    def init_cache(self, position: Array) -> Sums:
        """Make what the bonds remember."""
        return self.bonds.init_cache(self._values(position))

    def differences_at(self, cache: Sums, position: Array, sites: Array) -> Array:
        """Exact differences of one-site changes at a few sites."""
        sums = self.bonds.sums_at(cache, lambda where: self._values(position[where]), sites)
        return self.domain.slopes(position[sites], self._slope * (sums + self.field[sites]))

    def update_cache(self, cache: Sums, position: Array, site: Array, level: Array) -> Sums:
        """Keep what the bonds remember in step with a change of one site."""
        if not self.bonds.has_memory:
            return cache
        return self.bonds.update_cache(cache, site, self._values(self.domain.from_levels(level)))

    def _values(self, position: Array) -> Array:
        return 2 * position - 1 if self.reads_bits_as_spins else position

    def _unscale(self, values: Array, sums: Array) -> Array:
        return total((values * (0.5 * sums + self.field)).reshape(-1)) + self.offset

    @property
    def _slope(self) -> Array:
        return self.inverse_temperature * (2 if self.reads_bits_as_spins else 1)
