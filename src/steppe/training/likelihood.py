"""How likely data are under a trained machine: mean log-density minus log-normaliser."""

from typing import NamedTuple, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.targets.rbm import Rbm
from steppe.targets.rbm_normalizer import Annealing

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
    """

    value: float
    standard_error: float
    log_normalizer: float


def log_likelihood(rbm: Rbm, data: ArrayLike, key: Array, **options: Unpack[Annealing]) -> LogLikelihood:
    """Mean log-likelihood of rows of bits under a restricted Boltzmann machine.

    Parameters
    ----------
    rbm
        Made by `steppe.targets.rbm`, or the `target` of a `TrainedRbm`.
    data
        Rows × visible bits.
    key
        Random key of the annealing that estimates the normaliser.
    options
        As for `steppe.targets.log_normalizer`.

    Notes
    -----
    Annealed importance sampling is unbiased for `Z`, so `log Z` comes out too small on average and the
    likelihood too large, by about half the squared standard error, if the chains found every mode.
    """
    normalizer = rbm.log_normalizer(key, **options)
    rows = np.asarray(data)
    parts = [rows[first : first + ROWS_AT_A_TIME] for first in range(0, len(rows), ROWS_AT_A_TIME)]
    total = sum(float(_sum_of_log_densities(rbm, part)) for part in parts)
    return LogLikelihood(total / len(rows) - normalizer.value, normalizer.standard_error, normalizer.value)


@jax.jit
def _sum_of_log_densities(rbm: Rbm, rows: Array) -> Array:
    return jnp.sum(jax.vmap(rbm.log_density)(rows.astype(jnp.result_type(float))))
