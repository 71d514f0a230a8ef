"""Components of a sampler as JSON, each under an id that outlives the name of its class.

A class states its id (`component_id`), which never changes and is never given to another one. A class without
one, such as a block of your own, is known by module and name.
"""

import dataclasses
import hashlib
import math

import jax
import numpy as np

from steppe.target import Target


def identify_component(kind: type) -> str:
    """Return the id of a class of components."""
    # Not inherited: a subclass does something else.
    return vars(kind).get("component_id", f"{kind.__module__}:{kind.__qualname__}")


def describe_component(node: object) -> object:
    """Return a component with everything in it as JSON: ids, numbers, choices; not the target."""
    if isinstance(node, tuple | list):
        return [describe_component(child) for child in node]
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        values = {field.name: getattr(node, field.name) for field in dataclasses.fields(node)}
        inside = {
            name: describe_component(value) for name, value in values.items() if not isinstance(value, Target)
        }
        return {"id": identify_component(type(node)), **inside}
    return _describe_value(node)


def _describe_value(value: object) -> object:
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        return _describe_array(np.asarray(value))
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    kind = value if callable(value) and hasattr(value, "__qualname__") else type(value)
    return f"{kind.__module__}:{kind.__qualname__}"


def _describe_array(array: np.ndarray) -> object:
    if array.ndim == 0:
        return _describe_value(array.item())
    content = np.ascontiguousarray(array)
    digest = hashlib.sha256(content.tobytes()).hexdigest()
    return {"shape": list(array.shape), "dtype": str(array.dtype), "sha256": digest}
