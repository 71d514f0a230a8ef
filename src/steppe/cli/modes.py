"""`steppe modes`: find modes that stay good after a disturbance, from the command line."""

from pathlib import Path

import jax
import numpy as np

from steppe.cli.output import AsJson, print_json, show
from steppe.cli.resolve import find_target
from steppe.modes.find import DEFAULT_BUDGET, find_flat_modes
from steppe.report.present_modes import save_modes


def modes(
    target: str,
    *,
    seed: int = 0,
    flips: int | None = None,
    flip_rate: float | None = None,
    risk: str = "mean",
    max_loss: float | None = None,
    within: float | None = None,
    num_modes: int = 10,
    separation: int | None = None,
    budget: int = DEFAULT_BUDGET,
    plot: Path | None = None,
    out: Path | None = None,
    as_json: AsJson = False,
) -> None:
    """Find modes that are good, and still good after a disturbance.

    Example: `steppe modes paper_bernoulli --flips 1 --plot modes`

    Parameters
    ----------
    target
        Built-in target, `module:function` that returns a `steppe.Target`, or a TOML run file that names
        either with its parameters.
    seed
        Random seed.
    flips
        The disturbance: so many random sites take other levels; on permutations so many random moves.
    flip_rate
        The disturbance: every site takes another level with this probability; a tenth by default.
    risk
        What is made of the values after it: mean, worst, quantile:0.05 or cvar:0.1.
    max_loss
        How many nats below the best mode an answer may lie.
    within
        The same as a fraction of what the best has over random states.
    num_modes
        How many modes to show at most.
    separation
        Modes differ in at least so many sites.
    budget
        Evaluations of the target to make at most.
    plot
        Draw values against the strength of the disturbance to this path, as PNG and SVG.
    out
        Write table and figure to this directory, for `steppe report`.
    as_json
        Print the table as JSON.
    """
    found = find_flat_modes(
        find_target(target),
        key=jax.random.key(seed),
        flips=flips,
        flip_rate=flip_rate,
        risk=risk,
        max_loss=max_loss,
        within=within,
        num_modes=num_modes,
        separation=separation,
        budget=budget,
    )
    if plot is not None:
        found.plot(plot)
    if out is not None:
        save_modes(found, out)
    if as_json:
        print_json(
            {
                "disturbance": found.disturbance,
                "risk": found.risk,
                "explanation": found.explain(),
                "num_evaluations": found.num_evaluations,
                "modes": found.to_records(),
                "curves": {
                    "label": found.curves.label,
                    "strengths": found.curves.strengths.tolist(),
                    "modes": [rank + 1 for rank in found.curve_modes],
                    "values": [
                        [value if np.isfinite(value) else None for value in row]
                        for row in found.curves.values.tolist()
                    ],
                },
            }
        )
    else:
        show(found)
