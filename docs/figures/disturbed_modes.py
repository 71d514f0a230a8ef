"""Draw docs/images/disturbed-modes.svg: what is left of two modes as more of their bits are wrong.

    python docs/figures/disturbed_modes.py

The target mixes a narrow and a wide component on ten bits (`planted_mixture`); values are exact sums.
"""

from pathlib import Path

import jax
import numpy as np

import steppe
from steppe.report import style
from steppe.targets import planted_mixture

OUT = Path(__file__).parents[1] / "images" / "disturbed-modes"
RATES = np.linspace(0.0, 0.3, 31)


@style.apply()
def main():
    target = planted_mixture().target
    modes = steppe.find_flat_modes(target, key=jax.random.key(0), budget=20_000)
    values = np.asarray(jax.vmap(target.log_density)(target.domain.enumerate()))
    states = np.asarray(target.domain.enumerate())
    figure, (axes,) = style.make_row(1, 7.0, 3.2)
    for mode, color, name, shift in (
        (modes.best, style.SHARP_COLOR, "highest mode", (-78, -12)),
        (modes.robust, style.FLAT_COLOR, "most robust mode", (6, 6)),
    ):
        distance = (states != np.asarray(mode.position)).sum(axis=1)
        size = states.shape[1]
        curve = [values @ (rate**distance * (1 - rate) ** (size - distance)) for rate in RATES]
        axes.plot(100 * RATES, curve, color=color, lw=2)
        style.draw_label(axes, name, (100 * RATES[20], curve[20]), shift)
        axes.plot(0, curve[0], "o", color=color)
    axes.set(xlabel="chance that a bit is wrong, %", ylabel="expected log-density")
    axes.set_title("A higher answer, and one that survives")
    for path in style.save(figure, OUT):
        if path.suffix == ".png":
            path.unlink()


if __name__ == "__main__":
    main()
