"""Trying mutants: each replaces a module, and the fast tests that touch its function run until one fails.

Tests that reach the changed line come first, the quick ones first of all, up to a limit of CPU time; a test
that runs for ever, or a process that dies, has noticed the mutant too. Every outcome is one line of a file,
so a trial that is stopped goes on where it was.
"""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from scipy.stats import norm

from .operators import Mutant, list_mutants
from .patch import find_outermost_function
from .plugins import KILLER
from .touched import Touch, list_files, list_imported, read_map
from .tree import HOME, TREE, list_modules, mutated, read_module
from .warm import KILLED_BY_CLOCK, Request, Server, run_tests

FILE = HOME / "outcomes.jsonl"
# Tests of one mutant may take so long together, by the time they took without it.
MAX_TEST_SECONDS = 5.0
# A mutant that takes so much longer is stopped.
SLOWER, STARTING_SECONDS, WALL_SECONDS = 4.0, 15.0, 900.0
FIRST_TESTS = 12
# Survivors that are tried again: so many files, each for so long.
MAX_FILES, FILE_LIMIT = 6, 15.0
# How a run of tests ends that could not begin, or found none.
NOT_RUN, NO_TESTS = "70", "5"
KILLED, SURVIVED, UNTOUCHED = "killed", "survived", "untouched"


class Outcome(NamedTuple):
    """What became of a mutant."""

    package: str
    name: str
    module: str
    function: str
    line: int
    operator: str
    before: str
    after: str
    outcome: str
    end: str
    killer: str
    num_tests: int
    seconds: float


def sample_mutants(package: str, number: int, seed: int) -> list[Mutant]:
    """A sample of a package's mutants: those whose names have the smallest digests with this seed."""
    mutants = [
        mutant for module in list_modules(package) for mutant in list_mutants(module, read_module(module))
    ]
    mutants.sort(key=lambda mutant: hashlib.sha256(f"{seed}{mutant.name}".encode()).digest())
    sources = {module: read_module(module) for module in list_modules(package)}
    kept = (mutant for mutant in mutants if mutant.apply(sources[mutant.module]) is not None)
    return list(islice(kept, number))


def choose_tests(mutant: Mutant, touches: Sequence[Touch]) -> list[Touch]:
    """Tests of a mutant: those that run its line first, then of its function, then of the same files.

    The last ones may call a program that another test of their file has traced.
    """
    # What runs while a module is imported is seen by every test that touches the module.
    is_inside = any(mutant.function in touch.lines.get(mutant.module, {}) for touch in touches)
    line = mutant.line - mutant.first_line

    def rank(touch: Touch) -> int:
        functions = touch.lines.get(mutant.module)
        if functions is None:
            return 3
        lines = functions.get(mutant.function)
        if lines is None:
            return 3 if is_inside else 1
        return 0 if line in lines else 1

    ranks = {touch.test: rank(touch) for touch in touches}
    files = {name_file(touch) for touch in touches if ranks[touch.test] < 2}
    ranks |= {touch.test: 2 for touch in touches if ranks[touch.test] == 3 and name_file(touch) in files}
    chosen = [touch for touch in touches if ranks[touch.test] < 3]
    chosen.sort(key=lambda touch: (ranks[touch.test], touch.seconds))
    kept, total = [], 0.0
    for touch in chosen:
        total += touch.seconds
        if kept and total > MAX_TEST_SECONDS:
            break
        kept.append(touch)
    return kept


def choose_files(mutant: Mutant, touches: Sequence[Touch]) -> list[str]:
    """Files of tests that have to do with a mutant, for all of their tests: those that touch it most first.

    Only some tests of a large file are followed, so one that would notice the mutant may not have been.
    """
    touching = Counter(
        name_file(touch) for touch in touches if mutant.function in touch.lines.get(mutant.module, {})
    )
    words = {mutant.function.split(".")[-1], mutant.module.removesuffix(".py").replace("/", ".")}
    for path in list_files():
        text = path.read_text(encoding="utf-8")
        touching[str(path.relative_to(TREE))] += 100 * sum(word in text for word in words)
    return [file for file, number in touching.most_common(MAX_FILES) if number]


def name_file(touch: Touch) -> str:
    """File of a test."""
    return touch.test.split("::")[0]


