"""What an RBM's own distribution looks like, and whether chains have reached it.

Images come from parallel tempering of layer-wise Gibbs, which forgets where it began where single chains stay
with one digit. How far a set of images is from them is said as a number of independent images: so many would
be as far by chance.
"""

import io
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from scipy.io import loadmat

import steppe
from steppe.datasets.files import File, Lookup, contents
from steppe.diagnostics.quantity import rhat
from steppe.evidence import estimate_from_run
from steppe.targets.rbm import Rbm, layerwise_gibbs, rbm
from steppe_edlp.rbm.images import find_kernel_means
from steppe_edlp.work import Content

PUBLISHED = File(
    "rbm_checkpoints/mnistvh_CD25.mat", "264d0e1b8b54162efc886ad596408316ded23664eb8858f8a3ff280d31fb491d"
)
# Chains have mixed if R-hat of U is at most this among themselves; where their distribution is the RBM's,
# also beside chains of the reference, which have to have mixed themselves, and if a set of their images is
# worth so many independent ones.
MAX_RHAT, MIN_WORTH = 1.05, 100
LEAST_MEAN = 0.01


class Gate(NamedTuple):
    """Whether chains have mixed, and by which numbers."""

    rhat: float
    rhat_reference: float
    worth: np.ndarray
    is_mixed: bool


def read_published(data: str) -> Content:
    """Weights and biases of the RBM of Salakhutdinov and Murray (2008) after CD-25, 784 × 500."""
    found = Lookup(data, download=False).find(
        "rbm", (PUBLISHED,), "Obtain `mnistvh_CD25.mat` of R. Salakhutdinov's programs for RBM_AIS"
    )
    parts = loadmat(io.BytesIO(contents("rbm", found)))
    return {
        "weights": np.asarray(parts["vishid"].T, np.float32),
        "hidden": np.asarray(parts["hidbiases"].ravel(), np.float32),
        "visible": np.asarray(parts["visbiases"].ravel(), np.float32),
    }


def make_rbm(parts: Content) -> Rbm:
    """The RBM of weights, hidden and visible biases."""
    return rbm(*(parts[name] for name in ("weights", "hidden", "visible")))


def draw_tempered(
    target: Rbm,
    mean_image: np.ndarray,
    seed: int,
    *,
    num_chains: int,
    num_warmup: int,
    num_draws: int,
    thinning: int,
) -> Content:
    """Images by parallel tempering between independent pixels and the RBM, and `log Z`.

    Parameters
    ----------
    target
        The RBM.
    mean_image
        Probabilities of visible bits at the hot end.
    seed
        Random key.
    num_chains, num_warmup, num_draws, thinning
        Ladders, rounds before the first image and images of each, rounds between two of them.
    """
    keys = jax.random.split(jax.random.key(seed), 3)
    both, num_hidden = target.with_hidden(), len(target.hidden_bias)
    hot = np.concatenate([np.clip(mean_image, LEAST_MEAN, 1 - LEAST_MEAN), np.full(num_hidden, 0.5)])
    recipe = steppe.parallel_tempering(base=layerwise_gibbs(), reference=hot)
    tuned = steppe.tune_ladder(both, recipe, key=keys[0], num_chains=2, num_steps=400)
    run = steppe.sample(
        both,
        tuned.recipe,
        key=keys[1],
        num_chains=num_chains,
        num_warmup=num_warmup,
        num_draws=num_draws,
        thinning=thinning,
        chain_block=num_chains,
        progress=False,
    )
    evidence = estimate_from_run(run, both, key=keys[2])
    images = run.levels[..., : target.domain.num_sites].astype(np.uint8)
    log_density = np.stack([evaluate(target, chain) for chain in images])
    return {
        "images": images.reshape(-1, images.shape[-1]),
        "log_density": log_density,
        "rhat": rhat(log_density),
        "log_normalizer": evidence.value,
        "standard_error": evidence.standard_error,
        "num_rungs": len(tuned.inverse_temperatures),
    }


def evaluate(target: Rbm, rows: np.ndarray) -> np.ndarray:
    """Log-densities of rows of bits."""
    return np.asarray(jax.jit(jax.vmap(target.log_density))(np.asarray(rows, np.float32)), float)


def find_worth(images: np.ndarray, reference: np.ndarray) -> float:
    """How many independent images of the RBM would be as far from the reference as these are.

    The squared discrepancy of `n` independent images to `m` others has the mean `(1 − μ)(1/n + 1/m)`, where
    `μ` is the mean of the kernel between independent images. The halves of the reference say what `m` is.

    Parameters
    ----------
    images
        Rows of bits.
    reference
        Rows of bits, chain after chain.
    """
    half = len(reference) // 2
    first, second = reference[:half], reference[half:]
    own, other, between = find_kernel_means(first, second)
    spread = 1 - between
    num_own = 4 * spread / max(own + other - 2 * between, 1e-12)
    own, other, between = find_kernel_means(images, reference)
    inverse = (own + other - 2 * between) / spread - 1 / num_own
    return float(min(1 / max(inverse, 1e-12), len(images)))


def check_mixing(
    chains: np.ndarray, sets: Sequence[np.ndarray], reference: Content, *, has_distribution: bool
) -> Gate:
    """Say whether chains have mixed.

    Parameters
    ----------
    chains
        Log-densities, chains × draws.
    sets
        Their images, seed by seed.
    reference
        Of `draw_tempered`.
    has_distribution
        Whether the sampler has the RBM's distribution; one that is not adjusted is judged by its own chains.
    """
    among = rhat(chains)
    length = chains.shape[1]
    others = np.ravel(reference["log_density"])
    others = others[: len(others) // length * length].reshape(-1, length)
    number = min(len(chains), len(others))
    beside = rhat(np.concatenate([chains[:number], others[:number]]))
    worth = np.asarray([find_worth(images, reference["images"]) for images in sets])
    is_right = max(reference["rhat"], beside) <= MAX_RHAT and worth.mean() >= MIN_WORTH
    return Gate(among, beside, worth, bool(among <= MAX_RHAT and (is_right or not has_distribution)))
