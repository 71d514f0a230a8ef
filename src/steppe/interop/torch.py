"""Log-densities written in PyTorch: one call back to Python evaluates a whole batch, value and gradient."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import PyTree

from steppe.arguments import checked
from steppe.domain import Domain
from steppe.errors import GradientError, TargetError
from steppe.optional import require
from steppe.target import Target
from steppe.validation import call_back

# PyTorch is imported when it is needed.
Tensor = Any
TorchFunction = Callable[[Tensor], Tensor]

NUM_PROBES = 3
# Rows of a batch may be summed in another order than one row alone; training-mode layers differ far more.
ROW_TOLERANCE = 1e-3


@checked(TargetError)
def from_torch(
    function: TorchFunction, domain: Domain, *, device: object = None, dtype: object = None
) -> Target:
    """Target whose log-density is a PyTorch function or module.

    Parameters
    ----------
    function
        `function(batch) → values`: a tensor of shape `(n, *domain.shape)` becomes `n` log-densities, each
        of its own row. `torch.vmap(f)` makes one of a function of a single position. Put a module into
        evaluation mode first.
    domain
        Where the position lives.
    device
        Where it is evaluated; by default where the module's parameters are, or the CPU.
    dtype
        In which precision; by default that of the module's parameters, or that of JAX.

    Notes
    -----
    A step calls back into Python once for all chains, and copies positions and gradients between the two
    libraries: half a millisecond or so per step beyond what PyTorch takes itself. Parameters are read at
    every call and get no gradients; changing them while a sampler runs changes what it samples. For
    float64, set `jax_enable_x64` for the whole process: JAX calls back from threads that do not see the
    context manager.

    Examples
    --------
    >>> import jax.numpy as jnp, steppe, torch
    >>> weights = torch.tensor([1.0, -1.0, 2.0])
    >>> target = steppe.interop.from_torch(lambda batch: batch @ weights, steppe.Binary(3))
    >>> value, gradient = target.value_and_grad(jnp.ones(3))
    >>> float(value), gradient.tolist()
    (2.0, [1.0, -1.0, 2.0])
    """
    torch = require("torch", "torch", "`from_torch`")
    evaluator = _Evaluator(torch, function, device, dtype)
    probes = np.asarray(domain.draw(jax.random.key(0), (NUM_PROBES,)))
    values, _ = call_back("function", _check, evaluator, probes)
    return TorchDensity(domain, jnp.asarray(values, jnp.result_type(float)), evaluator)


class TorchDensity(Target):
    """A PyTorch function as JAX sees it.

    Attributes
    ----------
    probe_values
        Log-densities of a few fixed positions. They tell the runner two functions apart, whose programs
        look the same to JAX.
    evaluator
        What calls PyTorch.
    """

    probe_values: Array
    evaluator: "_Evaluator" = eqx.field(static=True)

    def log_density(self, position: Array) -> Array:
        """`U` at a position; differentiable once."""
        return _differentiable(self, position)

    def value_and_grad(self, position: Array) -> tuple[Array, Array]:
        """`U` and its gradient, from one callback per batch."""
        dtype = position.dtype
        shapes = (jax.ShapeDtypeStruct((), dtype), jax.ShapeDtypeStruct(position.shape, dtype))
        return self._call(self.evaluator.value_and_grad, shapes, position)

    def value(self, position: Array) -> Array:
        """`U` alone."""
        return self._call(self.evaluator.value, jax.ShapeDtypeStruct((), position.dtype), position)

    def _call(
        self, function: Callable[[np.ndarray], PyTree], shapes: PyTree[jax.ShapeDtypeStruct], position: Array
    ) -> PyTree:
        """Mapped axes arrive in front, all at once; they are folded into one batch for PyTorch."""
        num_axes = position.ndim

        def on_host(stack: ArrayLike) -> PyTree[np.ndarray]:
            stack = np.asarray(stack)
            leading = stack.shape[: stack.ndim - num_axes]
            results = function(stack.reshape(-1, *stack.shape[stack.ndim - num_axes :]))
            return jax.tree.map(lambda r: r.astype(stack.dtype).reshape((*leading, *r.shape[1:])), results)

        return jax.pure_callback(on_host, shapes, position, vmap_method="expand_dims")


@jax.custom_jvp
def _differentiable(density: TorchDensity, position: Array) -> Array:
    return density.value(position)


@_differentiable.defjvp
def _differentiate(
    primals: tuple[TorchDensity, Array], tangents: tuple[TorchDensity, Array]
) -> tuple[Array, Array]:
    value, gradient = primals[0].value_and_grad(primals[1])
    return value, jnp.sum(gradient * tangents[1])


class _Evaluator:
    """Calls PyTorch on arrays of NumPy."""

    def __init__(self, torch: ModuleType, function: TorchFunction, device: object, dtype: object) -> None:
        module: Tensor = function
        first = next(module.parameters(), None) if isinstance(function, torch.nn.Module) else None
        self._torch, self._function = torch, function
        self._device = device if device is not None or first is None else first.device
        self._dtype = dtype if dtype is not None or first is None else first.dtype

    def value(self, batch: np.ndarray) -> np.ndarray:
        """Log-densities of the rows."""
        with self._torch.no_grad():
            return self._to_numpy(self.raw_values(self._tensor(batch)))

    def value_and_grad(self, batch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log-densities of the rows, and their gradients."""
        values, gradient = self.raw_value_and_grad(batch)
        return self._to_numpy(values), self._to_numpy(gradient)

    def raw_value_and_grad(self, batch: np.ndarray) -> tuple[Tensor, Tensor]:
        """The same as tensors; the gradient is `None` where values do not depend on the batch."""
        with self._torch.enable_grad():
            tensor = self._tensor(batch).requires_grad_()
            values = self.raw_values(tensor)
            if not getattr(values, "requires_grad", False):
                return values, None
            return values, self._torch.autograd.grad(values.sum(), tensor, allow_unused=True)[0]

    def raw_values(self, tensor: Tensor) -> Tensor:
        """What the function returns, with a trailing axis of length one removed."""
        values = self._function(tensor)
        is_column = getattr(values, "ndim", 0) == 2 and values.shape[1] == 1
        return values[:, 0] if is_column else values

    def _tensor(self, batch: np.ndarray) -> Tensor:
        # A copy: PyTorch wants memory it may write to.
        return self._torch.as_tensor(np.array(batch)).to(device=self._device, dtype=self._dtype)

    def _to_numpy(self, tensor: Tensor) -> np.ndarray:
        return tensor.detach().cpu().numpy()


