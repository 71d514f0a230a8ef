"""Rivals: other packages on the same targets, where they are installed; none is a dependency."""

import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NamedTuple

import jax.numpy as jnp
import networkx as nx
import numpy as np

import steppe
from steppe.target import Target
from steppe.targets import Coloring, Formula, NodeSet
from steppe.targets.pairwise import Pairwise
from steppe.targets.qubo import MaxCut

# Work of the first call of a rival that cannot stop by itself; every next call is twice as long.
FIRST_SWEEPS, FIRST_STEPS = 64, 32
NUM_READS = 16
# Flips of a tabu search between two looks at the clock, and flips without gain after which it begins anew.
TABU_CHUNK, TABU_PATIENCE = 20_000, 20
# Weights that are not integers are rounded to this fraction for CP-SAT, which counts in integers.
CP_RESOLUTION = 1e-6


class Found(NamedTuple):
    """Positions that a method offers, the processor time it took, and whether it proved the best optimal."""

    positions: np.ndarray
    cpu_seconds: float
    is_proved: bool = False


Method = Callable[[Target, float, int, float | None], Found]


def anneal_dwave(target: Target, seconds: float, seed: int, goal: float | None) -> Found:
    """Simulated annealing of dwave-samplers, in calls that double until the time is used up."""
    from dwave.samplers import SimulatedAnnealingSampler  # pyright: ignore[reportMissingImports]

    assert isinstance(target, Pairwise)
    bqm = steppe.interop.to_bqm(target)
    sampler = SimulatedAnnealingSampler()

    def call(num_sweeps: int) -> np.ndarray:
        answer = sampler.sample(bqm, num_reads=NUM_READS, num_sweeps=num_sweeps, seed=seed + num_sweeps)
        columns = [answer.variables.index(site) for site in range(bqm.num_variables)]
        best = answer.record.sample[int(np.argmin(answer.record.energy)), columns]
        return (best + 1) / 2 if target.reads_bits_as_spins else best

    return call_again(target, call, FIRST_SWEEPS, seconds, goal)


def anneal_qqa(target: Target, seconds: float, seed: int, goal: float | None) -> Found:
    """`qqa.discrete_langevin`, its iSCO with its own defaults, in calls that double."""
    import qqa  # pyright: ignore[reportMissingImports]
    import torch  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    assert isinstance(target, Pairwise)
    graph = nx.Graph()
    graph.add_nodes_from(range(target.domain.num_sites))
    graph.add_edges_from(np.stack(target.interactions[:2], axis=1).tolist())
    make = qqa.MaximumIndependentSet if isinstance(target, NodeSet) else qqa.MaxCut
    problem = make(graph)

    def call(num_steps: int) -> np.ndarray:
        found = qqa.discrete_langevin(problem, num_steps=num_steps, seed=seed + num_steps, verbose=False)
        best = found.best_sol if found.polished_sol is None else found.polished_sol
        return best.reshape(-1).numpy().astype(float)

    return call_again(target, call, FIRST_STEPS, seconds, goal)


def call_again(
    target: Target, call: Callable[[int], np.ndarray], work: float, seconds: float, goal: float | None
) -> Found:
    """Call with twice as much work every time, and at last with what fills the time.

    Parameters
    ----------
    target, goal
        What is searched, and the log-density at which it may stop.
    call
        From an amount of work to a position.
    work
        The first amount.
    seconds
        Processor time.
    """
    best, value, begun = None, -np.inf, time.process_time()
    while True:
        called = time.process_time()
        position = np.asarray(call(int(work)), np.float32)
        now, reached = time.process_time(), float(target.log_density(jnp.asarray(position)))
        if best is None or reached > value:
            best, value = position, reached
        left, rate = seconds - (now - begun), work / (now - called)
        if left * rate < 1 or (goal is not None and is_reached(value, goal)):
            return Found(best[None], now - begun)
        work = 2 * work if left * rate > 6 * work else left * rate


def is_reached(value: float, goal: float) -> bool:
    """Whether a log-density reaches another one, up to float32."""
    return value >= goal - 1e-6 * max(1.0, abs(goal))


# ---- tabu search -------------------------------------------------------------------------------------------


