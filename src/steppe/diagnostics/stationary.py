"""What a recipe samples, as a distribution that can be evaluated: `recipe.stationary(target)`.

Notation: `β` inverse temperature, `λ` strength of the tilt, `R` roughness, `η` coupling variance, `y`
replicas, `γ` weight of the center, `F(a; η) = log Σ_θ exp{β U(θ) − |θ − a|²/(2η)}` local entropy.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.diagnostics.center_distribution import edula_position_distribution, glu_transition_matrix
from steppe.diagnostics.exact import stationary_distribution, transition_matrix
from steppe.diagnostics.flatness.log_tables import smooth
from steppe.domain import MAX_ENUMERATED
from steppe.errors import DomainError, StationaryDistributionError
from steppe.target.log_density import Target

if TYPE_CHECKING:
    from steppe.kernel.compose import Recipe
    from steppe.kernel.sampler import Sampler

Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True)
class StationaryDistribution:
    """The stationary distribution of a recipe on a target.

    Attributes
    ----------
    recipe, target
        Whose distribution it is.
    description
        What it is, in words and symbols.
    is_biased
        Whether it differs from what the recipe aims at because nothing corrects its steps.

    Examples
    --------
    >>> import steppe
    >>> distribution = steppe.roughness_tilted(strength=2.0).stationary(steppe.targets.paper_bernoulli())
    >>> print(distribution.description)
    exp{β U(θ) − λ R(θ)} exactly.
    >>> round(float(distribution.probabilities().sum()), 6)
    1.0
    """

    recipe: "Recipe"
    target: Target
    description: str
    is_biased: bool

    def log_prob(self, position: ArrayLike, center: ArrayLike | None = None) -> Array:
        """Log-probability up to a constant at one state of the chain.

        Parameters
        ----------
        position
            A position; for an ensemble one per replica.
        center
            The center, where the recipe has one. Without it, the log-probability of the position alone.

        Raises
        ------
        StationaryDistributionError
            If the distribution is biased, so that it is known on small domains only: see `probabilities`.
        """
        if self.is_biased:
            raise StationaryDistributionError(
                f"`{self.recipe.name}` has no distribution in closed form: {self.description}"
            )
        sampler = self._sampler
        position = jnp.asarray(position, jnp.result_type(float))
        if sampler.replicas is None:
            value = self._of_one(position)
            return value if center is None else value + self._tie(position, jnp.asarray(center))
        if center is None:
            raise StationaryDistributionError(
                f"`{self.recipe.name}` keeps {sampler.replicas} replicas and their center: give both, or ask "
                "for the distribution of one replica (`probabilities()`) or of the center "
                "(`center_log_prob(points)`)."
            )
        center = jnp.asarray(center, position.dtype)
        return jnp.sum(jax.vmap(self._of_one)(position)) + self._tie(position, center) + self._weight(center)

    def probabilities(self) -> np.ndarray:
        """Probability of every position (of one replica) in the order of `target.domain.enumerate()`.

        Raises
        ------
        DomainError
            If there are too many to enumerate.
        """
        return compute_in_double(self._enumerate)

    def _enumerate(self) -> np.ndarray:
        if self.is_biased:
            return _enumerate_biased(self.recipe, self.target)
        table = _log_table(self)
        if self._sampler.replicas is not None:
            table = _tabulate_replica(self, table)
        weights = np.exp(table - table.max()).ravel()
        return weights / weights.sum()

    def center_log_prob(self, points: ArrayLike) -> np.ndarray:
        """Log-probability of the center up to a constant, `γ β U(c) + y F(c; η)`, by enumeration.

        Parameters
        ----------
        points
            Centers, `(..., *domain.shape)`; states of the domain if the center lives on it.
        """
        sampler, domain = self._sampler, self.target.domain
        if self.is_biased or not sampler.density.coupling.has_center:
            raise StationaryDistributionError(
                f"`{self.recipe.name}` has no distribution of a center: {self.description}"
            )
        points = np.asarray(points, float)
        flat = points.reshape(-1, *domain.shape)

        def tabulate() -> tuple[np.ndarray, np.ndarray]:
            weights = jax.jit(jax.vmap(self._weight))(jnp.asarray(flat))
            return _entropies(sampler, _log_table(self), flat), np.asarray(weights, float)

        entropies, weights = compute_in_double(tabulate)
        return ((sampler.replicas or 1) * entropies + weights).reshape(points.shape[: -len(domain.shape)])

    @property
    def _sampler(self) -> "Sampler":
        return self.recipe.build(self.target, audit=False)

    def _of_one(self, position: Array) -> Array:
        """`β U − λ R` at one position."""
        density = self._sampler.density
        state = density.evaluate(position, None)
        penalty = density.penalty.at(density.domain, state)
        return density.inverse_temperature * state.log_density - penalty

    def _tie(self, position: Array, center: Array) -> Array:
        return jnp.sum(self._sampler.density.coupling.log_density_terms(position, center))

    def _weight(self, center: Array) -> Array:
        """`γ β U(c)`, zero where the center carries no weight of its own."""
        density = self._sampler.density
        if density.coupling.center_weight is None:
            return jnp.zeros(())
        return density.coupling.center_weight * density.inverse_temperature * self.target.log_density(center)


def _entropies(sampler: "Sampler", table: np.ndarray, points: np.ndarray) -> np.ndarray:
    """`F` about points: every step sums the first site away. About states from one table for all of them."""
    domain, coupling = sampler.target.domain, sampler.density.coupling
    if coupling.is_lattice and domain.contains(points):
        η = float(sampler.parameters["coupling_variance"])
        return smooth(table, domain, η).ravel()[np.asarray(domain.index(jnp.asarray(points)))]

    @jax.jit
    def weigh(point: Array) -> Array:
        """What the coupling gives every level of every site, (level, site)."""
        levels = jnp.arange(domain.max_levels)[:, None] * jnp.ones(domain.num_sites, int)
        terms = jax.vmap(lambda row: coupling.log_density_terms(domain.from_levels(row), point))(levels)
        return jnp.sum(terms.reshape(domain.max_levels, domain.num_sites, -1), axis=-1)

    found = []
    for point in points:
        rest, weights = table, np.asarray(weigh(jnp.asarray(point)), float)
        for site, count in enumerate(domain.num_levels):
            column = weights[:count, site].reshape(-1, *[1] * (rest.ndim - 1))
            rest = np.logaddexp.reduce(rest + column, axis=0)
        found.append(float(rest))
    return np.array(found)


def compute_in_double(compute: Callable[[], Result]) -> Result:
    """Compute in float64, or in the precision of the process where that cannot be traced.

    JAX 0.10 remembers for every NumPy array in which precision it was met first, and not that it may be met
    in another one. A log-density that was sampled in float32 and has such an array of its own then fails to
    trace or to run in float64; what is wrong with the function itself is raised by the second attempt.
    """
    if jnp.result_type(float) == jnp.float64:  # entering the mode twice would leave it with the inner block
        return compute()
    try:
        with jax.enable_x64(True):  # type: ignore[attr-defined]
            return compute()
    except (TypeError, ValueError, jax.errors.JaxRuntimeError):
        return compute()


def find_stationary(recipe: "Recipe", target: Target) -> StationaryDistribution:
    """Return the distribution a recipe leaves invariant on a target; see `Recipe.stationary`."""
    recipe.build(target, audit=False)  # refuses what cannot be sampled
    return StationaryDistribution(recipe, target, describe_stationary(recipe), not recipe.is_adjusted)


def describe_stationary(recipe: "Recipe") -> str:
    """Say in words and symbols what a recipe samples."""
    coupling = recipe.coupling
    if not recipe.is_adjusted:
        if not coupling.has_center:
            return "biased, more so the larger the step size α; enumerated on small domains."
        return (
            "biased; for quadratic log-densities the position has the distribution of `dula` at "
            "1/α_eff = 1/α − 1/(4η − α_a)."
            if _moves_together(recipe)
            else "biased; it is `dula` whose flip logits carry Gaussian noise of variance 1/(4η) per unit of "
            "squared jump."
        )
    inner = "β U(θ) − λ R(θ)" if "strength" in recipe.parameters else "β U(θ)"
    if not coupling.has_center:
        return f"exp{{{inner}}} exactly."
    if coupling.replicas is None:
        return (
            f"the joint exp{{{inner} − {coupling.formula}}} exactly; the position alone has exp{{{inner}}}."
        )
    return (
        "the joint exp{γ β U(c) + Σ_r [β U(θ_r) − |θ_r − c|²/(2η)]} exactly; the center alone has "
        "exp{γ β U(c) + y F(c; η)}."
    )


def _moves_together(recipe: "Recipe") -> bool:
    return any({"position", "center"} <= set(block.moves) for block in recipe.blocks)


def _log_table(distribution: StationaryDistribution) -> np.ndarray:
    """`β U − λ R` of every position, one axis per site."""
    states = distribution.target.domain.enumerate()
    values = jax.jit(lambda states: jax.lax.map(distribution._of_one, states, batch_size=1024))(states)
    return np.asarray(values, float).reshape(distribution.target.domain.num_levels)


def _enumerate_biased(recipe: "Recipe", target: Target) -> np.ndarray:
    if not recipe.coupling.has_center:
        return stationary_distribution(transition_matrix(recipe, target))
    if _moves_together(recipe):
        return edula_position_distribution(recipe, target)
    return stationary_distribution(glu_transition_matrix(recipe, target))


def _tabulate_replica(distribution: StationaryDistribution, table: np.ndarray) -> np.ndarray:
    """Log-probability of one of `y` replicas: the center and the other replicas summed out."""
    sampler, domain = distribution._sampler, distribution.target.domain
    replicas, η = sampler.replicas or 1, float(sampler.parameters["coupling_variance"])
    if sampler.density.coupling.is_lattice:
        about_center = (replicas - 1) * smooth(table, domain, η)
        weighted = jax.jit(lambda states: jax.lax.map(distribution._weight, states, batch_size=1024))
        about_center += np.asarray(weighted(domain.enumerate()), float).reshape(table.shape)
        return table + smooth(about_center, domain, η)
    if replicas == 1:
        return table
    if replicas == 2:  # through the integrated center they see each other as through 2η
        return table + smooth(table, domain, 2 * η)
    return _sum_over_replicas(distribution, table, replicas, η)


def _sum_over_replicas(
    distribution: StationaryDistribution, table: np.ndarray, replicas: int, η: float
) -> np.ndarray:
    """Enumerate the other replicas; a Gaussian center leaves `−(Σ|θ_r|² − |Σθ_r|²/y)/(2η)`."""
    domain = distribution.target.domain
    size = domain.num_states
    if size**replicas > MAX_ENUMERATED:
        raise DomainError(
            f"The distribution of one of {replicas} replicas on {domain!r} sums over "
            f"{float(size) ** replicas:.2g} joint "
            f"states; at most {MAX_ENUMERATED} are summed. Use `center='lattice'`, two replicas, or sample."
        )
    flat = np.asarray(domain.enumerate(), float).reshape(size, -1)
    energy = table.ravel() - (flat**2).sum(axis=1) / (2 * η)
    sums, weights = flat, energy
    for _ in range(replicas - 1):
        sums = (sums[:, None] + flat).reshape(-1, flat.shape[1])
        weights = (weights[:, None] + energy).ravel()
    weights = weights + (sums**2).sum(axis=1) / (2 * η * replicas)
    return np.logaddexp.reduce(weights.reshape(size, -1), axis=1).reshape(table.shape)
