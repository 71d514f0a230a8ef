"""Which eight of forty shares, when a whole sector may fall? The best portfolio, and the one for bad years.

    python examples/robust_portfolio.py

A made-up market of five sectors: shares of one sector move together, and in a bad year one sector loses. The
best portfolio by mean and variance is found beside the one with the best worst tenth of forty bad years, and
both are judged on years that neither has seen. Writes out/examples/robust_portfolio.png.

Result: in the worst tenth of 4000 bad years the portfolio for bad years loses 5.80 ± 0.02 % and the other one
22.1 ± 0.2 %; in quiet years it earns 6.1 % instead of 10.0 %.
"""

from pathlib import Path

import jax
import numpy as np

import steppe
from steppe.report import style
from steppe.targets import qubo

OUT = Path("out/examples/robust_portfolio")
NUM_SHARES, NUM_SECTORS, NUM_HELD, AVERSION, SCALE = 40, 5, 8, 1.0, 200.0
NUM_PLANNED, NUM_JUDGED = 40, 4000


def make_market(rng):
    """Sector, mean return of every share, and covariance of returns."""
    sector = np.arange(NUM_SHARES) % NUM_SECTORS
    loadings = 0.15 * (sector[:, None] == np.arange(NUM_SECTORS)) * rng.uniform(0.5, 1.5, (NUM_SHARES, 1))
    mean = 0.03 + 0.08 * (sector == 0) + 0.02 * rng.standard_normal(NUM_SHARES)
    return sector, mean, loadings @ loadings.T + 0.02 * np.eye(NUM_SHARES)


def rate(mean, covariance):
    """U of a portfolio: return minus variance at equal weights, and a penalty off eight shares."""
    quadratic = AVERSION * covariance / NUM_HELD**2 + 0.05 * np.ones_like(covariance)
    return qubo(SCALE * (quadratic - np.diag(mean / NUM_HELD + 0.1 * NUM_HELD)), SCALE * 0.05 * NUM_HELD**2)


def main():
    rng = np.random.default_rng(1)
    sector, mean, covariance = make_market(rng)

    def draw_year():
        """Mean returns in a year in which one sector loses a fifth or more."""
        return mean - rng.uniform(0.2, 0.5) * (sector == rng.integers(NUM_SECTORS))

    years = [rate(draw_year(), covariance) for _ in range(NUM_PLANNED)]
    goals = {
        "best on average": rate(mean, covariance),
        "best worst tenth": steppe.robust(years[0], scenarios=years, risk="cvar:0.1"),
    }
    fresh, held, returns = np.stack([draw_year() for _ in range(NUM_JUDGED)]), {}, {}
    for name, goal in goals.items():
        best = (
            np.asarray(steppe.anneal(goal, key=jax.random.key(0), num_steps=4000, num_chains=16).best) > 0.5
        )
        held[name] = np.bincount(sector[best], minlength=NUM_SECTORS)
        returns[name] = 100 * fresh[:, best].mean(axis=1)
        worst = np.sort(returns[name])[: NUM_JUDGED // 10]
        error = worst.std() / len(worst) ** 0.5
        print(f"{name}: sectors {held[name]}, quiet years {100 * mean[best].mean():.1f} %, ", end="")
        print(f"bad years {returns[name].mean():.2f} %, their worst tenth {worst.mean():.2f} ± {error:.2f} %")
    draw(held, returns)


@style.apply()
def draw(held, returns):
    figure, _ = style.make_row(1, 8.5, 3.4)
    figure.clear()
    left, right = figure.subplots(1, 2)
    bins = np.linspace(min(map(min, returns.values())), max(map(max, returns.values())), 40)
    for shift, name, color in zip((-0.2, 0.2), held, (style.SHARP_COLOR, style.FLAT_COLOR), strict=True):
        left.bar(np.arange(NUM_SECTORS) + shift, held[name], 0.38, color=color, label=name)
        right.hist(returns[name], bins, color=color, alpha=0.65, label=name)
    left.set(xlabel="sector", ylabel="shares held", title=f"{NUM_HELD} of {NUM_SHARES} shares")
    right.set(xlabel="return, %", ylabel="bad years", title="bad years that neither has seen")
    right.legend()
    print(*style.save(figure, OUT), sep="\n")


if __name__ == "__main__":
    main()
