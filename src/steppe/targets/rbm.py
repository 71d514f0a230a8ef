"""Restricted Boltzmann machines with their hidden bits summed out."""

from typing import NamedTuple, NoReturn

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain import Binary, Product
from steppe.errors import DomainError, TargetError
from steppe.kernel.compose import Recipe, recipe
from steppe.kernel.density import JointDensity
from steppe.kernel.keys import Keys
from steppe.kernel.types import POSITION, ChainState, StepInfo, Unprepared
from steppe.numerics import total
from steppe.random import draws
from steppe.references import MIN_PROBABILITY
from steppe.target import Target
from steppe.targets.checks import array_of_shape, real_array
from steppe.targets.rbm_normalizer import LogWeights, anneal_rbm, sum_smaller_layer
from steppe.targets.units import LinearUnits, Softplus


class Resampled(NamedTuple):
    """Both layers drawn anew: the state, the inputs of its hidden bits, and the log-ratio to decide on."""

    state: ChainState
    inputs: Array
    log_ratio: Array


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

    def with_hidden(self) -> "RbmWithHidden":
        """Return the joint distribution of both layers, of whose visible bits this is the distribution."""
        layers = Product(visible=self.domain, hidden=Binary(self.weights.shape[0]))
        return RbmWithHidden(layers, self)

    def resample(self, key: Array, density: JointDensity, state: ChainState, inputs: Array) -> Resampled:
        """Draw the hidden layer and the visible one; what `exp{β U}` and a field leave to decide."""
        key_hidden, key_visible = jax.random.split(key)
        dtype = state.position.dtype
        hidden = draws.flips(key_hidden, inputs).astype(dtype)
        position = draws.flips(key_visible, hidden @ self.weights + self.visible_bias).astype(dtype)
        inputs = self.inputs(position)
        log_density = self.total(self.unit.value(inputs), position)
        new = state._replace(position=position, log_density=log_density)
        # The draw is reversible for `exp U`; at another temperature the rest is decided. At 1 it is all.
        return Resampled(new, inputs, density.change(new, state) - (log_density - state.log_density))

    def sum_states(self) -> float | None:
        """`log Z`, summed over the smaller layer if it has at most 20 bits."""
        return sum_smaller_layer(self.weights, self.hidden_bias, self.visible_bias)

    def bias_reference(self) -> np.ndarray:
        """Probabilities that bits of both layers are 1 in the RBM without weights, visible bits first.

        A reference for `steppe.parallel_tempering(base=layerwise_gibbs(), reference=...)` on
        `rbm.with_hidden()`.
        """
        biases = np.concatenate([np.asarray(self.visible_bias, float), np.asarray(self.hidden_bias, float)])
        # No bit is certain, so that no state is forbidden.
        return np.clip(1 / (1 + np.exp(-biases)), MIN_PROBABILITY, 1 - MIN_PROBABILITY)

    def make_tempered(self) -> tuple[Target, Recipe, np.ndarray | None]:
        """Return what tempers well and has the same `log Z`: both layers, from the RBM without weights."""
        return self.with_hidden(), layerwise_gibbs(), self.bias_reference()

    def anneal_weights(self, key: Array, num_chains: int, num_temperatures: int) -> LogWeights:
        """Annealed importance sampling from the RBM without weights, by layer-wise Gibbs."""
        return anneal_rbm(
            self.weights,
            self.hidden_bias,
            self.visible_bias,
            key,
            num_chains=num_chains,
            num_temperatures=num_temperatures,
        )


class RbmWithHidden(Target):
    """Both layers of a restricted Boltzmann machine: `U(v, h) = h·(Wv + b) + b_v·v`, visible bits first."""

    rbm: Rbm

    def split(self, position: Array) -> tuple[Array, Array]:
        """Visible and hidden bits of a position."""
        num_visible = self.rbm.domain.num_sites
        return position[..., :num_visible], position[..., num_visible:]

    def log_density(self, position: Array) -> Array:
        """`U` at a position."""
        visible, hidden = self.split(position)
        return self.combine(visible, hidden, self.rbm.inputs(visible))

    def combine(self, visible: Array, hidden: Array, inputs: Array) -> Array:
        """`U` of two layers and the inputs of the hidden one."""
        return total(hidden * inputs) + total(visible * self.rbm.visible_bias)

    def inputs(self, position: Array) -> Array:
        """Inputs of the hidden bits."""
        return self.rbm.inputs(self.split(position)[0])

    def resample(self, key: Array, density: JointDensity, state: ChainState, inputs: Array) -> Resampled:
        """Draw each layer given the other at an inverse temperature; nothing is left to decide."""
        key_hidden, key_visible = jax.random.split(key)
        rbm, dtype, beta = self.rbm, state.position.dtype, density.inverse_temperature
        field_visible, field_hidden = 0.0, 0.0
        if density.field is not None:
            field_visible, field_hidden = self.split(density.field[:, 1] - density.field[:, 0])
        hidden = draws.flips(key_hidden, beta * inputs + field_hidden).astype(dtype)
        logits = beta * (hidden @ rbm.weights + rbm.visible_bias) + field_visible
        visible = draws.flips(key_visible, logits).astype(dtype)
        inputs = rbm.inputs(visible)
        new = state._replace(
            position=jnp.concatenate([visible, hidden], axis=-1),
            log_density=self.combine(visible, hidden, inputs),
        )
        return Resampled(new, inputs, jnp.zeros_like(new.log_density))


@checked(TargetError)
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

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from steppe.targets import rbm
    >>> target = rbm([[1.0, -1.0, 0.5]], hidden_bias=0.0, visible_bias=[0.0, 0.0, 1.0])
    >>> round(float(target.log_density(jnp.asarray([1.0, 1.0, 0.0]))), 4)  # softplus(1 − 1) = log 2
    0.6931
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
    layer, which the other samplers do not, and serves as ground truth for them; build it on an `rbm`, or on
    `rbm(...).with_hidden()`, where it is exact at every temperature.

    Examples
    --------
    >>> import jax, numpy as np, steppe
    >>> target = steppe.targets.rbm(
    ...     np.random.default_rng(0).normal(size=(3, 6)), hidden_bias=0.0, visible_bias=0.0
    ... )
    >>> run = steppe.sample(target, steppe.targets.layerwise_gibbs(), key=jax.random.key(0), num_draws=200)
    >>> run.levels.shape
    (4, 200, 6)
    """
    return recipe("layerwise_gibbs", LayerwiseGibbsBlock())


class LayerwiseGibbsBlock(Unprepared, eqx.Module):
    """Draw the hidden layer given the visible one, then the visible layer given the hidden one.

    It remembers the inputs of the hidden bits.
    """

    component_id = "layerwise-gibbs-block"

    moves = POSITION
    is_adjusted = True
    uses_gradient = False
    moves_replicas = False
    takes_field = True

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
        target = _check_rbm(density.target)
        new, inputs, log_ratio = target.resample(keys.position, density, state, own)
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


def _check_rbm(target: Target) -> Rbm | RbmWithHidden:
    if not isinstance(target, Rbm | RbmWithHidden):
        raise TargetError(
            "`layerwise_gibbs()` samples a target made by `rbm(...)`; got "
            f"{type(target).__name__}. Use `gibbs()` for other targets."
        )
    return target
