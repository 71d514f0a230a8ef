"""How many eruptions are long? A mixture in NumPyro whose labels are moved by steppe.

    python examples/numpyro_mixture.py

Labels of the points are discrete sites of a NumPyro model, means and weight are real. steppe moves the labels
and NumPyro's NUTS the rest, in one Gibbs sampler; beside it is the same model with the labels summed out, by
NUTS alone. Needs NumPyro: `pip install "steppe[numpyro,plots]"`. Writes out/examples/numpyro_mixture.png.

Result: the fraction of long eruptions is 0.614 ± 0.004 with labels and 0.617 ± 0.002 without (Monte Carlo
errors).
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, Gibbs
from numpyro.infer.gibbs import discrete_latent_sites

import steppe
from steppe.interop import NumpyroKernel
from steppe.report import style

OUT = Path("out/examples/numpyro_mixture")
# Made up: 30 short and 50 long ones.
MINUTES = np.random.default_rng(5).normal(np.repeat([2.0, 4.3], [30, 50]), 0.8)


def sample_parameters():
    weight = numpyro.sample("weight", dist.Beta(2.0, 2.0))
    low = numpyro.sample("low", dist.Normal(2.0, 1.0))
    gap = numpyro.sample("gap", dist.LogNormal(0.5, 0.5))  # positive: labels cannot be exchanged
    return weight, jnp.stack([low, low + gap])


def with_labels():
    weight, means = sample_parameters()
    label = numpyro.sample("label", dist.Bernoulli(weight).expand([len(MINUTES)]).to_event(1))
    seen = dist.Normal(means[0] + label * (means[1] - means[0]), 0.8)
    numpyro.sample("seen", seen.to_event(1), obs=MINUTES)


def summed_out():
    weight, means = sample_parameters()
    logits = jnp.log(jnp.stack([1 - weight, weight])) + dist.Normal(means, 0.8).log_prob(MINUTES[:, None])
    numpyro.factor("seen", jax.nn.logsumexp(logits, axis=1).sum())


def main():
    labels = NumpyroKernel(with_labels, steppe.gibbs(), num_steps=10)
    kernels = {
        "labels by steppe": Gibbs([(labels, discrete_latent_sites), (NUTS(with_labels), None)]),
        "labels summed out": NUTS(summed_out),
    }
    draws = {}
    for name, kernel in kernels.items():
        how = {"num_chains": 2, "chain_method": "sequential", "progress_bar": False}
        mcmc = MCMC(kernel, num_warmup=500, num_samples=2000, **how)
        mcmc.run(jax.random.key(0))
        draws[name] = mcmc.get_samples(group_by_chain=True)
        found = numpyro.diagnostics.summary(draws[name])["weight"]
        error = found["std"] / found["n_eff"] ** 0.5
        print(f"{name}: weight {found['mean']:.4f} ± {error:.4f}, R-hat {found['r_hat']:.3f}")
    draw(draws)


@style.apply()
def draw(draws):
    figure, _ = style.make_row(1, 8.5, 3.2)
    figure.clear()
    left, right = figure.subplots(1, 2)
    for (name, found), color in zip(draws.items(), (style.FLAT_COLOR, style.SHARP_COLOR), strict=True):
        look = {"bins": 40, "density": True, "histtype": "step", "color": color, "lw": 1.5, "label": name}
        left.hist(np.ravel(found["weight"]), **look)
    certain = np.asarray(draws["labels by steppe"]["label"]).mean(axis=(0, 1))
    right.scatter(MINUTES, certain, s=14, color=style.FLAT_COLOR)
    left.set(xlabel="fraction of long eruptions", ylabel="posterior density", title="the same from both")
    right.set(xlabel="minutes", ylabel="probability of a long eruption", title="labels")
    left.legend(fontsize=8)
    print(*style.save(figure, OUT), sep="\n")


if __name__ == "__main__":
    main()
