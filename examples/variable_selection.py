"""Which of ten measurements tell how diabetes goes on? Inclusion probabilities on real data.

    python examples/variable_selection.py

442 patients, ten measurements and their products (scikit-learn's diabetes data). A bit per column, all
coefficients integrated out exactly. Writes out/examples/variable_selection.png.

Result: body mass index, s5 and blood pressure are in the model with probability 1.00, 1.00 and 0.99, sex
with 0.76; all others are below 0.7.
"""

from itertools import combinations
from pathlib import Path

import jax
import numpy as np
from sklearn.datasets import load_diabetes

import steppe
from steppe.report import style
from steppe.targets import variable_selection

OUT = Path("out/examples/variable_selection")


def main():
    data = load_diabetes()
    names = list(data.feature_names)
    pairs = list(combinations(range(len(names)), 2))
    design = np.hstack([data.data, *(data.data[:, [i]] * data.data[:, [j]] for i, j in pairs)])
    names += [f"{names[i]}·{names[j]}" for i, j in pairs]
    target = variable_selection(design, data.target, prior="independent", inclusion=0.1)
    run = steppe.sample(target, key=jax.random.key(0), until=steppe.until(ess=1000), num_draws=20_000)
    print(run.summary())
    chance = target.inclusion_probabilities(run.positions)
    order = np.argsort(-chance)
    for column in order[:8]:
        print(f"{names[column]:8} {chance[column]:.3f}")
    draw([names[column] for column in order[:15]], chance[order[:15]])


@style.apply()
def draw(names, chance):
    figure, (axes,) = style.make_row(1, 7.0, 3.6)
    axes.bar(names, chance, color=[style.FLAT_COLOR if one > 0.5 else style.OTHER_COLOR for one in chance])
    axes.set(ylabel="chance that it matters", ylim=(0, 1))
    axes.set_title("Diabetes: body mass index, s5 and blood pressure stand out")
    axes.tick_params(axis="x", rotation=60)
    print(*style.save(figure, OUT), sep="\n")


if __name__ == "__main__":
    main()
