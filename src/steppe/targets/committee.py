"""The committee machine: several binary perceptrons that vote.

Unit `k` of `K` sees the field `h_k = w_k·ξ / √n` of its `n` inputs and votes `sign(h_k)`; the majority is the
answer, and a tie is an error. To have a gradient, the log-density softens votes to `tanh(γ h_k)`. With one
unit this is the perceptron, up to that softening.
"""

from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain import Binary, Spin
from steppe.errors import TargetError
from steppe.numerics import softplus
from steppe.target import Incremental, Target
from steppe.targets.checks import choice, count, positive
from steppe.targets.perceptron import check_patterns

Wiring = Literal["full", "tree"]


class CommitteeMachine(Target):
    """Patterns to be classified: `U = −β Σ_μ softplus(−κ y_μ Σ_k tanh(γ h_kμ) / √K)`.

    Attributes
    ----------
    domain
        Weights of all units, unit after unit.
    patterns
        Inputs of every unit divided by `√n`: units × patterns × n, or 1 × patterns × n where all units see
        the same.
    labels
        `y`, one per pattern.
    inverse_temperature, sharpness, gain
        `β`, `κ`, `γ`.
    num_units
        `K`.
    """

    patterns: Array
    labels: Array
    inverse_temperature: Array
    sharpness: Array
    gain: Array
    num_units: int = eqx.field(static=True)

    def weights(self, position: Array) -> Array:
        """The ±1 weights of a position, units × inputs."""
        weights = position if isinstance(self.domain, Spin) else 2 * position - 1
        return weights.reshape(self.num_units, -1)

    def training_errors(self, position: Array) -> Array:
        """Number of patterns the majority gets wrong, of a position or of each one of a stack."""
        if position.ndim > 1:
            return jax.vmap(self.training_errors)(position)
        votes = jnp.sum(jnp.sign(self.fields(position)), axis=0)
        return jnp.sum(self.labels * votes <= 0)

    def fields(self, position: Array) -> Array:
        """`h`, units × patterns."""
        weights = self.weights(position)
        shared = jnp.broadcast_to(self.patterns, (self.num_units, *self.patterns.shape[1:]))
        return jnp.einsum("kpn,kn->kp", shared, weights, precision="highest")

    def log_density(self, position: Array) -> Array:
        """`U` at a position."""
        return jnp.sum(self._values(jnp.sum(jnp.tanh(self.gain * self.fields(position)), axis=0)))

    def differences(self, position: Array) -> Array:
        """Exact differences of all flips."""
        return self.differences_at(self.fields(position), position, jnp.arange(self.domain.num_sites))

    @property
    def incremental(self) -> Incremental[Array]:
        """The fields are remembered."""
        return Incremental(self.fields, self.differences_at, self.update_fields)

    def differences_at(self, fields: Array, position: Array, sites: Array) -> Array:
        """Exact differences of flips at a few sites, one pass over the patterns each."""
        jumps = self.domain.slopes(position[sites], jnp.ones(sites.shape))
        flips = jnp.sum(jumps, axis=1)  # one of the two levels is where the site is
        unit, moved = self._move(fields, sites, flips)
        votes = jnp.tanh(self.gain * fields)
        total = jnp.sum(votes, axis=0)
        after = total - votes[unit] + jnp.tanh(self.gain * moved)
        gains = jnp.sum(self._values(after) - self._values(total), axis=1)
        return jnp.where(jumps == 0, 0, gains[:, None])

    def update_fields(self, fields: Array, position: Array, site: Array, level: Array) -> Array:
        """Move the fields of one unit along with a change of one of its weights."""
        change = self.domain.from_levels(level) - position[site]
        unit, moved = self._move(fields, site[None], change[None])
        return fields.at[unit[0]].set(moved[0])

    def _move(self, fields: Array, sites: Array, changes: Array) -> tuple[Array, Array]:
        """Units of some sites, and their fields after the sites change by the given amounts."""
        num_inputs = self.patterns.shape[2]
        unit, place = sites // num_inputs, sites % num_inputs
        seen = unit if self.patterns.shape[0] > 1 else jnp.zeros_like(unit)
        columns = self.patterns[seen, :, place]
        return unit, fields[unit] + (self._scale * changes)[:, None] * columns

    def _values(self, totals: Array) -> Array:
        margins = self.labels * totals / self.num_units**0.5
        return -self.inverse_temperature * softplus(-self.sharpness * margins)

    @property
    def _scale(self) -> int:
        return 1 if isinstance(self.domain, Spin) else 2


@checked(TargetError)
def committee(
    patterns: ArrayLike,
    labels: ArrayLike,
    num_units: int = 3,
    *,
    wiring: Wiring = "full",
    sharpness: ArrayLike = 4.0,
    gain: ArrayLike = 2.0,
    inverse_temperature: ArrayLike = 1.0,
    spins: bool = False,
) -> CommitteeMachine:
    """Committee machine of `K` binary perceptrons, each with one vote.

    `U = −β Σ softplus(−κ y Σ_k tanh(γ h_k) / √K)` over all patterns.

    Parameters
    ----------
    patterns
        `ξ`, patterns × inputs.
    labels
        `y`, one of ±1 per pattern.
    num_units
        `K`. An odd number avoids ties.
    wiring
        `"full"`: every unit sees all inputs. `"tree"`: each sees its own part of them, in order, so their
        number must be a multiple of `K`.
    sharpness
        `κ > 0`: what a wrong answer costs.
    gain
        `γ > 0`: raising it brings soft votes closer to signs.
    inverse_temperature
        `β > 0`. Traced: annealing it never recompiles.
    spins
        Positions `w` in ±1 (`Spin`) or, by default, bits with `w = 2·position − 1` (`Binary`).

    Examples
    --------
    >>> from steppe.targets import committee, teacher_student
    >>> problem = teacher_student(0, num_inputs=9, load=2.0)
    >>> target = committee(problem.patterns, problem.labels, num_units=3, wiring="tree")
    >>> target.domain, len(problem.labels)
    (Binary(9), 18)
    """
    rows, signs = check_patterns("committee", patterns, labels)
    num_units = count("committee(num_units=...)", num_units)
    seen = _see(rows, num_units, choice("committee(wiring=...)", wiring, get_args(Wiring)))
    num_sites = num_units * seen.shape[2]
    return CommitteeMachine(
        domain=Spin(num_sites) if spins else Binary(num_sites),
        patterns=seen / seen.shape[2] ** 0.5,
        labels=signs,
        inverse_temperature=positive("committee(inverse_temperature=...)", inverse_temperature),
        sharpness=positive("committee(sharpness=...)", sharpness),
        gain=positive("committee(gain=...)", gain),
        num_units=num_units,
    )


def _see(rows: Array, num_units: int, wiring: Wiring) -> Array:
    """Inputs of each unit: units × patterns × inputs of a unit."""
    if wiring == "full":
        return rows[None]
    if rows.shape[1] % num_units:
        raise TargetError(
            f"`committee(wiring='tree')` shares {rows.shape[1]} inputs among {num_units} units, which leaves "
            "some over. Use a multiple, or `wiring='full'`."
        )
    return rows.reshape(len(rows), num_units, -1).swapaxes(0, 1)
