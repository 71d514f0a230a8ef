"""Trying mutants: each replaces a module, and the fast tests that touch its function run until one fails.

Tests that reach the changed line come first, the quick ones first of all, up to a limit of CPU time; a test
that runs for ever, or a process that dies, has noticed the mutant too. Every outcome is one line of a file,
so a trial that is stopped goes on where it was.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import islice
from operator import attrgetter

from scipy.stats import norm

from .operators import Mutant, list_mutants
from .outcomes import (
    KILLED,
    SURVIVED,
    UNTOUCHED,
    Outcome,
    describe,
    digest_text,
    keep_outcome,
    read_outcomes,
)
from .patch import find_outermost_function
from .plugins import KILLER
from .touched import Touch, list_files, list_imported, read_map
from .tree import PACKAGES, TREE, list_modules, mutated, read_module
from .warm import KILLED_BY_CLOCK, Request, Server, run_tests

# Tests of one mutant may take so long together, by the time they took without it.
MAX_TEST_SECONDS = 5.0
# A mutant that takes so much longer is stopped.
SLOWER, STARTING_SECONDS, WALL_SECONDS = 4.0, 15.0, 900.0
FIRST_TESTS = 12
# Survivors that are tried again: so many files, each for so long.
MAX_FILES, FILE_LIMIT = 6, 15.0
# How a run of tests ends that could not begin, or found none.
NOT_RUN, NO_TESTS = "70", "5"


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
    mutant: Mutant,
    touches: Sequence[Touch],
    server: Server,
    imported: Collection[tuple[str, str]],
    killer: str = "",
    *,
    is_thorough: bool = False,
) -> tuple[str, str]:
    """Try one mutant: what became of it, and the test that noticed it. One that did before comes first.

    Thoroughly, with all tests of the files that have to do with it.
    """
    tests = choose_tests(mutant, touches)
    stages = [(*map(attrgetter("test", "seconds"), stage),) for stage in split_tests(tests)]
    if is_thorough:
        stages = [((file, FILE_LIMIT),) for file in choose_files(mutant, touches)]
    stages[:0] = [((touch.test, touch.seconds),) for touch in touches if touch.test == killer]
    if not stages:
        return UNTOUCHED, ""
    return _run_stages(mutant, stages, server, imported, is_thorough=is_thorough)


def _run_stages(
    mutant: Mutant,
    stages: Sequence[Sequence[tuple[str, float]]],
    server: Server,
    imported: Collection[tuple[str, str]],
    *,
    is_thorough: bool,
) -> tuple[str, str]:
    """Run tests with a mutant in place, each stage given by names and the seconds they may take."""
    original = read_module(mutant.module)
    source = mutant.apply(original)
    assert source is not None
    function = find_outermost_function(original, mutant)
    is_replaced = function is not None and (mutant.module, mutant.function) not in imported
    end = "0"
    with mutated(mutant.module, source):
        for stage in stages:
            names = tuple(name for name, _ in stage)
            limit = STARTING_SECONDS + SLOWER * sum(seconds for _, seconds in stage)
            request = Request(names, limit, WALL_SECONDS)
            if is_replaced:
                replacing = request._replace(module=mutant.module, function=function)
                end, _ = server.run_tests(replacing)
                is_replaced = end != NOT_RUN  # a function with other variables cannot be replaced
            if not is_replaced:
                end, _ = run_tests(request)
            assert end != NO_TESTS or is_thorough, f"no such tests: {names}"
            if is_thorough and end == KILLED_BY_CLOCK:  # a file may take longer without any mutant
                end = "0"
            if end not in ("0", NO_TESTS):
                break
    by = KILLER.read_text(encoding="utf-8") if KILLER.exists() else ""
    return (SURVIVED, "") if end in ("0", NO_TESTS) else (KILLED, by or end)


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
    known = read_outcomes()
    for index in range(number):
        for package, sample in zip(packages, samples, strict=True):
            if index >= len(sample):
                continue
            mutant = sample[index]
            text, before = digest_text(mutant, read_module(mutant.module)), known.get(mutant.name)
            is_new = before is None or before.text != text
            if is_new == again or (before is not None and not is_new and before.outcome == KILLED):
                continue
            began, killer = time.monotonic(), before.killer if before else ""
            outcome, killer = run_mutant(mutant, touches, server, imported, killer, is_thorough=is_thorough)
            first = before.first if before else outcome
            keep_outcome(Outcome(mutant.name, package, describe(mutant), text, first, outcome, killer))
            say(f"{mutant.name} {describe(mutant)}: {outcome} ({time.monotonic() - began:.0f} s)")


def try_with(names: Sequence[str], tests: Sequence[str], server: Server, say: Callable[[str], None]) -> None:
    """Try mutants with tests by name. Of one tried before, that it lived says less, and is not kept."""
    imported, known = list_imported(), read_outcomes()
    mutants = {
        mutant.name: (package, mutant)
        for package in PACKAGES
        for module in list_modules(package)
        for mutant in list_mutants(module, read_module(module))
    }
    stages = [[(test, FILE_LIMIT) for test in tests]]
    for name in names:
        package, mutant = mutants[name]
        outcome, killer = _run_stages(mutant, stages, server, imported, is_thorough=True)
        say(f"{name} {describe(mutant)}: {outcome} {killer}")
        before = known.get(name)
        if outcome == KILLED or before is None:
            text, first = digest_text(mutant, read_module(mutant.module)), before.first if before else outcome
            keep_outcome(Outcome(name, package, describe(mutant), text, first, outcome, killer))


def wilson(successes: int, number: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a fraction."""
    z = float(norm.ppf(0.5 + level / 2))
    center = (successes + z * z / 2) / (number + z * z)
    half = z / (number + z * z) * (successes * (number - successes) / number + z * z / 4) ** 0.5
    return center - half, center + half
