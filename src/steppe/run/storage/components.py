"""Components of a sampler as JSON, each under an id that outlives the name of its class.

The id of a class never changes and is never given to another one. A class that is not in the table, such as a
block of your own, is known by module and name.
"""

import dataclasses
import hashlib
import math

import jax
import numpy as np

from steppe.kernel.accept import Metropolis, Unadjusted
from steppe.kernel.block import Draw, ProposeAndDecide
from steppe.kernel.conditional import BlockConditional
from steppe.kernel.coupling import NoCoupling, StarCoupling
from steppe.kernel.cycle import Cycle
from steppe.kernel.landscape import Landscape
from steppe.kernel.order_coupling import OrderCoupling
from steppe.kernel.proposal.center import CenterLangevin, CenterRefresh
from steppe.kernel.proposal.discrete_flow import DiscreteFlow
from steppe.kernel.proposal.discrete_langevin import DiscreteLangevin
from steppe.kernel.proposal.gibbs_with_gradients import GibbsWithGradients
from steppe.kernel.proposal.order_proposals import InformedMoves, UniformMoves
from steppe.kernel.proposal.path_auxiliary import PathAuxiliary
from steppe.kernel.proposal.together import Together
from steppe.kernel.replicas import LatticeCenter, Replicas, WeightedCenter
from steppe.kernel.sampler import Sampler
from steppe.kernel.tempering import Tempered
from steppe.kernel.tilt import NoTilt, RoughnessTilt
from steppe.target import Target
from steppe.targets.rbm import LayerConditionals

COMPONENT_IDS: dict[type, str] = {
    Sampler: "sampler",
    Landscape: "joint-density",
    NoCoupling: "no-coupling",
    StarCoupling: "star-coupling",
    OrderCoupling: "permutation-coupling",
    NoTilt: "no-tilt",
    RoughnessTilt: "roughness-tilt",
    ProposeAndDecide: "metropolis-block",
    Draw: "draw-block",
    BlockConditional: "gibbs-block",
    LayerConditionals: "rbm-layer-block",
    Replicas: "replicas-block",
    WeightedCenter: "weighted-center-block",
    Tempered: "tempered-block",
    Cycle: "cycle-block",
    Metropolis: "metropolis",
    Unadjusted: "unadjusted",
    DiscreteLangevin: "discrete-langevin",
    DiscreteFlow: "discrete-flow",
    GibbsWithGradients: "gibbs-with-gradients",
    PathAuxiliary: "path-auxiliary",
    Together: "joint-langevin",
    CenterLangevin: "center-langevin",
    CenterRefresh: "center-refresh",
    LatticeCenter: "lattice-center",
    InformedMoves: "informed-permutation",
    UniformMoves: "uniform-permutation",
}


def identify_component(kind: type) -> str:
    """Return the id of a class of components."""
    return COMPONENT_IDS.get(kind, f"{kind.__module__}:{kind.__qualname__}")


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
