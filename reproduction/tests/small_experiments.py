"""Experiments made small for tests, and their claims judged by made-up rows."""

from steppe_edlp.claims import judge_claims
from steppe_edlp.experiment import EXPERIMENTS
from steppe_edlp.request import Found
from steppe_edlp.tables import complete_rows


def shrink(name, **size):
    """The experiment with another size, the same for every protocol and scale; constants may change too."""
    experiment = EXPERIMENTS[name]
    constants = {key: size.pop(key) for key in list(size) if key in experiment.constants}
    usual = experiment.sizes.get("sound", experiment.sizes)["quick"]
    sizes = {scale: {**usual, **size} for scale in ("quick", "full")}
    return experiment.model_copy(update={"sizes": sizes, "constants": {**experiment.constants, **constants}})


def judge_rows(name, request, rows, facts=None, conditions=()):
    """Verdicts of an experiment on rows that were made up."""
    experiment = EXPERIMENTS[name]
    facts = {"size": experiment.size(request), **(facts or {})}
    rows = complete_rows(experiment, Found(rows=rows))
    return judge_claims(experiment.claims, rows, facts, request.conditions | set(conditions))[0]
