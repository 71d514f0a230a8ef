"""Variable selection in linear regression: spike and slab with coefficients and noise integrated out.

A bit `γ_j` says whether column `j` is in the model. With the columns `Z` and the response `y` centred and
scaled, `M = ZᵀZ + Λ`, `b = Zᵀy` and `yᵀy = 1`, the marginal likelihood of the included columns is

`−½ log|M_γγ| − ½ Σ_γ log τ_j − ½ν log(1 − s bᵀ_γ M_γγ⁻¹ b_γ)`,

for an independent slab of variance `τ_j σ²` (`Λ = 1/τ`, `s = 1`), and for the g-prior with `½ |γ| log(1 + g)`
in the place of the first two terms (`Λ = 0`, `s = g/(1 + g)`). The matrix `[M b; bᵀ 1]` swept on the included
columns has the change of both determinant and residual for every column in its diagonal and last column, and
follows a change of one column by an outer product.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import cho_solve, solve_triangular
from jax.scipy.special import gammaln
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain import Binary
from steppe.errors import TargetError
from steppe.numerics import total
from steppe.target import Incremental, Target
from steppe.targets.checks import array_of_shape, choice, positive, real_array

Prior = Literal["g", "independent"]


class Swept(NamedTuple):
    """The matrix swept on the included columns, and the row whose rounding is repaired next."""

    matrix: Array
    next_row: Array


class VariableSelection(Target):
    """Which columns of a regression are in the model, given the data.

    Attributes
    ----------
    matrix
        `[M b; bᵀ 1]`.
    log_odds
        Log prior odds of every column, with what its slab adds per included column.
    determinant_weight
        1 for an independent slab, 0 for the g-prior, whose determinants cancel.
    shrinkage
        `s`.
    freedom
        `ν`, the number of observations less one.
    beta
        `(a, b)` of a prior on the fraction of included columns, or `None`.
    """

    matrix: Array
    log_odds: Array
    determinant_weight: Array
    shrinkage: Array
    freedom: Array
    beta: Array | None

    def log_density(self, position: Array) -> Array:
        """Log posterior of a model, up to a constant."""
        factor = self._factor(position)
        whitened = solve_triangular(factor, position * self.matrix[:-1, -1], lower=True)
        log_determinant = 2 * jnp.sum(jnp.log(jnp.diagonal(factor)))
        residual = self._shrink(1 - jnp.sum(whitened**2))
        fit = -0.5 * self.determinant_weight * log_determinant - 0.5 * self.freedom * jnp.log(residual)
        return fit + position @ self.log_odds + self._log_size_prior(jnp.sum(position))

    def inclusion_probabilities(self, positions: ArrayLike) -> np.ndarray:
        """Posterior probability of every column, averaged over draws (`run.positions`).

        Every draw counts with the probability of a column given all others, which is less noisy than whether
        the column is in.
        """
        draws = jnp.asarray(positions, jnp.result_type(float)).reshape(-1, self.domain.num_sites)
        return np.asarray(_mean_conditionals(self, draws))

    # ---- incremental form ----------------------------------------------------------------------

    @property
    def incremental(self) -> Incremental[Swept]:
        """The swept matrix is remembered."""
        return Incremental(self.sweep_all, self.differences_at, self.sweep_one, self.repair_row)

    def sweep_all(self, position: Array) -> Swept:
        """Sweep on all included columns."""
        is_in = self._extend(position)
        inverse = cho_solve((self._factor(position), True), jnp.diag(position))
        inverse = jnp.pad(inverse, (0, 1)) * is_in * is_in[:, None]
        solved = jnp.matmul(inverse, self.matrix, precision="highest")
        outside = self.matrix - jnp.matmul(self.matrix * is_in, solved, precision="highest")
        rows = jnp.where(is_in[:, None] > 0, solved, outside)
        matrix = jnp.where(is_in > 0, jnp.where(is_in[:, None] > 0, -inverse, solved.T), rows)
        return Swept(matrix, jnp.zeros((), jnp.int32))

    def differences_at(self, cache: Swept, position: Array, sites: Array) -> Array:
        """Exact differences of including or leaving out some columns, constant work each."""
        matrix = cache.matrix
        pivots, slopes = matrix[sites, sites], matrix[sites, -1]
        sign = 1 - 2 * position[sites]
        residual = self._shrink(matrix[-1, -1])
        fall = self.shrinkage * slopes**2 / pivots
        size = total(position)
        change = (
            sign * self.log_odds[sites]
            - 0.5 * self.determinant_weight * jnp.log(jnp.abs(pivots))
            - 0.5 * self.freedom * jnp.log1p(-fall / residual)
            + self._log_size_prior(size + sign)
            - self._log_size_prior(size)
        )
        return jnp.where(jnp.arange(2) == position[sites][:, None], 0, change[:, None])

    def sweep_one(self, cache: Swept, position: Array, site: Array, level: Array) -> Swept:
        """Sweep on one column, or back, by one outer product."""
        matrix, sign = cache.matrix, 1 - 2 * position[site]
        is_change = level != position[site]
        pivot = matrix[site, site]
        row = matrix[site].at[site].set(pivot - sign)
        swept = matrix - jnp.where(is_change, 1 / pivot, 0) * row * row[:, None]
        return cache._replace(matrix=swept.at[site, site].add(jnp.where(is_change, -2 * sign, 0)))

    def repair_row(self, cache: Swept, position: Array) -> Swept:
        """Compute one row anew, by a step of iterative refinement; every row in its turn.

        Rounding would add up over millions of sweeps. So it adds up over those of one round.
        """
        row, is_in = cache.next_row, self._extend(position)
        sign = 1 - 2 * is_in[row]
        right = jnp.where(sign > 0, self.matrix[row], jnp.arange(len(is_in)) == row)
        solution = sign * cache.matrix[row] * is_in
        error = is_in * (right - jnp.matmul(self.matrix, solution, precision="highest"))
        solution -= is_in * jnp.matmul(cache.matrix, error, precision="highest")
        outside = right - jnp.matmul(self.matrix, solution, precision="highest")
        exact = sign * jnp.where(is_in > 0, solution, outside)
        matrix = cache.matrix.at[row].set(exact).at[:, row].set(exact)
        return Swept(matrix, (row + 1) % len(is_in))

    # ---- inside --------------------------------------------------------------------------------

    def _factor(self, position: Array) -> Array:
        """Cholesky factor of `M_γγ`, with ones on the diagonal for columns that are out."""
        chosen = self.matrix[:-1, :-1] * position * position[:, None]
        return jnp.linalg.cholesky(chosen + jnp.diag(1 - position))

    def _shrink(self, residual: Array) -> Array:
        return 1 - self.shrinkage + self.shrinkage * residual

    def _log_size_prior(self, size: Array) -> Array:
        if self.beta is None:
            return jnp.zeros(())
        return gammaln(self.beta[0] + size) + gammaln(self.beta[1] + self.domain.num_sites - size)

    def _extend(self, position: Array) -> Array:
        return jnp.pad(position, (0, 1))


@jax.jit
def _mean_conditionals(target: VariableSelection, draws: Array) -> Array:
    every_site = jnp.arange(target.domain.num_sites)

    def conditionals(position: Array) -> Array:
        table = target.differences_at(target.sweep_all(position), position, every_site)
        return jax.nn.sigmoid(table[:, 1] - table[:, 0])

    return jnp.mean(jax.lax.map(conditionals, draws, batch_size=16), axis=0)


@checked(TargetError, design=2, response=1)
def variable_selection(
    design: ArrayLike,
    response: ArrayLike,
    *,
    prior: Prior = "g",
    g: ArrayLike | None = None,
    slab_variance: ArrayLike = 1.0,
    inclusion: ArrayLike = 0.5,
    beta: tuple[float, float] | None = None,
) -> VariableSelection:
    """Bayesian variable selection in linear regression: a bit per column, everything else integrated out.

    `y = α + Xβ + ε` with `ε ~ N(0, σ²)`, flat priors on `α` and `log σ`, and a slab on the coefficients of
    the included columns. Columns are centred and scaled to variance 1.

    Parameters
    ----------
    design
        `X`, observations × columns, without a column of ones.
    response
        `y`, one per observation.
    prior
        `"g"`: Zellner's, `β_γ ~ N(0, g σ² (X_γᵀX_γ)⁻¹)`, for designs of full column rank. `"independent"`:
        `β_j ~ N(0, v σ²)`, for any design, also with more columns than observations.
    g
        `g > 0`, by default the number of observations (the unit information prior). Raising it asks for
        stronger evidence.
    slab_variance
        `v > 0` of the independent prior, for columns of variance 1.
    inclusion
        Prior probability of every column, in (0, 1): one number, or one per column.
    beta
        `(a, b)`: the fraction of included columns has a Beta prior, in the place of `inclusion`.

    Notes
    -----
    `gibbs(num_updates=p, num_swaps=1)` is made for it: the sweep operator gives all differences in `O(p)`
    and follows a change in `O(p²)`. `target.inclusion_probabilities(run.positions)` are the posterior
    probabilities of the columns. The log-density itself costs `O(p³)`, and its gradient says nothing. In
    float32, residuals are known to about 10⁻⁶: beyond some 10⁴ observations enable float64.

    Examples
    --------
    >>> import numpy as np, steppe
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 6))
    >>> target = steppe.targets.variable_selection(X, X[:, 2] - X[:, 4] + rng.normal(size=50))
    >>> target.domain
    Binary(6)
    """
    name = "variable_selection"
    design = np.asarray(real_array(f"{name}(design=...)", design, ndim=2), float)
    response = np.asarray(real_array(f"{name}(response=...)", response, ndim=1), float)
    num_rows, num_columns = design.shape
    if len(response) != num_rows or num_rows < 3 or num_columns < 1:
        raise TargetError(
            f"`{name}(design, response)` needs at least 3 observations and a response for each; got a design "
            f"of shape {design.shape} and {len(response)} responses."
        )
    columns, unit_response = _normalize(name, design, response)
    gram = columns.T @ columns
    log_odds = _log_odds(name, inclusion, num_columns) if beta is None else np.zeros(num_columns)
    if choice(f"{name}(prior=...)", prior, Prior) == "g":
        _check_rank(name, gram, num_rows)
        strength = float(positive(f"{name}(g=...)", num_rows if g is None else g))
        log_odds, shrinkage, weight = log_odds - 0.5 * np.log1p(strength), strength / (1 + strength), 0.0
    else:
        variance = num_rows * float(positive(f"{name}(slab_variance=...)", slab_variance))
        gram = gram + np.eye(num_columns) / variance
        log_odds, shrinkage, weight = log_odds - 0.5 * np.log(variance), 1.0, 1.0
    projection = columns.T @ unit_response
    matrix = np.block([[gram, projection[:, None]], [projection, 1.0]])
    numbers = (jnp.asarray(value, float) for value in (matrix, log_odds, weight, shrinkage, num_rows - 1))
    return VariableSelection(Binary(num_columns), *numbers, beta=_beta(name, beta))


def _normalize(name: str, design: np.ndarray, response: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Center, and scale to unit length."""
    columns, centred = design - design.mean(axis=0), response - response.mean()
    lengths, length = np.linalg.norm(columns, axis=0), np.linalg.norm(centred)
    is_constant = lengths <= 1e-6 * np.maximum(np.abs(design).max(axis=0), 1e-300) * len(design) ** 0.5
    if is_constant.any():
        raise TargetError(
            f"`{name}(design=...)`: column {int(np.argmax(is_constant))} is constant. The intercept is in "
            "every model already; leave the column out."
        )
    if not length > 0:
        raise TargetError(f"`{name}(response=...)` is constant: there is nothing to explain.")
    return columns / lengths, centred / length