def run_mutant(
    package: str,
    mutant: Mutant,
    touches: Sequence[Touch],
    server: Server,
    imported: Collection[tuple[str, str]],
    *,
    is_thorough: bool = False,
) -> Outcome:
    """Try one mutant, thoroughly with all tests of the files that have to do with it."""
    tests = choose_tests(mutant, touches)
    stages = [(*map(attrgetter("test", "seconds"), stage),) for stage in split_tests(tests)]
    if is_thorough:
        stages = [((file, FILE_LIMIT),) for file in choose_files(mutant, touches)]
    shown = (package, mutant.name, mutant.module, mutant.function, mutant.line, mutant.operator)
    changed = (mutant.before[:200], mutant.after[:200])
    if not stages:
        return Outcome(*shown, *changed, UNTOUCHED, "", "", 0, 0.0)
    original = read_module(mutant.module)
    source = mutant.apply(original)
    assert source is not None
    function = find_outermost_function(original, mutant)
    is_replaced = function is not None and (mutant.module, mutant.function) not in imported
    end, used = "0", 0.0
    with mutated(mutant.module, source):
        for stage in stages:
            names = tuple(name for name, _ in stage)
            limit = STARTING_SECONDS + SLOWER * sum(seconds for _, seconds in stage)
            request = Request(names, limit, WALL_SECONDS)
            if is_replaced:
                replacing = request._replace(module=mutant.module, function=function)
                end, seconds = server.run_tests(replacing)
                is_replaced = end != NOT_RUN  # a function with other variables cannot be replaced
                used += seconds
            if not is_replaced:
                end, seconds = run_tests(request)
                used += seconds
            assert end != NO_TESTS or is_thorough, f"no such tests: {names}"
            if is_thorough and end == KILLED_BY_CLOCK:  # a file may take longer without any mutant
                end = "0"
            if end not in ("0", NO_TESTS):
                break
    by = KILLER.read_text(encoding="utf-8") if KILLER.exists() else ""
    outcome = SURVIVED if end in ("0", NO_TESTS) else KILLED
    return Outcome(*shown, *changed, outcome, end, by, sum(map(len, stages)), round(used, 1))


def split_tests(tests: Sequence[Touch]) -> list[list[Touch]]:
    """The first few tests, of two files, then all others: reading files takes most of the time."""
    files = list(dict.fromkeys(map(name_file, tests)))[:2]
    first = [touch for touch in tests if name_file(touch) in files][:FIRST_TESTS]
    names = {touch.test for touch in first}
    others = [touch for touch in tests if touch.test not in names]
    return [stage for stage in (first, others) if stage]


def try_mutants(
    packages: Sequence[str],
    number: int,
    seed: int,
    server: Server,
    say: Callable[[str], None],
    *,
    again: bool = False,
    is_thorough: bool = False,
) -> None:
    """Try those of the sample that have no outcome yet, the packages in turn; or `again` those that lived."""
    touches, imported = read_map(), list_imported()
    samples = [sample_mutants(package, number, seed) for package in packages]
    known = {outcome.name: outcome.outcome for outcome in read_outcomes()}
    for index in range(number):
        for package, sample in zip(packages, samples, strict=True):
            if index >= len(sample):
                continue
            mutant = sample[index]
            before = known.get(mutant.name)
            if before == KILLED or (before is None) == again:
                continue
            began = time.monotonic()
            outcome = run_mutant(package, mutant, touches, server, imported, is_thorough=is_thorough)
            with FILE.open("a", encoding="utf-8") as file:
                file.write(json.dumps(outcome._asdict()) + "\n")
            wall = time.monotonic() - began
            say(f"{describe(outcome)}: {outcome.outcome} ({outcome.num_tests} tests, {wall:.0f} s)")


def describe(outcome: Outcome) -> str:
    """A mutant in one line."""
    before, after = (" ".join(text.split()) for text in (outcome.before, outcome.after))
    return f"{outcome.name} {outcome.module}:{outcome.line} {outcome.function}: {before!r} -> {after!r}"


def read_outcomes() -> list[Outcome]:
    """The newest outcome of each mutant."""
    if not FILE.exists():
        return []
    with FILE.open(encoding="utf-8") as file:
        return list({row["name"]: Outcome(**row) for row in map(json.loads, file)}.values())


def wilson(successes: int, number: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a fraction."""
    z = float(norm.ppf(0.5 + level / 2))
    center = (successes + z * z / 2) / (number + z * z)
    half = z / (number + z * z) * (successes * (number - successes) / number + z * z / 4) ** 0.5
    return center - half, center + half
