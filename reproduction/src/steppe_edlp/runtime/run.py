"""Time per full update: plain, entropic and Gibbs-like samplers, with model evaluations counted."""

import time
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steppe import samplers
from steppe.domain import Binary
from steppe.intervals import LEVEL
from steppe.kernel.compose import Recipe, Sampler
from steppe.results import Cell, Column, Estimate, Figure, Table, Verdict
from steppe.target import Target
from steppe.targets.binary_network import binary_network
from steppe_edlp.bnn.tables import EMBEDDED, Rows, load
from steppe_edlp.judging import Question, joint_note, judged, judged_together
from steppe_edlp.request import Findings, Request
from steppe_edlp.wording import settings_of, spoken
from steppe_edlp.work import Content, Work

RECIPES = {
    "gibbs": samplers.gibbs(),
    "gwg": samplers.gwg(),
    "dula": samplers.dula(0.1),
    "edula": samplers.edula(0.1, 0.0001, 2.0),
    "edula_glu": samplers.edula_glu(0.1, 2.0),
    "dmala": samplers.dmala(0.1),
    "edmala": samplers.edmala(0.1, 0.0001, 4.0),
    "edmala_glu": samplers.edmala_glu(0.1, 4.0),
}
# Seconds per call in the paper's figure (Adult); its code makes half an update per call of a GLU sampler.
PAPER_SECONDS = {
    "gibbs": 1.16,
    "gwg": 3.72,
    "dula": 1.17,
    "edula": 1.17,
    "edula_glu": 0.69,
    "dmala": 3.58,
    "edmala": 3.73,
    "edmala_glu": 1.57,
}
CALLS_PER_UPDATE = {"edula_glu": 2, "edmala_glu": 2}
HALF_LESS, NEGLIGIBLE = 0.75, 1.1


class Size(NamedTuple):
    """Hidden units, networks side by side, rounds of measuring, and processor seconds per measurement."""

    num_hidden: int
    num_chains: int
    num_rounds: int
    seconds: float


SIZES = {"quick": Size(50, 10, 15, 0.05), "full": Size(100, 50, 15, 5.0)}
QUICK_ROWS = 2_000


def run(request: Request, work: Work) -> Findings:
    """Carry out the experiment on Adult where data are given, else on a small table."""
    size = SIZES[request.scale]
    name = EMBEDDED if request.data is None else "adult"
    rows = load(name, QUICK_ROWS if request.is_quick else None, request)
    recipes = {name: RECIPES[name] for name in request.chosen(RECIPES)}
    counted = {name: evaluations(recipe) for name, recipe in recipes.items()}
    seconds = work.all({"timings": partial(_timed, rows, recipes, size, request.seed)}, at_once=1)["timings"]
    verdicts = _verdicts(seconds)
    return Findings(
        verdicts=verdicts,
        tables=[_table(recipes, seconds, counted)],
        figures=[_figure(seconds)],
        arrays={f"seconds_{name}": seconds[name] for name in recipes},
        settings={
            "table": name,
            "rows": len(rows.train),
            "hidden units": size.num_hidden,
            "networks side by side": size.num_chains,
            "rounds": size.num_rounds,
        },
        notes=[*_notes(), *joint_note(verdicts)],
        seeds=[request.seed],
        data=rows.digests,
    )


# ---- measuring -------------------------------------------------------------------------------------


def evaluations(recipe: Recipe) -> int | None:
    """Evaluations of U and its gradient in one full update, counted as it runs; `None` without a gradient."""
    calls = []

    def log_density(position: Any) -> Any:
        jax.debug.callback(lambda _: calls.append(1), jnp.sum(position))
        return jnp.sum(position * jnp.arange(6.0))

    if not recipe.uses_gradient:
        return None
    sampler = recipe.build(Target(log_density, Binary(6)), audit=False)
    state = sampler.init(jnp.zeros(6), jax.random.key(0))
    jax.block_until_ready(state)
    jax.effects_barrier()
    before = len(calls)
    jax.block_until_ready(sampler.step(jax.random.key(1), state))
    jax.effects_barrier()
    return len(calls) - before


