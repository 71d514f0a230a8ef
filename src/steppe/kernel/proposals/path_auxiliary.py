"""Path-auxiliary proposals (PAS): the ordered path of Gibbs with gradients, with a length of its own."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import gammaln

from steppe.kernel.density import JointDensity
from steppe.kernel.keys import Keys
from steppe.kernel.parameters import POSITIVE, Number, optional_parameter
from steppe.kernel.proposals.gibbs_with_gradients import GibbsWithGradients, Path, Picks
from steppe.kernel.proposals.site_proposal import (
    WeighedChanges,
    check_sites,
)
from steppe.kernel.types import ChainState
from steppe.random import draws
from steppe.target.log_density import Target


class CutPath(NamedTuple):
    """A path of which only the first `length` changes are made; the others restore what is there."""

    path: Path
    length: Array


class CutPicks(NamedTuple):
    """A length that does not depend on the state, then as many picks without replacement.

    `log_lengths` are the log-probabilities of lengths from 1; `None` for lengths that are all alike.
    """

    picks: Picks
    log_lengths: Array | None

    def sample(self, keys: Keys) -> CutPath:
        """Draw a length and pick."""
        key, longest = jax.random.fold_in(keys.position, 1), self.picks.num_flips
        if self.log_lengths is None:
            length = jax.random.randint(key, (), 1, longest + 1)
        else:
            length = 1 + draws.categorical(key, self.log_lengths)
        return cut(self.picks.sample(keys), length)

    def log_prob_terms(self, value: CutPath) -> list[Array]:
        """Log-probability of the picks made, one term each; every length is as likely there as back."""
        (terms,) = self.picks.log_prob_terms(value.path)
        made = jnp.where(_is_made(value), terms, 0.0)
        if self.log_lengths is None:
            return [made - jnp.log(self.picks.num_flips) / len(terms)]
        return [made + self.log_lengths[value.length - 1] / len(terms)]


class PathAuxiliary(WeighedChanges):
    """Change a random number of sites, from 1 to `num_flips`, each with weight `exp(½ g·(e_k − θ_i))`.

    Notation: Sun et al. (2022), fast form: weights of the whole path from the gradient at its start, those of
    the way back from the gradient at its end, so that one evaluation serves any length. What it adds to
    `GibbsWithGradients` is the random length: no parity is kept, and short and long moves take turns.

    Attributes
    ----------
    num_flips
        The longest path.
    step_size
        `α`: lengths are Poisson of mean `α` in squared moves of the domain, given that they are from 1 to
        `num_flips` (Sun et al. 2023, iSCO). `None`: uniform from 1 to `num_flips`.
    """

    component_id = "path-auxiliary"

    num_flips: int = eqx.field(static=True)
    step_size: Number | None = optional_parameter(POSITIVE)

    def at(self, density: JointDensity, state: ChainState) -> CutPicks:
        """Softmax over all one-site changes, without replacement of sites, for every length."""
        return CutPicks(self._whole.at(density, state), self._weigh_lengths(density))

    def apply(self, density: JointDensity, state: ChainState, value: CutPath) -> ChainState:
        """Evaluate the end of the path."""
        return self._whole.apply(density, state, value.path)

    def inverse(self, state: ChainState, value: CutPath) -> CutPath:
        """Walk the changes that were made backwards."""
        places = jnp.arange(value.path.sites.shape[0])
        order = jnp.where(_is_made(value), value.length - 1 - places, places)
        sites, levels, old_levels = (part[order] for part in value.path)
        return CutPath(Path(sites, old_levels, levels), value.length)

    def support(self, density: JointDensity, state: ChainState) -> CutPath:
        """All paths of all lengths from a state, for exact enumeration on small domains."""
        parts = []
        for length in range(1, self.num_flips + 1):
            short = GibbsWithGradients(length).support(density, state)
            idle = _idle_sites(short.sites, density.domain.num_sites, self.num_flips - length)
            levels = density.domain.to_levels(state.position).astype(jnp.int32)[idle]
            filled = Path(
                *(jnp.concatenate(pair, axis=1) for pair in zip(short, (idle, levels, levels), strict=True))
            )
            parts.append(jax.vmap(cut)(filled, jnp.full(len(idle), length)))
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)

    def check(self, name: str, target: Target) -> None:
        """Refuse fewer sites than are changed."""
        check_sites(name, target, self.num_flips)

    def _weigh_lengths(self, density: JointDensity) -> Array | None:
        """`log p(l) = l log μ − log l! + const` for `l` from 1 to the longest path."""
        if self.step_size is None:
            return None
        lengths = jnp.arange(1, self.num_flips + 1)
        log_mean = jnp.log(self.step_size / density.domain.squared_unit)
        return jax.nn.log_softmax(lengths * log_mean - gammaln(lengths + 1.0))

    @property
    def _whole(self) -> GibbsWithGradients:
        return GibbsWithGradients(self.num_flips, balancing=self.balancing, differences=self.differences)


def cut(path: Path, length: Array) -> CutPath:
    """Return the path with changes beyond a length undone."""
    is_made = jnp.arange(path.sites.shape[0]) < length
    return CutPath(path._replace(levels=jnp.where(is_made, path.levels, path.old_levels)), length)


def _is_made(value: CutPath) -> Array:
    return jnp.arange(value.path.sites.shape[0]) < value.length


def _idle_sites(sites: Array, num_sites: int, number: int) -> Array:
    """Some sites that are not on each path, to fill it up with."""
    is_used = jnp.any(sites[:, :, None] == jnp.arange(num_sites), axis=1)
    return jnp.argsort(is_used, axis=1, stable=True)[:, :number]
