"""The constants that convergence statements are made of, computed for a given target.

Notation: `M` Lipschitz constant of `∇U` on the convex hull of the domain; `m` strong concavity there
(`Hess U ≤ −m I`); `diam(Θ)` largest distance of two states; for centers in a box `Θ_a`,
`Δ = sup |θ_a − θ|` and `ϑ = inf (θ − θ_a)·(θ' − θ_a')`; `G = min |∇U(θ)|` over states; `Z = Σ exp U`.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.arguments import checked
from steppe.compiling import quick_jit
from steppe.diagnostics.flatness.log_tables import level_distances, log_table
from steppe.domain import MAX_ENUMERATED, Domain, show_count
from steppe.errors import DomainError, RecipeError, TargetError
from steppe.target import Target

Box = tuple[float, float]

# Beyond this many states Hessians at all of them take too long; they are sampled.
MAX_HESSIANS = 2**12
NUM_PROBES = 4
RELATIVE_TOLERANCE = 1e-3


class Curvature(NamedTuple):
    """Bounds on the Hessian of `U` on the convex hull of the domain.

    Attributes
    ----------
    lipschitz
        `M`, the largest absolute eigenvalue.
    concavity
        `m`, minus the largest eigenvalue; positive only where `U` is strongly concave.
    kind
        `"quadratic"`: one Hessian, exact. `"multilinear"`: largest at a state, all of which were looked at,
        exact. `"sampled"`: looked at random points, so `lipschitz` is a lower and `concavity` an upper bound.

    Examples
    --------
    >>> import steppe
    >>> curvature = steppe.theory.curvature(steppe.targets.ising([[0.0, 1.0], [1.0, 0.0]]))
    >>> curvature.kind, round(curvature.lipschitz, 3)
    ('quadratic', 1.0)
    """

    lipschitz: float
    concavity: float
    kind: str

    @property
    def is_exact(self) -> bool:
        """Whether the two numbers are the constants, not bounds of them."""
        return self.kind != "sampled"


class Constants(NamedTuple):
    """Everything the statements need.

    Attributes
    ----------
    curvature
        `M` and `m`.
    diameter
        `diam(Θ)`.
    center_diameter, center_distance, center_alignment
        `diam(Θ_a)`, `Δ` and `ϑ` for centers in a box; infinite without one, as the algorithms run.
    smallest_gradient
        `G`; an upper bound unless `is_enumerated`.
    largest_norm
        `sup |θ|`.
    log_normalizer
        `log Z`; NaN unless `is_enumerated`.
    num_states, dimension
        `|Θ|`, and the number of coordinates of a position.
    is_enumerated
        Whether all states were looked at.

    Examples
    --------
    >>> import steppe
    >>> known = steppe.theory.constants(steppe.targets.paper_bernoulli())
    >>> known.num_states, known.diameter, known.is_enumerated
    (16, 2.0, True)
    """

    curvature: Curvature
    diameter: float
    center_diameter: float
    center_distance: float
    center_alignment: float
    smallest_gradient: float
    largest_norm: float
    log_normalizer: float
    num_states: int
    dimension: int
    is_enumerated: bool


@checked(TargetError, num_samples="[1, inf)", seed="[0, inf)")
def constants(
    target: Target, *, center_box: Box | None = None, num_samples: int = 256, seed: int = 0
) -> Constants:
    """Compute the constants of a target.

    Parameters
    ----------
    target
        A log-density written so that JAX can differentiate it twice.
    center_box
        `(low, high)`: every coordinate of a center is confined to it. `None` for no confinement.
    num_samples
        How many points are looked at where not all can be.
    seed
        Of those points.

    Examples
    --------
    >>> import steppe
    >>> known = steppe.theory.constants(steppe.targets.ising_lattice((2, 2), coupling=0.1, spins=False))
    >>> known.curvature.kind, known.dimension
    ('quadratic', 4)
    """
    domain = target.domain
    is_enumerated = domain.num_states <= MAX_ENUMERATED
    states = domain.enumerate() if is_enumerated else _random_states(domain, seed, num_samples)
    norms = np.asarray(_gradient_norms(target, states), float)
    table = log_table(target) if is_enumerated else None
    return Constants(
        curvature=curvature(target, num_samples=num_samples, seed=seed),
        diameter=math.sqrt(sum(distances.max() for distances in level_distances(domain))),
        **_box_constants(domain, center_box),
        smallest_gradient=float(norms.min()),
        largest_norm=largest_norm(domain),
        log_normalizer=math.nan if table is None else float(np.logaddexp.reduce(table.ravel())),
        num_states=domain.num_states,
        dimension=math.prod(domain.shape),
        is_enumerated=is_enumerated,
    )


@checked(TargetError, num_samples="[1, inf)", seed="[0, inf)")
def curvature(target: Target, *, num_samples: int = 256, seed: int = 0) -> Curvature:
    """`M` and `m`, exact for quadratic and for small multilinear log-densities; arguments as above.

    Examples
    --------
    >>> import jax.numpy as jnp, steppe
    >>> bowl = steppe.Target(lambda x: -jnp.sum(x**2), steppe.Binary(3))
    >>> curvature = steppe.theory.curvature(bowl)
    >>> round(curvature.lipschitz, 3), round(curvature.concavity, 3)  # the Hessian is −2 I
    (2.0, 2.0)
    """
    probes = _interior_points(target.domain, seed, NUM_PROBES)
    hessians = np.asarray(_hessians(target, probes), float)
    scale = max(np.abs(hessians).max(), 1e-30)
    if np.abs(hessians - hessians[0]).max() <= RELATIVE_TOLERANCE * scale:
        return _extremes(hessians[:1], "quadratic")
    is_multilinear = np.abs(_within_sites(target.domain, hessians)).max() <= RELATIVE_TOLERANCE * scale
    if is_multilinear and target.domain.num_states <= MAX_HESSIANS:
        # Linear in every site, so the Hessian's norm, a convex function, is largest at a state.
        return _extremes(np.asarray(_hessians(target, target.domain.enumerate()), float), "multilinear")
    points = _interior_points(target.domain, seed, num_samples)
    both = jnp.concatenate([points, _random_states(target.domain, seed, num_samples)])
    return _extremes(np.asarray(_hessians(target, both), float), "sampled")


def check_box(center_box: Box) -> Box:
    """Return a box, refusing one without an inside."""
    low, high = (float(end) for end in center_box)
    if not low < high or not math.isfinite(low + high):
        raise RecipeError(
            f"`center_box` must be two finite numbers, the lower one first; got {center_box!r}. Leave it out "
            "where centers are not confined."
        )
    return low, high


@checked(TargetError, coupling_variance="(0, inf)")
def box_mass(domain: Domain, center_box: Box, coupling_variance: float) -> np.ndarray:
    """`P(N(θ, η I) ∈ Θ_a)` for every state: what confining centers multiplies `π(θ)` by.

    Where it differs between states, a confined center no longer leaves the position its distribution `π`
    (paper,
    Assumption 5.3 against Lemma 4.1).

    Examples
    --------
    >>> import steppe
    >>> mass = steppe.theory.box_mass(steppe.Binary(2), center_box=(0.0, 1.0), coupling_variance=0.1)
    >>> mass.round(3).tolist()  # the same for all states: this box is symmetric about them
    [0.249, 0.249, 0.249, 0.249]
    """
    low, high = check_box(center_box)
    if domain.num_states > MAX_ENUMERATED:
        raise DomainError(f"`box_mass` lists all states, and {domain!r} has {show_count(domain.num_states)}.")
    scale = math.sqrt(2 * coupling_variance)
    states = np.asarray(domain.enumerate(), float).reshape(domain.num_states, -1)
    erf = np.vectorize(math.erf)
    inside = (erf((high - states) / scale) - erf((low - states) / scale)) / 2
    return inside.prod(axis=1)


def _box_constants(domain: Domain, center_box: Box | None) -> dict[str, float]:
    if center_box is None:
        return {
            "center_diameter": math.inf,
            "center_distance": math.inf,
            "center_alignment": -math.inf,
        }
    low, high = check_box(center_box)
    coordinates = [domain.points(site) - high for site in range(domain.num_sites)]
    width = high - low
    squared = sum(
        (np.maximum(np.abs(lower), np.abs(lower + width)) ** 2).sum(axis=1).max() for lower in coordinates
    )
    return {
        "center_diameter": width * math.sqrt(math.prod(domain.shape)),
        "center_distance": float(np.sqrt(squared)),
        "center_alignment": float(sum(_smallest_product(lower, width) for lower in coordinates)),
    }


def _smallest_product(lower: np.ndarray, width: float) -> float:
    """Smallest `x·y` with `x`, `y` each in one of the boxes `[lower_l, lower_l + width]`."""
    first, second = lower[:, None], lower[None]
    ends = [a * b for a in (first, first + width) for b in (second, second + width)]
    return float(np.min(ends, axis=0).sum(axis=-1).min())


def largest_norm(domain: Domain) -> float:
    """`sup |θ|` over all states."""
    squared = (np.max((domain.points(site) ** 2).sum(1)) for site in range(domain.num_sites))
    return math.sqrt(sum(squared))


def _random_states(domain: Domain, seed: int, size: int) -> Array:
    levels = np.random.default_rng(seed).integers(0, domain.num_levels, (size, domain.num_sites))
    return domain.from_levels(levels)


def _interior_points(domain: Domain, seed: int, size: int) -> Array:
    """Random convex combinations of four states each."""
    states = np.asarray(_random_states(domain, seed, 4 * size)).reshape(4, size, *domain.shape)
    weights = np.random.default_rng(seed).dirichlet(np.ones(4), size).T
    return jnp.asarray(np.einsum("ks,ks...->s...", weights, states), jnp.result_type(float))


@quick_jit
def _hessians(target: Target, points: Array) -> Array:
    size = math.prod(target.domain.shape)

    def at(point: Array) -> Array:
        return jax.hessian(target.log_density)(point).reshape(size, size)

    return jax.lax.map(at, points)


@quick_jit
def _gradient_norms(target: Target, states: Array) -> Array:
    return jax.lax.map(
        lambda state: jnp.linalg.norm(target.value_and_grad(state)[1].ravel()), states, batch_size=256
    )


def _within_sites(domain: Domain, hessians: np.ndarray) -> np.ndarray:
    """Second derivatives with respect to coordinates of one and the same site."""
    width = math.prod(domain.shape[1:])
    blocks = hessians.reshape(len(hessians), domain.num_sites, width, domain.num_sites, width)
    return np.diagonal(blocks, axis1=1, axis2=3)


def _extremes(hessians: np.ndarray, kind: str) -> Curvature:
    eigenvalues = np.linalg.eigvalsh((hessians + hessians.transpose(0, 2, 1)) / 2)
    return Curvature(float(np.abs(eigenvalues).max()), float(-eigenvalues.max()), kind)