def _timed(rows: Rows, recipes: Mapping[str, Recipe], size: Size, seed: int) -> Content:
    """Processor seconds per full update of all networks, by sampler; one entry per round."""
    target = binary_network(rows.train.x, rows.train.y, size.num_hidden, preset="published")
    key = jax.random.key(seed)
    starts = target.domain.draw(key, (size.num_chains,))
    built = {name: recipe.build(target, audit=False) for name, recipe in recipes.items()}
    states = {name: jax.vmap(sampler.init)(starts) for name, sampler in built.items()}
    steps = {}
    for name, sampler in built.items():  # compile, then find how many steps a measurement takes
        _seconds(sampler, states[name], key, 1)
        steps[name] = max(1, round(size.seconds / max(_seconds(sampler, states[name], key, 2) / 2, 1e-6)))
    found: dict[str, list[float]] = {name: [] for name in built}
    for number in range(size.num_rounds):
        for name in list(built)[:: 1 if number % 2 else -1]:  # forth and back: drift falls on all alike
            found[name].append(_seconds(built[name], states[name], key, steps[name]) / steps[name])
    return {name: np.asarray(values) for name, values in found.items()}


def _seconds(sampler: Sampler, states: Any, key: Any, num_steps: int) -> float:
    begun = time.process_time()
    jax.block_until_ready(_steps(sampler, states, key, num_steps))
    return time.process_time() - begun


@jax.jit
def _steps(sampler: Sampler, states: Any, key: Any, num_steps: Any) -> Any:
    num_chains = len(states.log_density)

    def step(index: Any, states: Any) -> Any:
        keys = jax.random.split(jax.random.fold_in(key, index), num_chains)
        return jax.vmap(sampler.step)(keys, states)[0]

    return jax.lax.fori_loop(0, num_steps, step, states)


def median_estimate(values: np.ndarray, level: float = LEVEL) -> Estimate:
    """Median with an interval between order statistics that covers it at least at a level.

    Parameters
    ----------
    values
        Independent measurements; below six there is no interval of 95 %.
    level
        Share of intervals that cover the true median, at least.
    """
    from scipy import stats

    ordered = np.sort(np.asarray(values, float))
    number = len(ordered)
    skipped = int(stats.binom.ppf((1 - level) / 2, number, 0.5))  # P(fewer than this lie below) is too small
    if skipped < 1:
        return Estimate(value=float(np.median(ordered)))
    return Estimate(
        value=float(np.median(ordered)),
        low=float(ordered[skipped - 1]),
        high=float(ordered[number - skipped]),
    )


# ---- verdicts and tables ---------------------------------------------------------------------------


def _verdicts(seconds: Content) -> list[Verdict]:
    questions: list[Question] = [
        partial(_glu_verdict, name, seconds)
        for name in ("edula", "edmala")
        if name in seconds and f"{name}_glu" in seconds
    ]
    if "edula" in seconds and "dula" in seconds:
        questions.append(partial(_edula_verdict, seconds))
    if "edmala" in seconds and "dmala" in seconds:
        questions.append(partial(_edmala_verdict, seconds))
    return judged_together(questions)


def _edula_verdict(seconds: Content, level: float) -> Verdict:
    ratio = median_estimate(seconds["edula"] / seconds["dula"], level)
    return judged(
        "EDULA takes hardly longer than DULA.",
        _minus(NEGLIGIBLE, ratio),
        f"EDULA takes {spoken(ratio, 2)} times as long; up to {NEGLIGIBLE} counts as hardly.",
    )


def _edmala_verdict(seconds: Content, level: float) -> Verdict:
    ratio = median_estimate(seconds["edmala"] / seconds["dmala"], level)
    return judged(
        "EDMALA takes markedly longer than DMALA, because of its joint decision.",
        _minus(NEGLIGIBLE, ratio, -1.0),
        f"EDMALA takes {spoken(ratio, 2)} times as long; more than {NEGLIGIBLE} counts as markedly. Both "
        "evaluate the model once.",
    )


