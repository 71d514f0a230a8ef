"""Parallel tempering of the published RBM (CD25, 784 × 500): digits, R-hat, log Z, test likelihood.

    STEPPE_DATA=... python -m rbm_tempering --draws 4000 --out tempering_rbm.json

All chains begin at one image. Beside it, layer-wise Gibbs without tempering, by default for as many products
with the weights. Salakhutdinov and Murray (2008) give log Z 451.28 and −86.34 nats on the test set, by
annealed importance sampling.
"""

import argparse
import json
import os
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy.io import loadmat
from sklearn.linear_model import LogisticRegression

import steppe
from steppe.diagnostics.quantity import rhat
from steppe.evidence import estimate_from_run
from steppe.targets import layerwise_gibbs


def main() -> None:
    options = read_options()
    data = Path(os.environ["STEPPE_DATA"])
    target = read_rbm(data)
    both = target.with_hidden()
    test = loadmat(data / "mnist_binarized" / "binarized_mnist_test.mat")["X"].astype(np.float32)
    name_digits = learn_digits(data)
    first = jnp.concatenate([test[0], jnp.zeros(target.weights.shape[0])])
    begun = time.process_time()
    recipe = steppe.parallel_tempering(
        base=layerwise_gibbs(), reference=make_reference(target, data, options)
    )
    tuned = steppe.tune_ladder(both, recipe, key=jax.random.key(0), num_chains=2, num_steps=400)
    run = steppe.sample(
        both,
        tuned.recipe,
        key=jax.random.key(1),
        initial=both.domain.unflatten(np.tile(first, (options.chains, 1))),
        num_chains=options.chains,
        num_warmup=options.draws // 4,
        num_draws=options.draws,
        thinning=options.thinning,
        chain_block=options.chains,
        progress=True,
    )
    seconds = time.process_time() - begun
    evidence = estimate_from_run(run, both, key=jax.random.key(2))
    visible = run.levels[..., : target.domain.num_sites]
    likelihood = float(np.mean(evaluate(target, test))) - evidence.value
    record = {
        "reference": options.reference,
        "num_rungs": len(tuned.inverse_temperatures),
        "barrier": evidence.barrier,
        "round_trips": evidence.round_trips,
        "cpu_seconds": seconds,
        "log_Z": evidence.value,
        "log_Z_error": evidence.standard_error,
        "test_nats": likelihood,
        **describe_images(target, name_digits, visible),
        "chains": options.chains,
        "draws": options.draws,
        "thinning": options.thinning,
    }
    write(record, options.out)
    plain = walk_plainly(target, test[0], options, len(tuned.inverse_temperatures))
    layerwise = {"draws": options.plain_draws, **describe_images(target, name_digits, plain)}
    write({**record, "layerwise": layerwise}, options.out)
    if options.picture:
        draw_sheet(visible, plain, options.picture)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--thinning", type=int, default=4)
    parser.add_argument("--chains", type=int, default=8)
    parser.add_argument("--plain-draws", type=int, help="draws of layer-wise Gibbs; by default as many")
    parser.add_argument("--reference", choices=("data", "biases", "uniform"), default="data")
    parser.add_argument("--out")
    parser.add_argument("--picture")
    options = parser.parse_args()
    options.plain_draws = options.plain_draws or options.draws
    return options


def make_reference(target, data: Path, options: argparse.Namespace) -> np.ndarray | None:
    """Probabilities of both layers at the hot end: uniform, the biases, or frequencies of training pixels."""
    if options.reference == "uniform":
        return None
    if options.reference == "biases":
        return target.bias_reference()
    pixels = steppe.datasets.load("mnist", data=data).train.x.reshape(-1, 784) > 0.5
    return np.concatenate([np.clip(pixels.mean(axis=0), 0.01, 0.99), np.full(len(target.hidden_bias), 0.5)])


def read_rbm(data: Path):
    published = loadmat(data / "rbm_checkpoints" / "mnistvh_CD25.mat")
    names = ("vishid", "hidbiases", "visbiases")
    weights, hidden, visible = (np.asarray(published[name], np.float32) for name in names)
    return steppe.targets.rbm(weights.T, hidden.ravel(), visible.ravel())


def learn_digits(data: Path):
    """Return a classifier of images, fitted to 10 000 binarised MNIST digits."""
    digits = steppe.datasets.load("mnist", data=data).train
    fitted = LogisticRegression(max_iter=300, C=0.1).fit(digits.x[:10_000] > 0.5, digits.y[:10_000])
    return fitted.predict


def describe_images(target, name_digits, visible: np.ndarray) -> dict[str, float | list[int]]:
    """R-hat of `U`, and how many images show each digit, from 0 to 9."""
    free = np.stack([evaluate(target, chain) for chain in visible])
    digits = np.bincount(name_digits(visible[:, ::10].reshape(-1, 784)), minlength=10)
    return {"rhat_of_U": float(rhat(free)), "digits": digits.tolist()}


def write(record: dict, path: str | None) -> None:
    print(json.dumps(record), flush=True)
    if path:
        Path(path).write_text(json.dumps(record, indent=1))


def evaluate(target, rows: np.ndarray) -> np.ndarray:
    return np.asarray(jax.jit(jax.vmap(target.log_density))(jnp.asarray(rows, jnp.float32)), float)


def walk_plainly(target, first: np.ndarray, options: argparse.Namespace, num_rungs: int) -> np.ndarray:
    """Layer-wise Gibbs for as many products with the weights as the tempered run."""
    run = steppe.sample(
        target,
        layerwise_gibbs(),
        key=jax.random.key(1),
        initial=np.tile(first, (options.chains, 1)),
        num_chains=options.chains,
        num_warmup=options.plain_draws // 4,
        num_draws=options.plain_draws,
        thinning=options.thinning * num_rungs,
        chain_block=options.chains,
    )
    return run.levels


def draw_sheet(tempered: np.ndarray, plain: np.ndarray, path: str) -> None:
    """Twelve images of every chain, tempered above, layer-wise Gibbs below."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 1, figsize=(8, 10.5), layout="constrained")
    names = ("parallel tempering of layer-wise Gibbs", "layer-wise Gibbs, as many products per draw")
    for axis, images, name in zip(axes, (tempered, plain), names, strict=True):
        places = np.linspace(images.shape[1] // 12, images.shape[1] - 1, 12).astype(int)
        sheet = images[:, places].reshape(len(images), 12, 28, 28).transpose(0, 2, 1, 3)
        axis.imshow(sheet.reshape(len(images) * 28, 12 * 28), cmap="gray_r", interpolation="nearest")
        axis.set_title(f"{name}: a row is a chain, all from one image", fontsize=10)
        axis.set_axis_off()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
