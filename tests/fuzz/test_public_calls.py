"""Junk in place of any argument of any public function is refused in time, by a typed error."""

import random
from pathlib import Path

import jax.numpy as jnp
import pytest

import steppe
from fuzz.public_calls import MAX_SECONDS, fuzz, list_cases, list_public, run
from steppe.arguments import checked
from steppe.errors import CallbackError, RunError
from steppe.validation import call_back

SEED = 9  # of the few calls it chooses, those that work compile next to nothing


@pytest.mark.slow
def test_every_public_function_is_called(tmp_path: Path) -> None:
    assert list_public() - {case.name for case in list_cases(tmp_path)} == set()


@pytest.mark.parametrize(
    "fraction", [pytest.param(0.02, id="few"), pytest.param(1.0, id="all", marks=pytest.mark.slow)]
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, about numbers of another world
def test_junk_is_refused_by_a_typed_error_and_never_accepted(
    fraction: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # "x" is a path too
    chance = random.Random(SEED)
    outcomes = list(fuzz(list_cases(tmp_path), lambda _: chance.random() < fraction))
    wrong = [outcome for outcome in outcomes if outcome.kind in ("raw", "silent")]
    assert not wrong, "\n".join(map(str, wrong))
    assert len(outcomes) >= 5000 * fraction
    refused = sorted((outcome for outcome in outcomes if outcome.kind == "refused"), key=lambda o: o.seconds)
    # The first refusal of a bridge imports the other library.
    slow = [
        outcome
        for outcome in refused
        if outcome.seconds > MAX_SECONDS and not outcome.call.startswith(("from_", "to_"))
    ]
    assert not slow, slow


def test_an_exception_of_the_user_is_the_cause_of_one_that_names_the_function() -> None:
    def broken(*_: object) -> jnp.ndarray:
        raise KeyError("mine")

    with pytest.raises(CallbackError, match=r"`observables\['f'\]` raised KeyError: .*mine") as caught:
        run().summary(observables={"f": broken})
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(CallbackError, match="`g` raised"):
        call_back("g", broken)


def test_a_function_without_its_arguments_is_refused_like_one_with_wrong_ones() -> None:
    with pytest.raises(RunError, match="missing a required argument: 'key'"):
        steppe.find_flat_modes(run().trace)  # type: ignore[arg-type]


def test_ranges_are_checked_where_they_are_declared() -> None:
    @checked(RunError, size="[1, 3)", table=2)
    def make(size: int, table: jnp.ndarray) -> int:
        return size

    assert make(2, jnp.ones((2, 2))) == 2
    for size, table in (
        (3, jnp.ones((2, 2))),
        (0, jnp.ones((2, 2))),
        (2, jnp.ones(2)),
        (2, jnp.ones((0, 2))),
    ):
        with pytest.raises(RunError, match="must be"):
            make(size, table)
