"""Spin glasses with seeds: Edwards–Anderson on lattices, Sherrington–Kirkpatrick on all pairs."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.errors import TargetError
from steppe.targets.bonds import LatticeBonds
from steppe.targets.checks import choice, count, positive
from steppe.targets.ising import ising, ising_graph, lattice_shape
from steppe.targets.pairwise import Pairwise

Couplings = Literal["plus_minus", "gaussian"]


@checked(TargetError)
def spin_glass(
    shape: int | Sequence[int],
    *,
    couplings: Couplings = "plus_minus",
    seed: int = 0,
    field: ArrayLike = 0.0,
    periodic: bool = True,
    scale: float = 1.0,
) -> Pairwise:
    """Edwards–Anderson spin glass on a lattice, with couplings drawn from a seed.

    `U = scale (Σ_<ij> J_ij s_i s_j + Σ_i h_i s_i)`, so `−U / scale` is the energy and `scale` the inverse
    temperature.

    Parameters
    ----------
    shape
        Length along each axis, each at least 3 if periodic: `(8, 8, 8)`.
    couplings
        `"plus_minus"`: ±1 with equal probability; `"gaussian"`: standard normal.
    seed
        Of `numpy.random.default_rng`, which draws one coupling per bond: axis after axis, sites in order.
    field
        `h`: one number, or one per site.
    periodic
        Whether the last site of an axis is bound to the first.
    scale
        Inverse temperature `> 0`, as part of couplings and fields.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from steppe.targets import spin_glass
    >>> target = spin_glass((4, 4, 4), seed=3)
    >>> state = jnp.ones(64)
    >>> float(target.log_density(state)) == float(target.log_density(-state))  # without a field
    True
    """
    lengths = lattice_shape("spin_glass", shape)
    if periodic and min(lengths) < 3:
        raise TargetError(
            f"`spin_glass(shape=...)` needs lengths of at least 3 if it is periodic, so that no pair is "
            f"bound twice; got {lengths}. Use `periodic=False`."
        )
    pairs = LatticeBonds(np.float32(1.0), lengths, bool(periodic)).pairs()  # pyright: ignore[reportArgumentType]
    half = len(pairs.sources) // 2
    edges = np.stack([pairs.sources[:half], pairs.ends[:half]], axis=1)
    strengths = _draw("spin_glass", couplings, seed, half)
    factor = positive("spin_glass(scale=...)", scale)
    return ising_graph(edges, factor * strengths, int(np.prod(lengths)), factor * np.asarray(field))


@checked(TargetError)
def sherrington_kirkpatrick(
    num_sites: int, *, couplings: Couplings = "gaussian", seed: int = 0, scale: float = 1.0
) -> Pairwise:
    """Sherrington–Kirkpatrick spin glass: all pairs, couplings of variance `1 / num_sites`.

    Parameters
    ----------
    num_sites
        Number of spins, at least 2.
    couplings
        `"gaussian"`, or `"plus_minus"` for ±1/√n.
    seed
        Of `numpy.random.default_rng`, which draws the upper triangle row after row.
    scale
        Inverse temperature `> 0`, as part of the couplings.

    Examples
    --------
    >>> from steppe.targets import sherrington_kirkpatrick
    >>> target = sherrington_kirkpatrick(64, seed=1)
    >>> target.domain
    Spin(64)
    """
    size = count("sherrington_kirkpatrick(num_sites=...)", num_sites, minimum=2)
    upper = np.triu_indices(size, 1)
    matrix = np.zeros((size, size))
    factor = positive("sherrington_kirkpatrick(scale=...)", scale)
    matrix[upper] = factor * _draw("sherrington_kirkpatrick", couplings, seed, len(upper[0])) / np.sqrt(size)
    return ising(matrix + matrix.T)


def _draw(name: str, couplings: str, seed: int, size: int) -> np.ndarray:
    kind = choice(f"{name}(couplings=...)", couplings, ("plus_minus", "gaussian"))
    draws = np.random.default_rng(count(f"{name}(seed=...)", seed, minimum=0))
    return draws.choice([-1.0, 1.0], size) if kind == "plus_minus" else draws.normal(size=size)