def search_tabu(target: Target, seconds: float, seed: int, goal: float | None) -> Found:
    """One-flip tabu search on pairs of two levels: the best flip that was not made lately, again and again.

    A flipped site stays for `n / 100` and up to ten more flips; without a better state for a while, it begins
    anew from a disturbed best one (as Palubeckis 2004).
    """
    flip = _compile_tabu()
    form, pairs = target.pair_form, target.interactions
    assert form is not None
    assert form.values is not None
    assert pairs is not None
    num_sites = target.domain.num_sites
    order = np.argsort(pairs.ends, kind="stable")
    firsts = np.concatenate([[0], np.cumsum(np.bincount(pairs.ends, minlength=num_sites))])
    strengths = np.broadcast_to(np.asarray(form.strengths, float), len(order)) if pairs.places is None else (
        np.asarray(form.strengths, float)[np.asarray(pairs.places)]
    )  # fmt: skip
    field = np.broadcast_to(np.asarray(form.field, float), num_sites).copy()
    low, high = form.values
    state = np.random.default_rng(seed).integers(0, 2, num_sites).astype(np.int8)
    best = state.copy()
    arguments = firsts, np.asarray(pairs.sources)[order], np.ascontiguousarray(strengths[order]), field
    scale, offset = float(form.scale), float(form.offset)
    needed = np.inf if goal is None else (goal - 1e-6 * max(1.0, abs(goal)) - offset) / scale
    flip(*arguments, low, high, state.copy(), best.copy(), 0, seed, np.inf)  # compiles
    begun, value, call = time.process_time(), -np.inf, 0
    while time.process_time() - begun < seconds and value < needed:
        value = flip(*arguments, low, high, state, best, TABU_CHUNK, seed + 7919 * call, needed)
        call += 1
    points = np.asarray(target.domain.points(0))[:, 0]
    return Found(points[best.astype(int)][None].astype(np.float32), time.process_time() - begun)


def _compile_tabu() -> Callable[..., float]:
    import numba

    global _flip_tabu  # noqa: PLW0603
    if not hasattr(_flip_tabu, "py_func"):
        _flip_tabu = numba.njit(cache=False)(_flip_tabu)
    return _flip_tabu


