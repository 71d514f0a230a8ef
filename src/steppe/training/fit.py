"""Fitting restricted Boltzmann machines to bits."""

import dataclasses
import hashlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.errors import RunError
from steppe.kernel.compose import Recipe
from steppe.run.progress import count_bar
from steppe.targets.rbm import Rbm, layerwise_gibbs, rbm
from steppe.training import contrastive
from steppe.training.checkpoint import Checkpoint
from steppe.training.protocol import Method, Preset, Protocol, protocol_of
from steppe.validation import count, random_key

NUM_KEPT = 100  # entries of the history, and commits to disk


@dataclasses.dataclass(frozen=True)
class TrainedRbm:
    """An RBM fitted to data.

    Attributes
    ----------
    weights, hidden_bias, visible_bias
        As for `steppe.targets.rbm`.
    samples
        The last states of the negative phase, samples × visible bits.
    history
        `update` and `gap`, the mean log-density of the batch minus that of the samples, along the way.
    protocol
        How it was trained.

    Examples
    --------
    >>> import jax, numpy as np, steppe
    >>> rows = np.random.default_rng(0).integers(0, 2, (50, 1)) * np.ones((1, 6))  # all on or all off
    >>> trained = steppe.training.train_rbm(rows, 3, key=jax.random.key(0), num_updates=200, batch_size=10)
    >>> trained.weights.shape, trained.target.domain
    ((3, 6), Binary(6))
    """

    weights: Array
    hidden_bias: Array
    visible_bias: Array
    samples: Array
    history: dict[str, np.ndarray]
    protocol: Protocol

    @property
    def target(self) -> Rbm:
        """The RBM as a target to sample from."""
        return rbm(self.weights, self.hidden_bias, self.visible_bias)


@checked(RunError)
def train_rbm(
    data: ArrayLike,
    num_hidden: int,
    *,
    key: Array,
    preset: Preset = "persistent",
    method: Method | None = None,
    k: int | None = None,
    sampler: Recipe | None = None,
    num_updates: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool | None = None,
) -> TrainedRbm:
    """Fit a restricted Boltzmann machine by contrastive divergence and Adam.

    Parameters
    ----------
    data
        Rows × visible bits; grey levels in [0, 1] are cut at 1/2.
    num_hidden
        Hidden bits.
    key
        Random key; the same key gives the same RBM, interrupted or not.
    preset
        `"persistent"`: PCD-1, 12 000 updates of 100 rows, Adam at 0.002 falling to zero. `"paper"`: CD-10,
        600 updates (one epoch of MNIST), Adam at 0.001.
    method
        `"cd"` starts the samples at the data, `"pcd"` where the last update left them.
    k
        Steps of the sampler per update.
    sampler
        Any recipe; by default `steppe.targets.layerwise_gibbs()`.
    num_updates, batch_size, learning_rate
        In place of those of the preset.
    out
        Directory for checkpoints; a hundred commits per training, each whole or not there.
    resume
        Continue from the last commit in `out`.
    progress
        Show a progress bar; by default when standard error is a terminal.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, numpy as np, steppe
    >>> rows = np.random.default_rng(0).integers(0, 2, (100, 1)) * np.ones((1, 6))  # all on or all off
    >>> trained = steppe.training.train_rbm(
    ...     rows, 3, key=jax.random.key(0), num_updates=500, learning_rate=0.02
    ... )
    >>> half = jnp.asarray([1.0, 0.0] * 3)
    >>> bool(trained.target.log_density(jnp.ones(6)) > trained.target.log_density(half))  # it has learnt
    True
    """
    bits = _bits(data)
    num_hidden = count("train_rbm(num_hidden=...)", num_hidden)
    key = random_key("train_rbm", key)
    recipe = layerwise_gibbs() if sampler is None else sampler
    if not isinstance(recipe, Recipe):
        raise RunError(f"`train_rbm(sampler=...)` must be a recipe such as `steppe.dmala()`; got {recipe!r}.")
    given = {"method": method, "k": k, "num_updates": num_updates, "batch_size": batch_size}
    protocol = protocol_of(preset, {**given, "learning_rate": learning_rate})
    if protocol.batch_size > len(bits):
        raise RunError(f"A batch of {protocol.batch_size} rows was asked for, and the data have {len(bits)}.")
    start = contrastive.start(key, bits, num_hidden, protocol.batch_size)
    checkpoint = Checkpoint(out, _description(bits, num_hidden, key, recipe, protocol), resume=resume)
    with checkpoint.lock():
        first, state, gaps = checkpoint.load((start, np.zeros(0)))
        rows, stride = jnp.asarray(bits), -(-protocol.num_updates // NUM_KEPT)
        with count_bar("training", protocol.num_updates, progress) as report:
            while first < protocol.num_updates:
                last = min(first + stride, protocol.num_updates)
                state, gap = contrastive.advance(recipe, protocol, state, rows, key, first, last)
                first, gaps = last, np.append(gaps, float(gap))
                checkpoint.save(first, (state, gaps))
                report(first)
    updates = np.minimum(stride * np.arange(1, len(gaps) + 1), protocol.num_updates)
    history = {"update": updates, "gap": gaps}
    return TrainedRbm(*state.parameters, samples=state.samples, history=history, protocol=protocol)


def _bits(data: ArrayLike) -> np.ndarray:
    rows = np.asarray(data)
    if rows.ndim != 2 or not rows.size:
        raise RunError(
            f"`train_rbm(data=...)` must be rows × visible bits; got an array of shape {rows.shape}."
        )
    if not (rows.min() >= 0 and rows.max() <= 1):
        raise RunError(
            f"`train_rbm(data=...)` must lie in [0, 1]; got {rows.min():g} to {rows.max():g}. Divide grey "
            "levels by their largest."
        )
    return (rows > 0.5).astype(np.uint8)


def _description(
    bits: np.ndarray, num_hidden: int, key: Array, recipe: Recipe, protocol: Protocol
) -> dict[str, object]:
    return {
        "data": hashlib.sha256(bits.tobytes()).hexdigest(),
        "rows": len(bits),
        "num_visible": bits.shape[1],
        "num_hidden": num_hidden,
        "key": np.asarray(jax.random.key_data(key)).tolist(),
        "sampler": repr(recipe),
        "precision": str(jnp.result_type(float)),
        **protocol._asdict(),
    }