def _check_rank(name: str, gram: np.ndarray, num_rows: int) -> None:
    """Refuse designs on which the g-prior of some model is not defined."""
    remedy = "Use `prior='independent'`, which allows any design, or leave columns out."
    if len(gram) > num_rows - 2:
        raise TargetError(
            f"`{name}(prior='g')` needs fewer columns than observations less one; got {len(gram)} columns "
            f"and {num_rows} observations. {remedy}"
        )
    values, vectors = np.linalg.eigh(gram)
    if values[0] < 50 * len(gram) * float(jnp.finfo(jnp.result_type(float)).eps):
        dependent = np.flatnonzero(np.abs(vectors[:, 0]) > 0.1).tolist()
        raise TargetError(
            f"`{name}(prior='g')`: columns {dependent} of the design depend on each other (their correlation "
            f"matrix is singular, smallest eigenvalue {values[0]:.2g}). {remedy}"
        )


def _log_odds(name: str, inclusion: ArrayLike, num_columns: int) -> np.ndarray:
    probabilities = np.asarray(array_of_shape(f"{name}(inclusion=...)", inclusion, (num_columns,)), float)
    if not ((probabilities > 0) & (probabilities < 1)).all():
        raise TargetError(
            f"`{name}(inclusion=...)` must be probabilities in (0, 1); got {inclusion!r}. A column that is "
            "certainly in or out is no variable."
        )
    return np.log(probabilities) - np.log1p(-probabilities)


def _beta(name: str, beta: tuple[float, float] | None) -> Array | None:
    if beta is None:
        return None
    return jnp.stack([jnp.asarray(positive(f"{name}(beta=...)", value)) for value in beta])
