"""How likely data are under a trained RBM: mean log-density minus log-normaliser."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.errors import RunError
from steppe.targets.rbm import Rbm
from steppe.targets.rbm_normalizer import anneal_rbm

ROWS_AT_A_TIME = 1000


class LogLikelihood(NamedTuple):
    """Mean log-probability of the rows in nats, the standard error that comes from the normaliser, and it.

    Attributes
    ----------
    value
        Mean over rows of `U(v) − log Z`.
    standard_error
        Of `log Z`; 0 where it was summed exactly.
    log_normalizer
        `log Z`.

    Examples
    --------
    >>> import jax, numpy as np, steppe
    >>> rbm = steppe.targets.rbm(np.zeros((2, 3)), 0.0, 0.0)  # no weights: all rows are equally likely
    >>> found = steppe.training.log_likelihood(rbm, np.ones((5, 3)), jax.random.key(0))
    >>> bool(abs(found.value + 3 * np.log(2)) < 1e-4)
    True
    """

    value: float
    standard_error: float
    log_normalizer: float


@checked(RunError, data=2, num_chains="[2, inf)", num_temperatures="[1, inf)", base_bias=0)
def log_likelihood(
    rbm: Rbm,
    data: ArrayLike,
    key: Array,
    *,
    num_chains: int = 100,
    num_temperatures: int = 10_000,
    base_bias: ArrayLike | None = None,
) -> LogLikelihood:
    """Mean log-likelihood of rows of bits under a restricted Boltzmann machine.

    Parameters
    ----------
    rbm
        Made by `steppe.targets.rbm`, or the `target` of a `TrainedRbm`.
    data
        Rows × visible bits.
    key
        Random key of the annealing that estimates the normaliser.
    num_chains, num_temperatures
        Size of the annealing; more temperatures lower the spread of the weights.
    base_bias
        Visible biases of the RBM the annealing starts from, by default those of `rbm`. The log-odds of the
        data's mean are often closer.

    Notes
    -----
    Annealed importance sampling is unbiased for `Z`, so `log Z` comes out too small on average and the
    likelihood too large, by about half the squared standard error, if the chains found every mode.

    Examples
    --------
    >>> import jax, numpy as np, steppe
    >>> rng = np.random.default_rng(0)
    >>> rbm = steppe.targets.rbm(rng.normal(size=(4, 6)), 0.0, 0.0)
    >>> found = steppe.training.log_likelihood(rbm, rng.integers(0, 2, (20, 6)), jax.random.key(0))
    >>> found.standard_error < 0.1
    True
    """
    rows = np.asarray(data)
    if rows.shape[1:] != rbm.domain.shape:
        raise RunError(
            f"`log_likelihood(data)` must be rows of {rbm.domain!r}; got an array of {rows.shape}."
        )
    value, error = rbm.sum_states(), 0.0
    if value is None:
        annealed = anneal_rbm(
            rbm.weights,
            rbm.hidden_bias,
            rbm.visible_bias,
            key,
            num_chains=num_chains,
            num_temperatures=num_temperatures,
            base_bias=base_bias,
        )
        value, error = annealed.value, annealed.standard_error
    parts = [rows[first : first + ROWS_AT_A_TIME] for first in range(0, len(rows), ROWS_AT_A_TIME)]
    total = sum(float(_sum_of_log_densities(rbm, part)) for part in parts)
    return LogLikelihood(total / len(rows) - value, error, value)


@jax.jit
def _sum_of_log_densities(rbm: Rbm, rows: Array) -> Array:
    return jnp.sum(jax.vmap(rbm.log_density)(rows.astype(jnp.result_type(float))))
