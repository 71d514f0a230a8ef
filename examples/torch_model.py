"""What does a network of PyTorch like to see? Its inputs of bits, sampled.

    python examples/torch_model.py

A network learns to tell three horizontal bars from three vertical ones in pictures of 6 × 6 bits. Pictures
that it calls horizontal with a large logit are then sampled, at two scales of the logit. Needs PyTorch (see
pytorch.org) and `pip install "steppe[plots]"`. Writes out/examples/torch_model.png.

Result: the mean logit of sampled pictures is 0.86 ± 0.04 at scale 1 and 3.12 ± 0.05 at scale 3.
"""

from pathlib import Path

import jax
import numpy as np
import torch

import steppe
from steppe.interop import from_torch
from steppe.report import style

OUT = Path("out/examples/torch_model")
SIDE, SPARSITY, SCALES = 6, 0.5, (1.0, 3.0)


def make_pictures(num, rng):
    """Three bars on noise, half of them horizontal, and which."""
    pictures = (rng.random((num, SIDE, SIDE)) < 0.1).astype(np.float32)
    for index, picture in enumerate(pictures):
        (picture if index % 2 == 0 else picture.T)[rng.choice(SIDE, 3, replace=False)] = 1
    return torch.from_numpy(pictures.reshape(num, -1)), torch.arange(num) % 2 == 0


def train(pictures, is_horizontal):
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(SIDE**2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=1e-3)
    loss = torch.nn.BCEWithLogitsLoss()
    for _ in range(300):
        optimizer.zero_grad()
        loss(network(pictures)[:, 0], is_horizontal.float()).backward()
        optimizer.step()
    return network.eval()


def main():
    rng = np.random.default_rng(0)
    network = train(*make_pictures(2000, rng))
    pictures, is_horizontal = make_pictures(1000, rng)
    print(f"right: {((network(pictures)[:, 0] > 0) == is_horizontal).float().mean():.1%} of new pictures")
    runs = {}
    for scale in SCALES:

        def log_density(batch, scale=scale):
            return scale * network(batch)[:, 0] - SPARSITY * batch.sum(dim=1)

        target = from_torch(log_density, steppe.Binary(SIDE**2))
        runs[scale] = steppe.sample(target, steppe.dmala(), key=jax.random.key(1), num_draws=1000)
        found = runs[scale].summary(
            {"logit": lambda x: network(torch.from_numpy(np.array(x)))[:, 0].detach().numpy()}
        )
        logit = found.to_dict()["quantities"]["logit"]
        print(f"scale {scale:g}: logit {logit['mean']:.3f} ± {logit['mcse']:.3f}, R-hat {logit['rhat']:.3f}")
    draw(runs)


@style.apply()
def draw(runs):
    figure, panels = style.make_grid(2, 4, 8.0, 4.4)
    for row, (scale, run) in enumerate(runs.items()):
        pictures = [*run.positions[:3, -1], run.positions.mean(axis=(0, 1))]
        for column, picture in enumerate(pictures):
            panel = panels[4 * row + column]
            panel.imshow(picture.reshape(SIDE, SIDE), cmap="Greens", vmin=-0.2, vmax=1)
            panel.set(title=f"scale {scale:g}: " + ("a draw" if column < 3 else "mean"))
            panel.set_axis_off()
    print(*style.save(figure, OUT), sep="\n")


if __name__ == "__main__":
    main()
