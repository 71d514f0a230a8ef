"""The same samplers in PyTorch, written straight from the formulas, as one would in a first implementation.

Value and gradient are asked for wherever the algorithm names them: four forward and two backward passes for a
Metropolis step of EDMALA, one of each for an unadjusted one. Used when torch is installed; one thread.
"""

import numpy as np
import torch

from speed.harness import Case

ALPHA, CENTER_ALPHA, ETA = 0.1, 0.1, 0.5


class Rbm:
    def __init__(self, weights, hidden_bias, visible_bias) -> None:
        self.weights, self.hidden_bias, self.visible_bias = map(_tensor, (weights, hidden_bias, visible_bias))

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.nn.functional.softplus(x @ self.weights.T + self.hidden_bias)
        return hidden.sum(-1) + x @ self.visible_bias


class Lattice:
    """Spins as bits on a periodic square lattice, with a dense matrix of bonds, as papers write it."""

    def __init__(self, length: int, coupling: float) -> None:
        places = np.arange(length * length).reshape(length, length)
        bonds = np.zeros((places.size, places.size))
        for axis in (0, 1):
            bonds[places.ravel(), np.roll(places, 1, axis).ravel()] = coupling / 2
        self.bonds = _tensor(bonds + bonds.T)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        s = 2 * x - 1
        return (s @ self.bonds * s).sum(-1)


class Stencil:
    """The same lattice by shifts of the array."""

    def __init__(self, length: int, coupling: float) -> None:
        self.length, self.coupling = length, coupling

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        s = (2 * x - 1).reshape(-1, self.length, self.length)
        return self.coupling * (s * (s.roll(1, 1) + s.roll(1, 2))).sum((1, 2))


class Table:
    """Multilinear interpolation of a table over four bits."""

    def __init__(self, log_probabilities) -> None:
        self.table = _tensor(log_probabilities)
        states = np.indices((2,) * 4).reshape(4, -1).T
        self.states = _tensor(states)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        x = x[:, None, :]
        weights = (self.states * x + (1 - self.states) * (1 - x)).prod(-1)
        return weights @ self.table


class Network:
    """Networks of ±1 weights, all rows at once."""

    def __init__(self, x, y, hidden: int) -> None:
        self.x, self.y, self.hidden = _tensor(x), _tensor(y), hidden

    def __call__(self, bits: torch.Tensor) -> torch.Tensor:
        w, columns = 2 * bits - 1, self.x.shape[1]
        split = columns * self.hidden
        first = w[:, :split].reshape(-1, columns, self.hidden)
        hidden = torch.tanh(self.x @ first + w[:, None, split : split + self.hidden])
        second = w[:, split + self.hidden : split + 2 * self.hidden, None]
        out = torch.sigmoid((hidden @ second)[..., 0] + w[:, -1:])
        return -100 * ((out - self.y) ** 2).mean(-1)


def _tensor(values) -> torch.Tensor:
    return torch.tensor(np.asarray(values), dtype=torch.float32)


def gradient(log_density, x: torch.Tensor) -> torch.Tensor:
    x = x.detach().requires_grad_()
    return torch.autograd.grad(log_density(x).sum(), x)[0]


