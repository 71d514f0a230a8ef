"""`steppe modes`: look for flat modes from the command line."""

from pathlib import Path

import jax

from steppe.cli.output import AsJson, print_json, show
from steppe.cli.resolve import find_target
from steppe.modes.find import DEFAULT_BUDGET, Flatness, find_flat_modes


def modes(
    target: str,
    *,
    seed: int = 0,
    num_modes: int = 10,
    budget: int = DEFAULT_BUDGET,
    flatness: Flatness = "gap",
    separation: int | None = None,
    plot: Path | None = None,
    as_json: AsJson = False,
) -> None:
    """Look for modes that are both high and flat, and rank them.

    Example: `steppe modes paper_bernoulli --plot modes`

    Parameters
    ----------
    target
        Built-in target, `module:function` that returns a `steppe.Target`, or a TOML run file that names
        either with its parameters.
    seed
        Random seed.
    num_modes
        How many modes to show at most.
    budget
        Evaluations of the target to make at most.
    flatness
        Rank by one-site gaps or by local entropy.
    separation
        Modes that differ in fewer sites are one.
    plot
        Draw height against roughness to this path, as PNG and SVG.
    as_json
        Print the table as JSON.
    """
    found = find_flat_modes(
        find_target(target),
        key=jax.random.key(seed),
        num_modes=num_modes,
        budget=budget,
        flatness=flatness,
        separation=separation,
    )
    if plot is not None:
        found.plot(plot)
    if as_json:
        print_json({"num_evaluations": found.num_evaluations, "modes": found.to_records()})
    else:
        show(found)