def _glu_verdict(name: str, seconds: Content, level: float) -> Verdict:
    ratio = median_estimate(seconds[f"{name}_glu"] / seconds[name], level)
    return judged(
        f"The Gibbs-like update ({name}_glu) takes about half the time of {name}.",
        _minus(HALF_LESS, ratio),
        f"A full update of position and center takes {spoken(ratio, 2)} times as long. The paper's figure "
        "counts calls, and its code makes half an update per call: by that count it is "
        f"{ratio.value / 2:.2f}. Below {HALF_LESS} would count as about half.",
    )


def _minus(limit: float, ratio: Estimate, sign: float = 1.0) -> Estimate:
    """`sign · (limit − ratio)` with its interval."""
    ends = [None if end is None else sign * (limit - end) for end in (ratio.low, ratio.high)]
    low, high = (ends[0], ends[1]) if sign < 0 else (ends[1], ends[0])
    return Estimate(value=sign * (limit - ratio.value), low=low, high=high)


def _table(recipes: Mapping[str, Recipe], seconds: Content, counted: Mapping[str, int | None]) -> Table:
    rows: list[dict[str, Cell]] = []
    for name, recipe in recipes.items():
        calls = CALLS_PER_UPDATE.get(name, 1)
        found = median_estimate(1e3 * seconds[name])
        rows.append(
            {
                "sampler": name,
                "settings": settings_of(recipe),
                "evaluations": counted[name],
                "milliseconds": found,
                "per_call": found.value / calls,
                "relative": _relative(name, seconds),
                "paper": calls * PAPER_SECONDS[name],
                "paper_per_call": PAPER_SECONDS[name],
            }
        )
    return Table(
        key="timings",
        title="Processor time of a full update of all networks",
        columns=[
            Column(key="sampler", label="sampler"),
            Column(key="settings", label="settings"),
            Column(key="evaluations", label="evaluations per update", digits=0),
            Column(key="milliseconds", label="full update", unit="ms", better="lower"),
            Column(key="relative", label="relative to dula", digits=2, better="lower"),
            Column(key="per_call", label="per call, as the paper counts", unit="ms"),
            Column(key="paper", label="full update, paper", unit="s", digits=2),
            Column(key="paper_per_call", label="per call, paper", unit="s", digits=2),
        ],
        rows=rows,
        notes=[
            (
                "Medians over interleaved rounds, with the interval between order statistics that covers "
                "the median in at least 95 % of cases. gibbs looks at one site and evaluates no gradient."
            ),
        ],
    )


def _relative(name: str, seconds: Content) -> Cell:
    return median_estimate(seconds[name] / seconds["dula"]) if "dula" in seconds else None


def _figure(seconds: Content) -> Figure:
    pairs = (("edula", "dula"), ("edmala", "dmala"), ("edula_glu", "edula"), ("edmala_glu", "edmala"))
    ratios = [
        f"{one} takes {median_estimate(seconds[one] / seconds[other]).value:.2f} times as long as {other}"
        for one, other in pairs
        if one in seconds and other in seconds
    ]
    return Figure(
        key="timings",
        title="Time per full update",
        caption="Medians with intervals, relative to dula; hollow diamonds: the paper's seconds per call, "
        f"relative to its dula. Per full update {', '.join(ratios)}. All but gibbs make one evaluation.",
        alternative="Horizontal bars of time relative to dula, one per sampler.",
    )


def _notes() -> list[str]:
    return [
        (
            "An update is full when position and center have both moved. The paper times calls, and a call "
            "of a GLU sampler in its code moves only one of them: half of its calls are a free Gaussian "
            "draw, which halves the mean and explains the “negative lower bounds” of its error bars."
        ),
        (
            "Here Metropolis samplers keep value and gradient of the current state and evaluate the model "
            "once per step; the authors' code evaluates it four times forward and twice backward, so its "
            "corrected samplers take three times as long as its uncorrected ones. Ours do not."
        ),
        (
            "The paper's seconds cannot come out: they are those of other code on another machine, on all "
            "rows of Adult. Ratios between samplers are what can be compared."
        ),
    ]