class Langevin:
    """DULA, DMALA, EDULA and EDMALA on bits, by Algorithm 1."""

    def __init__(self, log_density, x: torch.Tensor, *, coupled: bool, adjusted: bool) -> None:
        self.log_density, self.x, self.a = log_density, x, x.clone()
        self.coupled, self.adjusted = coupled, adjusted

    def flip_probabilities(self, x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        slope = gradient(self.log_density, x)
        if self.coupled:
            slope = slope + (a - x) / ETA
        return torch.sigmoid(0.5 * slope * (1 - 2 * x) - 1 / (2 * ALPHA))

    def center_mean(self, x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        return a + 0.5 * CENTER_ALPHA * (x - a) / ETA

    def step(self) -> None:
        x, a = self.x, self.a
        forward = self.flip_probabilities(x, a)
        flips = torch.bernoulli(forward)
        new_x, new_a = (x - flips).abs(), a
        if self.coupled:
            new_a = self.center_mean(x, a) + CENTER_ALPHA**0.5 * torch.randn_like(a)
        if self.adjusted:
            accept = torch.log(torch.rand(len(x))) < self.log_ratio(x, a, new_x, new_a, flips, forward)
            new_x, new_a = torch.where(accept[:, None], new_x, x), torch.where(accept[:, None], new_a, a)
        self.x, self.a = new_x, new_a

    def log_ratio(self, x, a, new_x, new_a, flips, forward) -> torch.Tensor:
        backward = self.flip_probabilities(new_x, new_a)
        ratio = self.log_density(new_x) - self.log_density(x)
        ratio = ratio + self.log_flips(flips, backward) - self.log_flips(flips, forward)
        if self.coupled:
            ratio = ratio + (((x - a) ** 2).sum(-1) - ((new_x - new_a) ** 2).sum(-1)) / (2 * ETA)
            there = ((new_a - self.center_mean(x, a)) ** 2).sum(-1)
            back = ((a - self.center_mean(new_x, new_a)) ** 2).sum(-1)
            ratio = ratio + (there - back) / (2 * CENTER_ALPHA)
        return ratio

    @staticmethod
    def log_flips(flips: torch.Tensor, probabilities: torch.Tensor) -> torch.Tensor:
        chosen = flips * probabilities + (1 - flips) * (1 - probabilities)
        return torch.log(chosen + 1e-10).sum(-1)


class Blocks:
    """Gibbs-1, BG-1 and HB-10-1: weigh all candidates of a block by full evaluations."""

    def __init__(self, log_density, x: torch.Tensor, block: int, *, ball: bool) -> None:
        self.log_density, self.x, self.block, self.ball = log_density, x, block, ball

    def step(self) -> None:
        sites = torch.randperm(self.x.shape[1])[: self.block]
        base = self.x.clone()
        if self.ball:  # a uniform point of the ball about the state, then its own ball
            moves = torch.randint(0, self.block + 1, (len(base),))
            base = self.moved(base, sites, moves)
        candidates = [self.moved(base, sites, torch.full((len(base),), k)) for k in range(self.block + 1)]
        values = torch.stack([self.log_density(candidate) for candidate in candidates])
        chosen = torch.distributions.Categorical(logits=values.T).sample()
        self.x = torch.stack(candidates)[chosen, torch.arange(len(base))]

    def moved(self, x: torch.Tensor, sites: torch.Tensor, moves: torch.Tensor) -> torch.Tensor:
        """Flip the site of each move; the last move flips nothing."""
        x, rows = x.clone(), torch.nonzero(moves < self.block)[:, 0]
        place = sites[moves[rows]]
        x[rows, place] = 1 - x[rows, place]
        return x


def langevin_cases(
    cell: str, log_density, num_chains: int, num_sites: int, num_steps: int, label: str = "textbook"
) -> list[Case]:
    kinds = {"dula": (False, False), "dmala": (False, True), "edula": (True, False), "edmala": (True, True)}
    return [
        _case(
            cell,
            f"{label} {name}",
            Langevin(log_density, _start(num_chains, num_sites), coupled=c, adjusted=a),
            num_steps,
        )
        for name, (c, a) in kinds.items()
    ]


def block_cases(cell: str, log_density, num_chains: int, num_sites: int, num_steps: int) -> list[Case]:
    kinds = {"gibbs-1": (1, False), "bg-1": (1, False), "hb-10-1": (10, True)}
    return [
        _case(
            cell,
            f"textbook {name}",
            Blocks(log_density, _start(num_chains, num_sites), size, ball=ball),
            num_steps,
        )
        for name, (size, ball) in kinds.items()
    ]


def _start(num_chains: int, num_sites: int) -> torch.Tensor:
    return torch.bernoulli(torch.full((num_chains, num_sites), 0.5))


def _case(cell: str, name: str, sampler, num_steps: int) -> Case:
    torch.set_num_threads(1)

    def run() -> None:
        with torch.no_grad() if isinstance(sampler, Blocks) else torch.enable_grad():
            for _ in range(num_steps):
                sampler.step()

    return Case(cell, name, run, num_steps)
