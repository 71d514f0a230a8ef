"""Restricted Boltzmann machines with their hidden bits summed out."""

from typing import NoReturn, Unpack

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from steppe.domain import Binary
from steppe.errors import DomainError, TargetError
from steppe.kernel.compose import Recipe, recipe
from steppe.kernel.density import JointDensity
from steppe.kernel.keys import Keys
from steppe.kernel.types import POSITION, ChainState, StepInfo
from steppe.random import draws
from steppe.target import Target
from steppe.targets.checks import array_of_shape, real_array
from steppe.targets.rbm_normalizer import Annealing, LogNormalizer, log_normalizer
from steppe.targets.units import LinearUnits, Softplus


class Rbm(LinearUnits):
    """A restricted Boltzmann machine over its visible bits."""

    @property
    def weights(self) -> Array:
        """`W`, hidden × visible."""
        return self.matrix

    @property
    def hidden_bias(self) -> Array:
        """One per hidden bit."""
        return self.bias

    @property
    def visible_bias(self) -> Array:
        """One per visible bit."""
        return self.linear

    def log_normalizer(self, key: Array, **options: Unpack[Annealing]) -> LogNormalizer:
        """`log Σ_v exp U(v)` with its standard error; options as for `log_normalizer`."""
        return log_normalizer(self.weights, self.hidden_bias, self.visible_bias, key, **options)


def rbm(weights: ArrayLike, hidden_bias: ArrayLike, visible_bias: ArrayLike) -> Rbm:
    """Restricted Boltzmann machine: `U(v) = Σ_j softplus((Wv)_j + b_j) + b_v·v` over visible bits.

    Parameters
    ----------
    weights
        `W`, hidden × visible.
    hidden_bias
        `b`: one per hidden bit, or one number.
    visible_bias
        `b_v`: one per visible bit, or one number.

    Notes
    -----
    A batched evaluation costs two matrix products. Single-site samplers remember the input of the
    hidden bits and cost `O(hidden)` per site. The arrays may be traced, as in training.
    """
    matrix = real_array("rbm(weights=...)", weights, ndim=2)
    num_hidden, num_visible = matrix.shape
    if not matrix.size:
        raise TargetError(
            f"`rbm(weights=...)` needs at least one hidden and one visible bit; got shape {matrix.shape}."
        )
    return Rbm(
        domain=Binary(num_visible),
        matrix=matrix,
        columns=matrix.T,
        bias=array_of_shape("rbm(hidden_bias=...)", hidden_bias, (num_hidden,)),
        linear=array_of_shape("rbm(visible_bias=...)", visible_bias, (num_visible,)),
        unit=Softplus(),
    )


def layerwise_gibbs() -> Recipe:
    """Block Gibbs between the layers of an `rbm`: all hidden bits given the visible ones, and back.

    Notes
    -----
    Stationary distribution: `π` exactly, over the visible bits. Cost: two matrix products a step. It knows
    the hidden
    layer, which the other samplers do not, and serves as ground truth for them; build it on an `rbm`.
    """
    return recipe("layerwise_gibbs", LayerwiseGibbsBlock())


class LayerwiseGibbsBlock(eqx.Module):
    """Draw the hidden layer given the visible one, then the visible layer given the hidden one.

    It remembers the inputs of the hidden bits.
    """

    component_id = "layerwise-gibbs-block"

    moves = POSITION
    is_adjusted = True
    uses_gradient = False
    moves_replicas = False

    def init(self, density: JointDensity, state: ChainState, previous: Array | None = None) -> Array:
        """Evaluate the inputs of the hidden bits."""
        return _check_rbm(density.target).inputs(state.position)

    def count_evaluations(self, density: JointDensity) -> float:
        """Evaluations of one step: its two products with the weights are those of one value and gradient."""
        return 1

    def check(self, name: str, target: Target) -> None:
        """Refuse targets without a hidden layer."""
        _check_rbm(target)

    def transition_matrix(self, density: JointDensity, center: Array | None) -> NoReturn:
        """Refuse: the hidden layer is drawn between two positions."""
        raise DomainError("Layer-wise Gibbs draws the hidden layer between two positions: sample instead.")

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: Array
    ) -> tuple[ChainState, Array, StepInfo]:
        """Resample both layers once."""
        new, inputs = self._resample(_check_rbm(density.target), keys.position, state, own)
        # The draw is reversible for `exp U`; at another temperature the rest is decided. At 1 it is all.
        log_ratio = (density.inverse_temperature - 1) * (new.log_density - state.log_density)
        is_accepted = draws.log_uniform(keys.accept) < log_ratio
        kept = (state, own)
        new, own = jax.tree.map(lambda new, old: jnp.where(is_accepted, new, old), (new, inputs), kept)
        info = StepInfo(
            acceptance_rate=jnp.exp(jnp.minimum(log_ratio, 0.0)),
            is_accepted=is_accepted,
            num_flips=jnp.sum(density.domain.differs(new.position, state.position)),
            num_nonfinite=jnp.zeros((), jnp.int32),
        )
        return new, own, info

    def _resample(self, rbm: Rbm, key: Array, state: ChainState, own: Array) -> tuple[ChainState, Array]:
        key_hidden, key_visible = jax.random.split(key)
        dtype = state.position.dtype
        hidden = draws.flips(key_hidden, own).astype(dtype)
        position = draws.flips(key_visible, hidden @ rbm.weights + rbm.visible_bias).astype(dtype)
        inputs = rbm.inputs(position)
        log_density = rbm.total(rbm.unit.value(inputs), position)
        return state._replace(position=position, log_density=log_density), inputs


def _check_rbm(target: Target) -> Rbm:
    if not isinstance(target, Rbm):
        raise TargetError(
            "`layerwise_gibbs()` samples a target made by `rbm(...)`; got "
            f"{type(target).__name__}. Use `gibbs()` for other targets."
        )
    return target