def _check(evaluator: _Evaluator, probes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Call the function once as samplers will, and refuse what would fail or mislead later."""
    try:
        values, gradient = evaluator.raw_value_and_grad(probes)
    except Exception as error:
        reason = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else "no message"
        raise TargetError(
            f"`from_torch(function)` failed on a batch of shape {probes.shape}: {type(error).__name__}: "
            f"{reason}. It must map such a batch to {len(probes)} log-densities with operations of PyTorch; "
            "`torch.vmap(f)` makes a batched function of one of a single position."
        ) from error
    shape = tuple(getattr(values, "shape", ()))
    if shape != (len(probes),):
        raise TargetError(
            f"`from_torch(function)` must return one log-density per row, shape ({len(probes)},) for a batch "
            f"of shape {probes.shape}; got {type(values).__name__} of shape {shape}. Sum over the axes of a "
            "position, not over the batch; `torch.vmap(f)` batches a function of one position."
        )
    if gradient is None:
        raise GradientError(
            "`from_torch(function)` returns values that, to PyTorch, do not depend on the batch: the graph "
            "is broken by `detach()`, `item()`, `no_grad()`, a comparison or an integer index. "
            "Write it with differentiable operations of the batch."
        )
    _check_rows(evaluator, probes)
    return evaluator.value_and_grad(probes)


def _check_rows(evaluator: _Evaluator, probes: np.ndarray) -> None:
    together = evaluator.value(probes)
    alone = np.concatenate([evaluator.value(probes[i : i + 1]) for i in range(len(probes))])
    if not np.allclose(together, alone, rtol=ROW_TOLERANCE, atol=ROW_TOLERANCE, equal_nan=True):
        raise TargetError(
            f"`from_torch(function)` gives {together} for three positions together and {alone} one by one. "
            "Each row must be evaluated alone and the same way every time: call `module.eval()` to switch "
            "off dropout and batch statistics."
        )
