"""The binary perceptron: ±1 weights that must classify given patterns.

Solutions of this problem come in dense, flat clusters and as isolated points, and which one is found
decides how well it generalises. The stability of a pattern is `m = y ξ·w / √N`; a pattern is an error if
`m ≤ 0`.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain import Binary, Spin
from steppe.errors import TargetError
from steppe.numerics import softplus
from steppe.targets.checks import choice, count, positive, real_array, zeros
from steppe.targets.units import LinearUnits, Softplus
from steppe.validation import refuse

# A JAX key, or what `numpy.random.default_rng` takes.
Seed = Array | int | Sequence[int] | None

Loss = Literal["softplus", "logistic", "errors"]

DEFAULT_SHARPNESS = {"softplus": 30.0, "logistic": 4.0, "errors": 4.0}


class SoftplusLoss(eqx.Module):
    """`−price · softplus(−rate z)` of an input `z = y ξ·w`."""

    price: Array
    rate: Array

    def value(self, inputs: Array) -> Array:
        """Minus the loss of each pattern."""
        return -self.price * softplus(-self.rate * inputs)

    def value_and_slope(self, inputs: Array) -> tuple[Array, Array]:
        """The value and its derivative."""
        loss, slope = Softplus().value_and_slope(-self.rate * inputs)
        return -self.price * loss, self.price * self.rate * slope


class ErrorLoss(eqx.Module):
    """`−price` for every error. It has no gradient: the slope is that of `−price · sigmoid(−rate z)`."""

    price: Array
    rate: Array

    def value(self, inputs: Array) -> Array:
        """Minus the price of each error."""
        return jnp.where(inputs <= 0, -self.price, jnp.zeros_like(self.price))

    def value_and_slope(self, inputs: Array) -> tuple[Array, Array]:
        """The value and the slope of its smooth version."""
        wrong = jax.nn.sigmoid(-self.rate * inputs)
        return self.value(inputs), self.price * self.rate * wrong * (1 - wrong)


class Perceptron(LinearUnits):
    """Patterns to be classified by binary weights."""

    def weights(self, position: Array) -> Array:
        """The ±1 weights a position (or a stack of them) stands for."""
        return position if isinstance(self.domain, Spin) else 2 * position - 1

    def training_errors(self, position: Array) -> Array:
        """Number of misclassified patterns of a position, or of each one of a stack."""
        return jnp.sum(self.inputs(position) <= 0, axis=-1)

    def test_error(self, position: Array, patterns: ArrayLike, labels: ArrayLike) -> Array:
        """Fraction of other patterns that a position misclassifies, or each one of a stack."""
        rows, signs = check_patterns("test_error", patterns, labels)
        stabilities = signs * jnp.matmul(self.weights(position), rows.T, precision="highest")
        return jnp.mean(stabilities <= 0, axis=-1)


@checked(TargetError)
def perceptron(
    patterns: ArrayLike,
    labels: ArrayLike,
    loss: Loss = "logistic",
    *,
    sharpness: ArrayLike | None = None,
    inverse_temperature: ArrayLike = 1.0,
    spins: bool = False,
) -> Perceptron:
    """Binary perceptron with `N` weights `w = ±1` and stabilities `m = y ξ·w / √N`.

    Parameters
    ----------
    patterns
        `ξ`, patterns × inputs.
    labels
        `y`, one of ±1 per pattern.
    loss
        - `"logistic"`: `U = −β Σ softplus(−κ m)`, which rewards margins and generalises better;
        - `"softplus"`: `U = −β Σ softplus(−κ m) / κ`, which rewards none;
        - `"errors"`: `U = −β ·` number of errors. Its gradient is that of a smoothed count, a guide
          for samplers with a Metropolis decision only.
    sharpness
        `κ > 0`, by default 30 for `"softplus"` and 4 otherwise. Raising it brings `"softplus"` closer to
        `max(0, −m)`.
    inverse_temperature
        `β > 0`. Traced: annealing it never recompiles.
    spins
        Positions `w` in ±1 (`Spin`) or, by default, bits with `w = 2·position − 1` (`Binary`).

    Examples
    --------
    >>> from steppe.targets import perceptron, teacher_student
    >>> problem = teacher_student(0, num_inputs=21, load=0.5)
    >>> target = perceptron(problem.patterns, problem.labels, loss="errors")
    >>> bits = (problem.teacher + 1) / 2
    >>> float(target.log_density(bits))  # the teacher makes no errors
    0.0
    """
    rows, signs = check_patterns("perceptron", patterns, labels)
    kind = choice("perceptron(loss=...)", loss, get_args(Loss))
    kappa = positive("perceptron(sharpness=...)", DEFAULT_SHARPNESS[kind] if sharpness is None else sharpness)
    beta = positive("perceptron(inverse_temperature=...)", inverse_temperature)
    num_inputs = rows.shape[1]
    rate = kappa / num_inputs**0.5
    price = beta / kappa if kind == "softplus" else beta
    unit = ErrorLoss(price, rate) if kind == "errors" else SoftplusLoss(price, rate)
    # Inputs are y ξ·w without the root, so that for ±1 patterns they are integers, exact for ever
    # however often they are updated.
    facing = signs[:, None] * rows
    matrix = facing if spins else 2 * facing
    return Perceptron(
        domain=Spin(num_inputs) if spins else Binary(num_inputs),
        matrix=matrix,
        columns=matrix.T,
        bias=zeros(len(rows)) if spins else -facing.sum(axis=1),
        linear=zeros(num_inputs),
        unit=unit,
    )


class Problem(NamedTuple):
    """Patterns and labels to learn, and to test on.

    Attributes
    ----------
    patterns, labels
        To learn: ±1, patterns × inputs and one per pattern.
    test_patterns, test_labels
        To test on; empty for random labels, where there is nothing to generalise.
    teacher
        The ±1 weights that made the labels, or `None` for random labels.
    """

    patterns: np.ndarray
    labels: np.ndarray
    test_patterns: np.ndarray
    test_labels: np.ndarray
    teacher: np.ndarray | None


@checked(TargetError)
def teacher_student(seed: Seed, num_inputs: int, load: float, num_test: int = 1000) -> Problem:
    """Random ±1 patterns, labelled by a random ±1 teacher.

    Parameters
    ----------
    seed
        A JAX key, or anything `numpy.random.default_rng` takes.
    num_inputs
        `N`. An odd number avoids ties; a tie is labelled +1.
    load
        Patterns per input, `> 0`.
    num_test
        Number of further patterns to test on.

    Examples
    --------
    >>> from steppe.targets import teacher_student
    >>> problem = teacher_student(0, num_inputs=21, load=2.0, num_test=100)
    >>> problem.patterns.shape, problem.test_patterns.shape
    ((42, 21), (100, 21))
    """
    generator, num_inputs, num_patterns = _setup("teacher_student", seed, num_inputs, load)
    num_test = count("teacher_student(num_test=...)", num_test, minimum=0)
    teacher = _signs(generator, (num_inputs,))
    patterns = _signs(generator, (num_patterns + num_test, num_inputs))
    labels = np.where(patterns.astype(np.int64) @ teacher.astype(np.int64) >= 0, 1, -1).astype(np.int8)
    split = np.split(patterns, [num_patterns]), np.split(labels, [num_patterns])
    return Problem(split[0][0], split[1][0], split[0][1], split[1][1], teacher)


@checked(TargetError)
def random_labels(seed: Seed, num_inputs: int, load: float) -> Problem:
    """Random ±1 patterns with random ±1 labels; solvable for large `N` up to a load of about 0.83.

    Parameters
    ----------
    seed, num_inputs, load
        As for `teacher_student`.

    Examples
    --------
    >>> from steppe.targets import random_labels
    >>> problem = random_labels(0, num_inputs=21, load=0.5)
    >>> problem.patterns.shape, sorted(set(problem.labels.tolist()))
    ((10, 21), [-1, 1])
    """
    generator, num_inputs, num_patterns = _setup("random_labels", seed, num_inputs, load)
    patterns = _signs(generator, (num_patterns, num_inputs))
    labels = _signs(generator, (num_patterns,))
    return Problem(patterns, labels, patterns[:0], labels[:0], None)


def _setup(name: str, seed: Seed, num_inputs: int, load: float) -> tuple[np.random.Generator, int, int]:
    num_inputs = count(f"{name}(num_inputs=...)", num_inputs)
    num_patterns = round(float(positive(f"{name}(load=...)", load)) * num_inputs)
    if num_patterns < 1:
        raise TargetError(f"`{name}(load={load})` of {num_inputs} inputs is less than one pattern.")
    if isinstance(seed, jax.Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key):
        seed = np.asarray(jax.random.key_data(seed)).ravel().tolist()
    try:
        if isinstance(seed, bool) or not np.size(np.asarray(seed)):
            raise TypeError
        return np.random.default_rng(seed), num_inputs, num_patterns
    except (TypeError, ValueError):
        rule = "a random key, or integers of at least 0"
        raise refuse(f"{name}(seed=...)", rule, seed, TargetError) from None


def _signs(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return (2 * generator.integers(0, 2, shape) - 1).astype(np.int8)


def check_patterns(name: str, patterns: ArrayLike, labels: ArrayLike) -> tuple[Array, Array]:
    """Return patterns and labels as arrays, one label of ±1 per pattern."""
    rows: Array = real_array(f"{name}(patterns=...)", patterns, ndim=2)
    signs: Array = real_array(f"{name}(labels=...)", labels, ndim=1)
    if not rows.size or len(rows) != len(signs):
        raise TargetError(
            f"`{name}(patterns=..., labels=...)` must have one label per pattern and at least one of each; "
            f"got shapes {rows.shape} and {signs.shape}."
        )
    if isinstance(signs, np.ndarray) and not (np.abs(signs) == 1).all():
        bad = int(np.argmax(np.abs(signs) != 1))
        raise TargetError(
            f"`{name}(labels=...)` must be -1 or +1; got {float(signs[bad]):g} for pattern {bad}. Labels "
            "in 0/1 become signs by `2 * labels - 1`."
        )
    return rows, signs
