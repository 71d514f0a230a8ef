"""`steppe tune`: choose a hyper-parameter of a sampler for a target from the command line."""

from pathlib import Path

import jax

from steppe.cli.output import AsJson, print_json, show
from steppe.cli.resolve import find_target, make_recipe
from steppe.run.adaptation import TARGET_ACCEPTANCE
from steppe.tune.search import Goal
from steppe.tune.search import tune as tuned_recipe


def tune(
    target: str,
    *,
    recipe: str = "dmala",
    goal: Goal = "acceptance",
    parameter: str | None = None,
    acceptance: float = TARGET_ACCEPTANCE,
    loss: float | None = None,
    seed: int = 0,
    num_chains: int = 8,
    num_warmup: int = 500,
    num_draws: int = 1000,
    out: Path | None = None,
    as_json: AsJson = False,
) -> None:
    """Choose a hyper-parameter of a sampler for a target, by a stated rule, from short runs.

    Example: `steppe tune paper_bernoulli --recipe dmala --goal ess`

    Parameters
    ----------
    target
        Built-in target, `module:function` that returns a `steppe.Target`, or a TOML run file that names
        either with its parameters.
    recipe
        Sampler.
    goal
        Reach an acceptance rate, most effective draws per evaluation, or a stated loss in E[U].
    parameter
        Which hyper-parameter to move; the step size by default, and for a loss the strength or the replicas.
    acceptance
        Wanted acceptance rate.
    loss
        Wanted loss in E[U], in nats.
    seed
        Random seed.
    num_chains
        Chains of one trial.
    num_warmup
        Steps of each of them before its first draw.
    num_draws
        Draws of each of them.
    out
        Directory for `tuning.png` and `tuning.svg`.
    as_json
        Print everything tried as JSON.
    """
    found = tuned_recipe(
        make_recipe(recipe, {}),
        find_target(target),
        key=jax.random.key(seed),
        goal=goal,
        parameter=parameter,
        acceptance=acceptance,
        loss=loss,
        num_chains=num_chains,
        num_warmup=num_warmup,
        num_draws=num_draws,
    )
    if out is not None:
        found.plot(out / "tuning")
    if as_json:
        print_json(found.to_dict())
    else:
        show(found)
