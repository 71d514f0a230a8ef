"""Blocks of a mixed model: discrete sites given the real coordinates, and real coordinates given the sites.

`p(θ, x) ∝ exp{β U(θ, x)}` with sites `θ` and reals `x`: any block of sites leaves `p(θ | x)` invariant where
it is shown the target at `x`, Hamiltonian Monte Carlo leaves `p(x | θ)` invariant, so one after the other
leaves `p` invariant.
"""

from types import ModuleType
from typing import NoReturn, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree

from steppe.errors import RecipeError
from steppe.kernel.blocks.metropolis import AroundBlock
from steppe.kernel.density import JointDensity
from steppe.kernel.keys import Keys
from steppe.kernel.parameters import POSITIVE, Number, parameter
from steppe.kernel.types import REALS, Block, ChainState, StepInfo, Unprepared
from steppe.optional import require
from steppe.target.log_density import Target, hold_reals


class GivenReals(AroundBlock[Block]):
    """A block of discrete sites, shown the target at the real coordinates of the moment.

    What it remembers of the target is made again in every step, because the real coordinates have moved.
    """

    component_id = "given-reals"

    moves_replicas = False

    @property
    def chains_last(self) -> bool:
        """Never: every chain has a target of its own."""
        return False

    @property
    def uses_gradient(self) -> bool:
        """Whether the block does."""
        return self.block.uses_gradient

    def check(self, name: str, target: Target) -> None:
        """Refuse what the block refuses, and a target without real coordinates."""
        check_has_reals(name, target)
        self.block.check(name, hold_reals(target))

    def prepare(self, target: Target) -> Self:
        """Prepare the block; what it computes must hold for all real coordinates, as graphs do."""
        return eqx.tree_at(lambda made: made.block, self, self.block.prepare(hold_reals(target)))

    def init(self, density: JointDensity, state: ChainState, previous: PyTree | None = None) -> PyTree:
        """What the block remembers."""
        return self.block.init(*_show(density, state), previous)

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: PyTree
    ) -> tuple[ChainState, PyTree, StepInfo | None]:
        """Move the sites once."""
        shown, plain = _show(density, state)
        moved, own, info = self.block.step(keys, shown, plain, self.block.init(shown, plain, own))
        return moved._replace(reals=state.reals), own, info

    def count_evaluations(self, density: JointDensity) -> float:
        """Evaluations of a step of the block."""
        return self.block.count_evaluations(density)

    def transition_matrix(self, density: JointDensity, center: Array | None) -> NoReturn:
        """Refuse: there is a matrix for every value of the real coordinates."""
        raise RecipeError(
            "A mixed model has no transition matrix of positions; ask for that of the discrete recipe on "
            "`target.given({...})`."
        )


class HamiltonianBlock(Unprepared, eqx.Module):
    """Hamiltonian Monte Carlo of the real coordinates given the sites, by `blackjax.hmc`.

    Attributes
    ----------
    real_step_size
        Step size of the leapfrog integrator, in units of the scales of the coordinates.
    num_leapfrog
        Leapfrog steps of a move; with one, it is the Metropolis-adjusted Langevin algorithm.
    """

    component_id = "hamiltonian-block"

    real_step_size: Number = parameter(POSITIVE)
    num_leapfrog: int = eqx.field(static=True, default=10)

    moves = REALS
    is_adjusted = True
    uses_gradient = False
    moves_replicas = False

    def check(self, name: str, target: Target) -> None:
        """Refuse a target without real coordinates, or a computer without BlackJAX."""
        check_has_reals(name, target)
        require_blackjax(name)

    def init(self, density: JointDensity, state: ChainState, previous: tuple[()] | None = None) -> tuple[()]:
        """Nothing is remembered: the sites have moved since."""
        return ()

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: tuple[()]
    ) -> tuple[ChainState, tuple[()], StepInfo]:
        """One trajectory, accepted or not; then the sites are evaluated where it ends."""
        blackjax = require_blackjax("steppe.mixed")

        def log_density(reals: Array) -> Array:
            return density.inverse_temperature * density.target.given(reals).log_density(state.position)

        assert state.reals is not None
        masses = jnp.asarray(density.domain.real_scales, state.reals.dtype) ** 2
        hmc = blackjax.hmc(log_density, self.real_step_size, masses, self.num_leapfrog)
        moved, info = hmc.step(keys.center, hmc.init(state.reals))
        shown, _ = _show(density, state._replace(reals=moved.position))
        new = shown.evaluate(state.position, state.center, with_gradient=state.gradient is not None)
        rate = jnp.asarray(info.acceptance_rate, state.log_density.dtype)
        return (
            new._replace(reals=moved.position),
            own,
            StepInfo(
                acceptance_rate=rate,
                is_accepted=jnp.asarray(info.is_accepted),
                num_flips=jnp.zeros((), jnp.int32),
                num_nonfinite=jnp.isnan(info.energy).astype(jnp.int32),
                real_acceptance_rate=rate,
            ),
        )

    def count_evaluations(self, density: JointDensity) -> float:
        """Evaluations of one step: the trajectory with its start, and the sites where it ends."""
        return self.num_leapfrog + 2

    def transition_matrix(self, density: JointDensity, center: Array | None) -> np.ndarray:
        """Positions stay."""
        return np.eye(density.domain.num_states)


def require_blackjax(name: str) -> ModuleType:
    """Import BlackJAX, or say how to get it."""
    return require("blackjax", "blackjax", f"`{name}`, which moves real coordinates,")


def _show(density: JointDensity, state: ChainState) -> tuple[JointDensity, ChainState]:
    """Return the density of the sites at the real coordinates of a state, and the state without them."""
    assert state.reals is not None
    shown = JointDensity(
        density.target.given(state.reals), density.coupling, density.penalty, density.inverse_temperature
    )
    return shown, state._replace(reals=None)


def check_has_reals(name: str, target: Target) -> None:
    """Refuse a target without real coordinates."""
    if not target.domain.num_reals:
        raise RecipeError(
            f"`{name}` moves real coordinates beside discrete ones, and {target.domain!r} has none: use the "
            "discrete recipe alone, or `steppe.Product(z=..., mu=steppe.Real(2))`."
        )
