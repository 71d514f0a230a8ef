"""`steppe compare`: samplers on one target with equal budgets, from the command line."""

from pathlib import Path

import jax

from steppe.cli.output import AsJson, print_json, show
from steppe.cli.resolve import find_target, make_recipe
from steppe.compare.comparison import DEFAULT_BUDGET, DEFAULT_SEEDS, Rule
from steppe.compare.comparison import compare as compared


def compare(
    target: str,
    *,
    samplers: str = "dula,dmala,edmala,edmala_glu,gwg,gibbs",
    seeds: int = DEFAULT_SEEDS,
    budget: int = DEFAULT_BUDGET,
    tuned_by: Rule = "ess",
    tuning_budget: int | None = None,
    seed: int = 0,
    out: Path | None = None,
    as_json: AsJson = False,
) -> None:
    """Run samplers with equal budgets, each tuned by the same rule, and compare them.

    Example: `steppe compare paper_bernoulli --samplers dmala,gwg,gibbs --seeds 20 --budget 5000`

    Parameters
    ----------
    target
        Built-in target, `module:function` that returns a `steppe.Target`, or a TOML run file that names
        either with its parameters.
    samplers
        Names of samplers, separated by commas.
    seeds
        Independent chains per sampler.
    budget
        Evaluations of the model per seed.
    tuned_by
        Rule by which step sizes are chosen.
    tuning_budget
        Evaluations for tuning one sampler; as many as all its seeds have by default.
    seed
        Random seed of it all.
    out
        Directory for `results.json` and the figures.
    as_json
        Print the results as JSON.
    """
    names = [name.strip() for name in samplers.split(",") if name.strip()]
    found = compared(
        find_target(target),
        {name: make_recipe(name, {}) for name in names},
        key=jax.random.key(seed),
        seeds=seeds,
        budget=budget,
        tuned_by=tuned_by,
        tuning_budget=tuning_budget,
    )
    if out is not None:
        found.save(out)
    if as_json:
        print_json(found.results.model_dump(mode="json"))
    else:
        show(found)
