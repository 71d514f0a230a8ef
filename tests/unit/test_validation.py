"""Each validator passes what fits, and refuses the rest with call, rule, value and remedy."""

import re
from pathlib import Path
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steppe import validation
from steppe.errors import DomainError, RecipeError, RunError, TargetError

SOURCE = Path(validation.__file__).parent


def test_a_refusal_names_call_rule_value_and_remedy():
    with pytest.raises(RecipeError) as caught:
        validation.positive("dmala(step_size=...)", -1)
    assert str(caught.value) == (
        "`dmala(step_size=...)` must be a positive number; got -1. Leave it out for the default."
    )


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "1", None, [1], True, 1j])
def test_a_positive_number_is_nothing_else(value):
    with pytest.raises(RecipeError, match=r"must be a (positive|finite) number"):
        validation.positive("f(x=...)", value)


def test_numbers_being_traced_pass():
    assert jax.jit(lambda x: validation.positive("f(x=...)", x))(-1.0) == -1.0
    assert jax.jit(lambda x: validation.within("f(x=...)", x, "(0, 1)"))(3.0) == 3.0
    assert jax.jit(lambda x: validation.positive_scalar("f(x=...)", x))(-1.0) == -1.0


@pytest.mark.parametrize(
    ("interval", "inside", "outside"),
    [("[0, 1)", [0, 0.5], [1, -0.1]), ("(0, 1]", [1, 0.5], [0, 1.1]), ("(0, inf)", [1e9], [0, np.inf])],
)
def test_an_interval_is_read_as_it_is_written(interval, inside, outside):
    assert [validation.within("f(x=...)", value, interval) for value in inside] == inside
    for value in outside:
        with pytest.raises(RunError, match=rf"must be (in {re.escape(interval)}|a finite number); got"):
            validation.within("f(x=...)", value, interval, error=RunError)


def test_counts_are_integers_of_any_kind_but_not_truth_values():
    assert validation.count("f(n=...)", np.int8(3)) == 3
    assert validation.count("f(n=...)", 0, 0) == 0
    for value in (True, 1.0, "1", 0, None):
        with pytest.raises(DomainError, match="must be an integer of at least 1; got"):
            validation.count("f(n=...)", value, error=DomainError)


def test_a_choice_is_one_of_a_tuple_or_of_a_literal():
    for options in (("a", "b"), Literal["a", "b"]):
        assert validation.choice("f(x=...)", "a", options) == "a"
        for value in ("c", None, ["a"], 1):
            with pytest.raises(RecipeError, match="must be 'a' or 'b'; got"):
                validation.choice("f(x=...)", value, options)


def test_flags_and_paths_are_taken_literally():
    assert validation.flag("f(x=...)", False) is False
    assert validation.path("f(x=...)", "a/b") == Path("a/b")
    for check, value in ((validation.flag, 1), (validation.path, 3), (validation.path, "\0")):
        with pytest.raises(RunError, match=r"`f\(x=...\)` must be"):
            check("f(x=...)", value)


def test_arrays_say_where_they_are_wrong():
    with pytest.raises(TargetError, match=r"got nan at index \[1, 0\]"):
        validation.real_array("f(x=...)", [[0.0, 1.0], [float("nan"), 2.0]])
    with pytest.raises(TargetError, match=r"must be symmetric; got 1 at \(0, 1\) and 2 at \(1, 0\)"):
        validation.symmetric_matrix("f(x=...)", [[0, 1], [2, 0]])
    assert validation.array_of_shape("f(x=...)", 2.0, (3,)).tolist() == [2.0] * 3
    assert isinstance(jax.jit(lambda x: validation.square_matrix("f(x=...)", x))(jnp.eye(2)), jax.Array)


def test_an_unknown_name_is_met_by_those_near_it():
    with pytest.raises(RunError, match=r"There is no sampler named 'dmla'. Did you mean dmala\?"):
        validation.find_name("dmla", ["dmala", "dlmc", "gibbs"], "sampler")
    with pytest.raises(RunError, match="There are dmala, gibbs"):
        validation.find_name("zzz", ["dmala", "gibbs"], "sampler")


def test_near_names_are_looked_for_in_one_place():
    users = [path.name for path in SOURCE.rglob("*.py") if "difflib" in path.read_text(encoding="utf-8")]
    assert users == ["validation.py"]
