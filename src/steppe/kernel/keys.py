"""Keys of one step, one per role, so that adding a component never shifts another's random numbers."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.random.draws import WordPairs
from steppe.random.threefry import unroll

# Keys of roles are folded with numbers that no component reaches when it splits its own key.
ROLES = 2**31


class Keys(NamedTuple):
    """Keys of one step by role: what moves the center, what moves the position, what decides."""

    center: Array
    position: Array
    accept: Array

    @classmethod
    def of_step(cls, key: Array, replicas: int | None = None) -> "Keys":
        """Derive the keys of the roles from the key of a step.

        With replicas, `position` and `accept` have one key each per replica, and the first replica has the
        keys of a plain step.
        """
        key = unroll(key)
        if replicas is None:
            return cls(jax.random.fold_in(key, ROLES), key, jax.random.fold_in(key, ROLES + 1))
        numbers = ROLES + np.arange(2 * replicas, dtype=np.uint32)
        center, *others = jax.vmap(partial(jax.random.fold_in, key))(numbers)
        return cls(center, jnp.stack([key, *others[1::2]]), jnp.stack(others[0::2]))

    def share_words(self, size: int) -> "SharedKeys":
        """Let position and center draw from the two words of the same pairs, at each of `size` places."""
        pairs = WordPairs.draw(self.position, size)
        return SharedKeys(center=pairs, position=pairs)


class SharedKeys(NamedTuple):
    """Keys, or words already drawn, of a draw of flips and a draw of normals that go together."""

    center: Array | WordPairs
    position: Array | WordPairs


DrawKeys = Keys | SharedKeys
