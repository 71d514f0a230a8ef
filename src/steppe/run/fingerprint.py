"""What makes two runs the same: a digest of the target, the recipe and everything that shapes the draws."""

import dataclasses
import hashlib
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steppe.kernel.numbers import pieces
from steppe.kernel.sampler import Sampler
from steppe.target import Target

_ADDRESS = re.compile(r"0x[0-9a-f]+")


def target_digest(target: Target) -> str:
    """Digest of the program that evaluates a target, and of every array in it.

    Two targets have the same digest when JAX would run the same operations on the same numbers, whatever
    Python objects they were built from; it is the same in every process.
    """
    position = jax.ShapeDtypeStruct(target.domain.shape, jnp.result_type(float))
    leaves = jax.tree.leaves(target)
    # The program is traced with the target's arrays as inputs, so that none is printed in full.
    structure = jax.tree.structure(target)

    def evaluate(arrays: Any, x: Any) -> Any:
        bound = jax.tree.unflatten(structure, arrays)
        return bound.value_and_grad(x), bound.log_density(x)

    program = jax.make_jaxpr(evaluate)(leaves, position)
    digest = hashlib.sha256(repr(target.domain).encode())
    digest.update(_ADDRESS.sub("", str(program.jaxpr)).encode())
    for array in [*leaves, *program.consts]:
        _update(digest, array)
    return digest.hexdigest()


def sampler_digest(sampler: Sampler) -> str:
    """Digest of the pieces and numbers of a sampler, without its target."""
    digest = hashlib.sha256(f"{sampler.center_start} {sampler.replicas}".encode())
    for node in pieces((sampler.landscape, sampler.blocks)):
        digest.update(type(node).__name__.encode())
        for field in dataclasses.fields(node):
            value = getattr(node, field.name)
            if field.metadata.get("static"):
                digest.update(f"{field.name}={value!r}".encode())
            elif hasattr(value, "dtype"):
                digest.update(field.name.encode())
                _update(digest, value)
    return digest.hexdigest()


def _update(digest: Any, array: Any) -> None:
    host = np.asarray(array)
    digest.update(f"{host.dtype}{host.shape}".encode())
    digest.update(np.ascontiguousarray(host).tobytes())
