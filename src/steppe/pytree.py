"""Pytrees: numbers in units of a domain, functions as trees of their arrays, and whether a tree is traced."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.tree_util import Partial
from jaxtyping import PyTree


def is_concrete(tree: PyTree) -> bool:
    """Whether no leaf of `tree` is being traced, so that its values can be looked at."""
    for leaf in jax.tree.leaves(tree):  # noqa: SIM110 - a generator is one more frame in every traceback
        if isinstance(leaf, Tracer):
            return False
    return True


class Relative(eqx.Module):
    """A number in units of the domain's shortest squared move, resolved when a recipe is built."""

    multiple: float

    def resolve(self, squared_unit: float) -> float:
        """Return the number for a domain with this unit."""
        return self.multiple * squared_unit

    def __repr__(self) -> str:
        return f"{self.multiple:g}·unit"


def as_pytree(function: Callable[..., PyTree]) -> PyTree:
    """Wrap plain functions, to have no leaves; put the arrays of those that are pytrees on the device."""
    return Partial(function) if jax.tree_util.all_leaves([function]) else jax.tree.map(on_device, function)


def on_device(leaf: PyTree) -> PyTree:
    """Return a NumPy array as one of jax, and anything else as it is.

    In jax 0.10 a NumPy array that was traced in one precision and is passed in the other reaches the program
    in the wrong size; an array of jax keeps the precision it was made in.
    """
    is_numeric = isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind in "biufc"
    return jnp.asarray(leaf) if is_numeric else leaf
