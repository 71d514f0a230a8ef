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

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import gammaln
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain import Binary
from steppe.errors import TargetError
from steppe.mapped import max_mapped
from steppe.numerics import log1p
from steppe.target import Incremental, Target
from steppe.targets.checks import array_of_shape, choice, positive, real_array

Prior = Literal["g", "independent"]

# Rows of included columns that are gone through together.
GROUP = 16
# Steps after which what is remembered is computed anew.
MAX_AGE = 64


class Swept(NamedTuple):
    """What is remembered of the matrix swept on the included columns.

    Attributes
    ----------
    diagonal, slopes, residual
        Its diagonal, its last column, and the corner of both.
    rows
        Its rows of the included columns, in the order in which they came in: the first `GROUP`, (slot,
        column), and all others, (group, slot, column). Slots behind the last row may hold anything.
    columns
        Which column every row belongs to, likewise.
    size
        Number of included columns.
    age
        Steps since all this was computed anew.
    """

    diagonal: Array
    slopes: Array
    residual: Array
    rows: tuple[Array, Array]
    columns: tuple[Array, Array]
    size: Array
    age: Array


class VariableSelection(Target):
    """Which columns of a regression are in the model, given the data.

    Attributes
    ----------
    matrix
        `[M b; bᵀ 1]`.
    log_odds
        Log prior odds of every column, with what its slab adds per included column.
    shrinkage
        `s`.
    freedom
        `ν`, the number of observations less one.
    beta
        `(a, b)` of a prior on the fraction of included columns, or `None`.
    has_determinant
        Whether determinants count: for an independent slab. Those of the g-prior cancel.

    Examples
    --------
    >>> import jax.numpy as jnp, numpy as np
    >>> from steppe.targets import variable_selection
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> target = variable_selection(X, 2 * X[:, 1])
    >>> right, wrong = jnp.asarray([0.0, 1.0, 0.0]), jnp.asarray([1.0, 0.0, 0.0])
    >>> bool(target.log_density(right) > target.log_density(wrong))
    True
    """

    matrix: Array
    log_odds: Array
    shrinkage: Array
    freedom: Array
    beta: Array | None
    has_determinant: bool = eqx.field(static=True)

    def log_density(self, position: Array) -> Array:
        """Log posterior of a model, up to a constant."""
        factor = self._factor(position)
        whitened = solve_triangular(factor, position * self.matrix[:-1, -1], lower=True)
        residual = self._shrink(1 - jnp.sum(whitened**2))
        fit = -0.5 * self.freedom * jnp.log(residual)
        if self.has_determinant:
            fit -= jnp.sum(jnp.log(jnp.diagonal(factor)))
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
        """What changes need of the swept matrix is remembered."""
        return Incremental(
            self.sweep_all, self.differences_at, self.sweep_one, self.sweep_again, self.all_differences
        )

    def sweep_all(self, position: Array) -> Swept:
        """Sweep on all included columns."""
        num_columns, dtype = self.domain.num_sites, position.dtype
        num_groups = max(-(-num_columns // GROUP), 2)
        columns = jnp.nonzero(position, size=num_groups * GROUP, fill_value=0)[0]
        columns = columns.reshape(num_groups, GROUP).astype(jnp.int32)
        rows = jnp.zeros((*columns.shape, num_columns), dtype)
        empty = Swept(
            diagonal=jnp.zeros(num_columns, dtype),
            slopes=jnp.zeros(num_columns, dtype),
            residual=jnp.zeros((), dtype),
            rows=(rows[0], rows[1:]),
            columns=(columns[0], columns[1:]),
            size=jnp.sum(position).astype(jnp.int32),
            age=jnp.zeros((), jnp.int32),
        )
        return self._sweep_anew(empty, jnp.ones((), bool))

    def differences_at(self, cache: Swept, position: Array, sites: Array) -> Array:
        """Exact differences of including or leaving out some columns, constant work each."""
        looked_up = (cache.diagonal[sites], cache.slopes[sites], self.log_odds[sites], position[sites])
        return self._differences(cache, *looked_up)

    def all_differences(self, cache: Swept, position: Array) -> Array:
        """Exact differences of including or leaving out each column."""
        return self._differences(cache, cache.diagonal, cache.slopes, self.log_odds, position)

    def sweep_one(self, cache: Swept, position: Array, site: Array, level: Array) -> Swept:
        """Sweep on one column, or back: a row of the swept matrix, and an outer product with it."""
        return self._sweep(cache, position, site, level != position[site])

    def sweep_again(self, cache: Swept, position: Array) -> Swept:
        """Compute everything anew every `MAX_AGE` steps, so that rounding does not add up over a run."""
        is_due = cache.age >= MAX_AGE
        return self._sweep_anew(cache._replace(age=jnp.where(is_due, 0, cache.age + 1)), is_due)

    # ---- inside --------------------------------------------------------------------------------

    def _factor(self, position: Array) -> Array:
        """Cholesky factor of `M_γγ`, with ones on the diagonal for columns that are out."""
        chosen = self.matrix[:-1, :-1] * position * position[:, None]
        return jnp.linalg.cholesky(chosen + jnp.diag(1 - position))

    def _differences(
        self, cache: Swept, pivots: Array, slopes: Array, log_odds: Array, is_in: Array
    ) -> Array:
        """Change of the log-density by columns, from what the swept matrix has of each."""
        sign, size = 1 - 2 * is_in, cache.size.astype(is_in.dtype)
        fall = self.shrinkage * slopes**2 / pivots
        change = sign * log_odds - 0.5 * self.freedom * log1p(-fall / self._shrink(cache.residual))
        if self.has_determinant:
            change -= 0.5 * jnp.log(jnp.abs(pivots))
        if self.beta is not None:
            change += self._log_size_prior(size + sign) - self._log_size_prior(size)
        return jnp.where(jnp.arange(2) == is_in[:, None], 0, change[:, None])

    def _sweep_anew(self, cache: Swept, is_due: Array) -> Swept:
        """Sweep on one included column after another, from a matrix that is swept on none."""
        gram, projection = self.matrix[:-1, :-1], self.matrix[:-1, -1]
        size, zero = cache.size, jnp.zeros((), jnp.int32)
        cache = cache._replace(
            diagonal=jnp.where(is_due, jnp.diagonal(gram), cache.diagonal),
            slopes=jnp.where(is_due, projection, cache.slopes),
            residual=jnp.where(is_due, self.matrix[-1, -1], cache.residual),
            size=jnp.where(is_due, zero, size),
        )

        columns = jnp.concatenate([cache.columns[0], cache.columns[1].reshape(-1)])

        def enter(index: Array, carry: tuple[Swept, Array]) -> tuple[Swept, Array]:
            cache, is_in = carry
            is_new = is_due & (index < size)
            is_new_site = (jnp.arange(len(is_in)) == columns[index]) & is_new
            return self._sweep(cache, is_in, columns[index], is_new), jnp.where(is_new_site, 1, is_in)

        last = max_mapped(jnp.where(is_due, size, 0))
        return jax.lax.fori_loop(0, last, enter, (cache, jnp.zeros_like(cache.slopes)))[0]

    def _sweep(self, cache: Swept, is_in: Array, site: Array, is_change: Array) -> Swept:
        """Sweep on a column that is out, or back on one that is in; without a change, nothing.

        Row `r` of the column is its row of the matrix less what the rows of included columns explain of it.
        The row that enters stands behind the others; the last one takes the place of one that leaves.
        """
        gram, is_site = self.matrix[:-1, :-1], jnp.arange(len(is_in)) == site
        sign, pivot, slope = 1 - 2 * is_in[site], cache.diagonal[site], cache.slopes[site]
        enters, size = sign > 0, cache.size
        num_groups = max_mapped(size // GROUP)  # beside the first
        slots = jnp.arange(GROUP)

        def add_rows(row: Array, rows: Array, columns: Array, order: Array) -> Array:
            weights = jnp.where(enters, -gram[site, columns], columns == site)
            weights = jnp.where(order < size, weights, 0)
            return row + sum(weights[slot] * rows[slot] for slot in range(GROUP))

        def add_group(group: Array, row: Array) -> Array:
            rows, columns = cache.rows[1][group], cache.columns[1][group]
            return add_rows(row, rows, columns, (group + 1) * GROUP + slots)

        start = jnp.where(enters, (1 - is_in) * gram[site], 0)
        row = add_rows(start, cache.rows[0], cache.columns[0], slots)
        row = jax.lax.fori_loop(0, num_groups, add_group, row)
        row = jnp.where(is_site, pivot - sign, row)
        scale = jnp.where(is_change, 1 / pivot, 0)
        last, last_column = _last(cache)
        moved = jnp.where(enters, scale * row - is_site, last - scale * row[last_column] * row)
        moved_column = jnp.where(enters, site, last_column).astype(jnp.int32)

        def change_rows(rows: Array, columns: Array, order: Array) -> tuple[Array, Array]:
            is_used = order < size
            factors = jnp.where(is_used, scale * row[columns], 0)
            is_moved = is_change & jnp.where(enters, order == size, is_used & (columns == site))
            rows = jnp.where(is_moved[:, None], moved, rows - factors[:, None] * row)
            return rows, jnp.where(is_moved, moved_column, columns)

        def change_group(group: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            changed = change_rows(carry[0][group], carry[1][group], (group + 1) * GROUP + slots)
            put = jax.lax.dynamic_update_index_in_dim
            return put(carry[0], changed[0], group, 0), put(carry[1], changed[1], group, 0)

        first = change_rows(cache.rows[0], cache.columns[0], slots)
        others = jax.lax.fori_loop(0, num_groups, change_group, (cache.rows[1], cache.columns[1]))
        return cache._replace(
            diagonal=cache.diagonal - scale * row**2 - jnp.where(is_change & is_site, 2 * sign, 0),
            slopes=cache.slopes - scale * slope * row,
            residual=cache.residual - scale * slope**2,
            rows=(first[0], others[0]),
            columns=(first[1], others[1]),
            size=size + jnp.where(is_change, sign.astype(jnp.int32), 0),
        )

    def _shrink(self, residual: Array) -> Array:
        return 1 - self.shrinkage + self.shrinkage * residual

    def _log_size_prior(self, size: Array) -> Array:
        if self.beta is None:
            return jnp.zeros(())
        return gammaln(self.beta[0] + size) + gammaln(self.beta[1] + self.domain.num_sites - size)


def _last(cache: Swept) -> tuple[Array, Array]:
    """The row behind which others may come in, and its column."""
    slot = jnp.maximum(cache.size - 1, 0)
    group, place = jnp.maximum(slot // GROUP - 1, 0), slot % GROUP
    is_first = slot < GROUP
    row = jnp.where(is_first, cache.rows[0][place], cache.rows[1][group, place])
    return row, jnp.where(is_first, cache.columns[0][place], cache.columns[1][group, place])


@jax.jit
def _mean_conditionals(target: VariableSelection, draws: Array) -> Array:
    def conditionals(position: Array) -> Array:
        table = target.all_differences(target.sweep_all(position), position)
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
        log_odds, shrinkage = log_odds - 0.5 * np.log1p(strength), strength / (1 + strength)
    else:
        variance = num_rows * float(positive(f"{name}(slab_variance=...)", slab_variance))
        gram = gram + np.eye(num_columns) / variance
        log_odds, shrinkage = log_odds - 0.5 * np.log(variance), 1.0
    projection = columns.T @ unit_response
    matrix = np.block([[gram, projection[:, None]], [projection, 1.0]])
    numbers = (jnp.asarray(value, float) for value in (matrix, log_odds, shrinkage, num_rows - 1))
    return VariableSelection(
        Binary(num_columns), *numbers, beta=_beta(name, beta), has_determinant=prior != "g"
    )


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