def _flip_tabu(
    firsts: np.ndarray,
    sources: np.ndarray,
    strengths: np.ndarray,
    field: np.ndarray,
    low: float,
    high: float,
    state: np.ndarray,
    best: np.ndarray,
    num_flips: int,
    seed: int,
    needed: float,
) -> float:
    """Make some flips from a state, which is changed; return the best value and leave its state in `best`."""
    np.random.seed(seed)  # noqa: NPY002 - the generator of compiled code
    size = len(state)
    values = np.where(state == 1, high, low)
    sums = field.copy()
    for site in range(size):
        for slot in range(firsts[site], firsts[site + 1]):
            sums[site] += strengths[slot] * values[sources[slot]]
    value = 0.5 * np.sum(values * (sums + field))
    best_values = np.where(best == 1, high, low)
    best_value = np.sum(best_values * field)
    for site in range(size):
        for slot in range(firsts[site], firsts[site + 1]):
            best_value += 0.5 * strengths[slot] * best_values[site] * best_values[sources[slot]]
    free_at = np.zeros(size, np.int64)
    idle = 0
    for now in range(num_flips):
        chosen, most, ties = -1, -np.inf, 0
        for site in range(size):
            gain = (low + high - 2 * values[site]) * sums[site]
            if gain >= most and (free_at[site] <= now or value + gain > best_value + 1e-9):
                ties = 1 if gain > most else ties + 1
                if ties == 1 or np.random.random() * ties < 1:  # noqa: NPY002
                    chosen = site
                most = gain
        if chosen < 0:
            continue
        change = low + high - 2 * values[chosen]
        value += change * sums[chosen]
        values[chosen] += change
        state[chosen] = 1 - state[chosen]
        free_at[chosen] = now + 1 + size // 100 + np.random.randint(0, 10)  # noqa: NPY002
        for slot in range(firsts[chosen], firsts[chosen + 1]):
            sums[sources[slot]] += strengths[slot] * change
        idle += 1
        if value > best_value + 1e-9:
            best_value, idle = value, 0
            best[:] = state
            if best_value >= needed:
                return best_value
        if idle > TABU_PATIENCE * size:
            idle = 0
            for _ in range(size // 10):
                other = np.random.randint(0, size)  # noqa: NPY002
                change = low + high - 2 * values[other]
                value += change * sums[other]
                values[other] += change
                state[other] = 1 - state[other]
                for slot in range(firsts[other], firsts[other + 1]):
                    sums[sources[slot]] += strengths[slot] * change
    return best_value


# ---- CP-SAT ------------------------------------------------------------------------------------------------


def solve_cpsat(target: Target, seconds: float, seed: int, goal: float | None) -> Found:
    """OR-tools' CP-SAT with one worker, on formulas, sets of nodes and colourings."""
    from ortools.sat.python import cp_model  # pyright: ignore[reportMissingImports]

    model, read = _model(cp_model, target)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    begun, is_over = time.process_time(), threading.Event()

    def watch() -> None:
        while not is_over.wait(0.01):
            if time.process_time() - begun > seconds:
                solver.stop_search()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    status = solver.solve(model)
    is_over.set()
    watcher.join()
    used = time.process_time() - begun
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Found(
            np.asarray(target.domain.from_levels(np.zeros(target.domain.num_sites, int)))[None], used
        )
    return Found(np.asarray(read(solver))[None], used, status == cp_model.OPTIMAL)


def _model(cp: ModuleType, target: Target) -> tuple[Any, Callable[[Any], Any]]:
    model, size = cp.CpModel(), target.domain.num_sites
    if isinstance(target, Coloring):
        marks = [[model.new_bool_var("") for _ in range(target.domain.max_levels)] for _ in range(size)]
        for node in marks:
            model.add_exactly_one(node)
        broken = []
        for first, second in _each_pair(target):
            broken.append(model.new_bool_var(""))
            for one, other in zip(marks[first], marks[second], strict=True):
                model.add_bool_or(one.negated(), other.negated(), broken[-1])
        model.minimize(sum(broken))
        return model, lambda solver: target.domain.from_levels(
            np.asarray([int(np.argmax([solver.value(mark) for mark in node])) for node in marks])
        )
    bits = [model.new_bool_var("") for _ in range(size)]
    if isinstance(target, Formula):
        variables, signs = (np.asarray(array) for array in target.literals)
        terms = []
        for clause, polarity in zip(variables, signs, strict=True):
            literals = [
                bits[site] if sign > 0 else bits[site].negated()
                for site, sign in zip(clause, polarity, strict=True)
                if sign
            ]
            terms.append(model.new_bool_var(""))
            model.add_bool_or(*literals, terms[-1].negated())
        weights = np.asarray(target.weights, float)
    else:
        assert isinstance(target, NodeSet)
        for first, second in _each_pair(target):
            model.add_bool_or(bits[first].negated(), bits[second].negated())
        terms, weights = bits, np.broadcast_to(np.asarray(target.weights, float), size)
    unit = 1.0 if (weights == np.round(weights)).all() else CP_RESOLUTION
    model.maximize(sum(round(weight / unit) * term for weight, term in zip(weights, terms, strict=True)))
    is_rest = isinstance(target, NodeSet) and target.marks_rest
    return model, lambda solver: np.asarray([solver.value(bit) != is_rest for bit in bits], np.float32)


def _each_pair(target: Pairwise) -> list[tuple[int, int]]:
    sources, ends, _ = target.interactions
    return [
        (first, second)
        for first, second in zip(np.asarray(sources).tolist(), np.asarray(ends).tolist(), strict=True)
        if first < second
    ]


# ---- which there are ---------------------------------------------------------------------------------------


def _has_two_levels(target: Target) -> bool:
    form = target.pair_form
    return form is not None and form.values is not None


def _is_set_or_cut(target: Target) -> bool:
    return isinstance(target, MaxCut) or (isinstance(target, NodeSet) and not target.marks_rest)


class Rival(NamedTuple):
    """A method of another package: the module it needs, what it takes, and how it is called."""

    module: str
    takes: Callable[[Target], bool]
    search: Method


RIVALS: dict[str, Rival] = {
    "dwave": Rival("dwave.samplers", _has_two_levels, anneal_dwave),
    "qqa": Rival("qqa", _is_set_or_cut, anneal_qqa),
    "cpsat": Rival("ortools", lambda target: isinstance(target, (Formula, NodeSet, Coloring)), solve_cpsat),
    "tabu": Rival("numba", _has_two_levels, search_tabu),
}


def list_rivals(target: Target) -> list[str]:
    """Names of the rivals that are installed and take a target."""
    return [name for name, rival in RIVALS.items() if rival.takes(target) and _is_installed(rival.module)]


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it is part of
        return False
