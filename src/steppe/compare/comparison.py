"""`compare`: samplers on one target, with equal budgets and each tuned by the same rule."""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import jax
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.compare.advice import advise
from steppe.compare.measurement import Measurement, measure, spend
from steppe.diagnostics.exact import target_distribution
from steppe.diagnostics.states import is_exact_wanted
from steppe.errors import RunError
from steppe.kernel.compose import Recipe
from steppe.presented import Presented
from steppe.run.progress import count_bar
from steppe.target import Target
from steppe.tune.grids import STEP_SIZES, replace_parameter
from steppe.tune.search import tune
from steppe.tune.trial import adjust
from steppe.tune.tuned import Tuned
from steppe.validation import choice, count, random_key

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from steppe.results import Results

Rule = Literal["ess", "acceptance", "none"]

DEFAULT_SEEDS = 20
DEFAULT_BUDGET = 20_000
NUM_TUNING_CHAINS = 8
LEAST_TUNING_STEPS = 60


@dataclasses.dataclass(frozen=True)
class Comparison(Presented):
    """What came out of `compare`.

    Attributes
    ----------
    results
        Tables with intervals, notes, settings and provenance: one `results.json`.
    recipes
        The recipes as they ran, with the numbers that tuning chose.
    tuning
        How they were chosen, for those that have a step size.
    advice
        Who wins, by how much and whether that is more than noise; the last line is code to go on with.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.paper_bernoulli()
    >>> compared = steppe.compare(
    ...     target, [steppe.dmala(), steppe.gwg()], key=jax.random.key(0), seeds=4, budget=1000
    ... )
    >>> sorted(compared.recipes)
    ['dmala', 'gwg']
    >>> compared.advice.splitlines()[-1].startswith("Go on with: run = steppe.sample(target, steppe.")
    True
    """

    results: "Results"
    recipes: dict[str, Recipe]
    tuning: dict[str, Tuned]
    advice: str

    def present(self) -> "Results":
        """Return the results."""
        return self.results

    def figures(self) -> dict[str, "Figure"]:
        """Draw the figures, by key."""
        from steppe.report.present_comparison import draw_comparison

        return draw_comparison(self.results)

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Draw effective draws per 1000 evaluations with their intervals, and save it if a path is given."""
        from steppe.report.style import save

        figure = self.figures()["efficiency"]
        if path is not None:
            save(figure, Path(path))
        return figure

    def save(self, directory: str | Path) -> Path:
        """Write `results.json` and the figures, as PNG and SVG; returns the path of the former."""
        from steppe.report.style import save

        path = self.results.save(Path(directory))
        for key, figure in self.figures().items():
            save(figure, Path(directory) / key)
        return path


@checked(RunError)
def compare(
    target: Target,
    recipes: Sequence[Recipe] | Mapping[str, Recipe],
    *,
    key: Array,
    seeds: int = DEFAULT_SEEDS,
    budget: int = DEFAULT_BUDGET,
    tuned_by: Rule = "ess",
    tuning_budget: int | None = None,
    initial: ArrayLike | None = None,
    name: str = "comparison",
    progress: bool | None = None,
) -> Comparison:
    """Run samplers on a target with equal budgets and put their statistics side by side.

    Parameters
    ----------
    target
        What to sample.
    recipes
        What to compare: recipes, or recipes by the label they shall have.
    key
        Random key; the same key gives the same draws.
    seeds
        Independent chains per recipe, at least 2. Intervals are over them.
    budget
        Evaluations of the model per seed, a fifth of them warm-up. What counts as an evaluation is said in
        `steppe.kernel.cost`.
    tuned_by
        The rule by which every step size is chosen: `"ess"`, most effective draws per evaluation on a grid;
        `"acceptance"`, an acceptance rate of 0.574; `"none"`, the numbers given. An unadjusted recipe gets
        the step size of its adjusted twin, because its effective draws grow with its bias. Other numbers, and
        recipes without step size, run as they are given.
    tuning_budget
        Evaluations for tuning a recipe, on another key; as many as all seeds have by default.
    initial
        Starting positions, one per seed; uniform random ones by default.
    name
        Name of the results.
    progress
        Show a progress bar; by default when standard error is a terminal.

    Returns
    -------
    Comparison
        Tables (`print` it, or `.results`), `.advice`, figures, and `.save(directory)`.

    Notes
    -----
    Effective draws are those of the worse of the log-density and the distance from the best state met.
    One-site changes are measured on 16 draws per seed, beyond the budget.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((4, 4), coupling=0.2)
    >>> recipes = {"careful": steppe.dmala(step_size=0.5), "bold": steppe.dmala(step_size=4.0)}
    >>> compared = steppe.compare(
    ...     target, recipes, key=jax.random.key(0), seeds=4, budget=1000, tuned_by="none"
    ... )
    >>> compared.advice.startswith("bold wins")
    True
    >>> print(compared.advice.splitlines()[-1])
    Go on with: run = steppe.sample(target, steppe.dmala(step_size=4), key=key, adapt=False)
    """
    started, clock = time.strftime("%Y-%m-%dT%H:%M:%S%z"), time.perf_counter()
    entries = _label(recipes)
    rule, root = choice("compare(tuned_by=...)", tuned_by, Rule), random_key("compare", key)
    num_seeds, total = _check_seeds(seeds), count("compare(budget=...)", budget)
    for label, recipe in entries.items():
        recipe.build(target)  # refuses what does not fit, before anything runs
        spend(label, recipe, target, total)
    if is_exact_wanted(target, None):
        target_distribution(target)  # likewise
    for_tuning = (
        num_seeds * total if tuning_budget is None else count("compare(tuning_budget=...)", tuning_budget)
    )
    tuning: dict[str, Tuned] = {}
    measured: dict[str, Measurement] = {}
    tune_key, run_key = jax.random.split(root)
    with count_bar("comparing", 2 * len(entries), progress) as report:
        for index, (label, recipe) in enumerate(entries.items()):
            found = _tune_step_size(recipe, target, jax.random.fold_in(tune_key, index), rule, for_tuning)
            if found is not None:
                tuning[label] = found
            ready = recipe if found is None else replace_parameter(recipe, "step_size", found.best.value)
            report(2 * index + 1)
            measured[label] = measure(
                ready,
                target,
                jax.random.fold_in(run_key, index),
                spend(label, ready, target, total),
                num_seeds,
                initial,
                is_exact_wanted(target, None),
            )
            report(2 * index + 2)
    from steppe.report.present_comparison import Request, present_comparison

    request = Request(name, target, num_seeds, total, rule, for_tuning, started, clock)
    advice = advise(measured, num_seeds)
    results = present_comparison(request, measured, tuning, advice)
    recipes = {label: m.recipe for label, m in measured.items()}
    return Comparison(results, recipes, tuning, "\n".join(advice))


def _tune_step_size(recipe: Recipe, target: Target, key: Array, rule: str, budget: int) -> Tuned | None:
    """Tune the step size, of an unadjusted recipe that of its adjusted twin."""
    if rule == "none" or "step_size" not in recipe.parameters:
        return None
    twin = adjust(recipe)
    per_step = twin.build(target, audit=False).evaluations_per_step
    num_steps = max(LEAST_TUNING_STEPS, int(budget / (per_step * NUM_TUNING_CHAINS * len(STEP_SIZES))))
    return tune(
        twin,
        target,
        key=key,
        goal=rule,  # pyright: ignore[reportArgumentType]
        num_chains=NUM_TUNING_CHAINS,
        num_warmup=num_steps // 3,
        num_draws=num_steps - num_steps // 3,
        progress=False,
    )


def _label(recipes: Sequence[Recipe] | Mapping[str, Recipe]) -> dict[str, Recipe]:
    """Recipes by their labels; refuses labels that are not their own."""
    is_labelled = isinstance(recipes, Mapping)
    labelled = dict(recipes) if is_labelled else {recipe.name: recipe for recipe in recipes}
    if not labelled:
        raise RunError("`compare(target, recipes)` needs recipes such as `[steppe.dmala(), steppe.gibbs()]`.")
    if len(labelled) < len(recipes):
        raise RunError(
            "`compare(target, recipes)` got several recipes of one name; label them, for example "
            "`{'tight': edmala_glu(), 'loose': edmala_glu(coupling_variance=4.0)}`."
        )
    return labelled


def _check_seeds(seeds: int) -> int:
    if count("compare(seeds=...)", seeds) < 2:
        raise RunError(f"`compare(seeds={seeds})` leaves no interval to state; use at least 2, better 20.")
    return int(seeds)
