"""Whatever is asked wrongly, the answer is a typed error, and nothing is left on disk."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_runs import KEY, RECIPE, TARGET, small_run

import steppe
from steppe.errors import SteppeError
from steppe.run.adaptation import Adapt
from steppe.run.storage.shards import merge_shards

NOT_NUMBERS = ["1", b"1", [1], (1, 2), {}, object(), 1j, np.array([1, 2]), jnp.ones(2), print, float("nan")]
NOT_COUNTS = [*NOT_NUMBERS, -1, 1.5, True, np.float32(2), float("inf"), 2**32, 10**30, None]
NOT_POSITIVE = [*NOT_NUMBERS, 0, -1, 0.0, -1e-9, float("inf"), -float("inf"), 1e300, 1e-300, False]

WRONG = {
    "num_chains": [*NOT_COUNTS, 0],
    "num_warmup": NOT_COUNTS,
    "num_draws": [*NOT_COUNTS, 0],
    "thinning": [*NOT_COUNTS, 0],
    "chain_block": [*NOT_COUNTS[:-1], 0],
    "keep": [None, 1, "", "DRAWS", "all", ["draws"], {}, True, np.array(["draws"]), print],
    "initial": [
        0,
        "start",
        [],
        [[]],
        {},
        print,
        np.zeros(4),
        np.zeros((3, 4)),
        np.zeros((5, 4)),
        np.zeros((4, 5)),
        np.full((4, 4), 0.5),
        np.full((4, 4), np.nan),
        np.full((4, 4), 2),
        np.full((4, 4), -1),
        np.full((4, 4), "0"),
        np.zeros((4, 4), complex),
        [[0, 1], [1]],
        np.zeros((4, 4, 1)),
        jax.random.split(KEY, 4),
    ],
    "adapt": [None, 0, 1, 0.5, "yes", [], {}, {"acceptance": 0.5}, print, Adapt, Adapt(flip_rate=0.1)],
    "devices": [0, -1, 99, 1.5, "cpu", [], {}, True, [0], [None], print, np.array([1])],
    "shard": [
        0,
        1.5,
        "0/2",
        [],
        (0,),
        (0, 1, 2),
        (1, 1),
        (-1, 2),
        (2, 2),
        (0, 0),
        (0.0, 2),
        (True, 2),
        (0, 9),
    ],
    "out": [0, 1.5, True, b"run", [], {}, ("a", "b"), print, "", "\0"],
    "resume": [None, 0, 1, "yes", [], {}, print],
    "progress": [0, 1, "yes", [], {}, print],
    "metadata": [0, "text", [1, 2], {1: 2}, {"a": object()}, {"a": (1, 2)}, {"a": {1}}, print, {"a": b"x"}],
}
WRONG_KEYS = [
    None,
    0,
    1.0,
    "key",
    [0, 1, 2],
    jax.random.split(KEY),
    {},
    np.zeros(3),
    print,
    jnp.zeros((2, 2)),
]
WRONG_RECIPES = [0, "dmala", steppe.dmala, [RECIPE], RECIPE.build(TARGET), {}, print]
WRONG_TARGETS = [None, 0, "target", lambda x: x.sum(), [TARGET], TARGET.domain, {}, RECIPE]
WRONG_NUMBERS = {
    steppe.dula: ["step_size"],
    steppe.dmala: ["step_size"],
    steppe.edula: ["step_size", "center_step_size", "coupling_variance"],
    steppe.edmala: ["step_size", "center_step_size", "coupling_variance"],
    steppe.edula_glu: ["step_size", "coupling_variance"],
    steppe.edmala_glu: ["step_size", "coupling_variance"],
    steppe.edmala_ou: ["step_size", "coupling_variance"],
    steppe.robust_ensemble: ["coupling_variance", "step_size"],
}
WRONG_WISHES = {
    "acceptance": [*NOT_NUMBERS, 0, 1, -1, 2, True, float("inf")],
    "flip_rate": [*NOT_NUMBERS, 0, 1, -1, 2, True, float("inf")],
    "center_distance": [*NOT_NUMBERS, 0, -1, True, float("inf")],
    "pooled": [None, 0, 1, "yes", [], {}, print],
}


def cases():
    """Every wrong request as a name and a call; directories are made in `folder`."""
    for name, values in WRONG.items():
        for number, value in enumerate(values):
            yield (
                f"{name}-{number}",
                lambda folder, n=name, v=value: small_run(**{"out": folder / "run", n: v}),
            )
    for number, key in enumerate(WRONG_KEYS):
        yield (
            f"key-{number}",
            lambda folder, k=key: steppe.sample(TARGET, RECIPE, key=k, out=folder / "run"),
        )
    for number, recipe in enumerate(WRONG_RECIPES):
        yield f"recipe-{number}", lambda folder, r=recipe: small_run(r, out=folder / "run")
    for number, target in enumerate(WRONG_TARGETS):
        yield (
            f"target-{number}",
            lambda folder, t=target: steppe.sample(t, RECIPE, key=KEY, out=folder / "run"),
        )
    for make, names in WRONG_NUMBERS.items():
        for name, (number, value) in itertools.product(names, enumerate(NOT_POSITIVE)):
            yield (
                f"{make.__name__}-{name}-{number}",
                lambda folder, m=make, n=name, v=value: small_run(m(**{n: v}), out=folder / "run"),
            )
    for name, values in WRONG_WISHES.items():
        for number, value in enumerate(values):
            yield f"Adapt-{name}-{number}", lambda folder, n=name, v=value: Adapt(**{n: v})
    for number, path in enumerate(["", "nowhere", "/", "\0", "a" * 5000]):
        yield f"open-{number}", lambda folder, p=path: steppe.open_run(p)
        yield f"merge-{number}", lambda folder, p=path: merge_shards(p, folder / "run")
    for number, draws in enumerate([*NOT_COUNTS, 0]):
        yield f"extend-{number}", lambda folder, n=draws: FINISHED[0].extend(n)


CASES = dict(cases())
FINISHED = []


def test_there_are_more_than_five_hundred_wrong_requests():
    assert len(CASES) >= 500


def test_every_wrong_request_gets_a_typed_error_and_leaves_nothing_on_disk(tmp_path):
    FINISHED.append(small_run())
    answers = {}
    for name, call in CASES.items():
        try:
            call(tmp_path)
        except SteppeError as error:
            if not str(error).strip():
                answers[name] = "an error without a sentence"
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
            answers[name] = f"{type(error).__name__}: {error}"
        else:
            answers[name] = "accepted"
        if any(tmp_path.iterdir()):
            answers[name] = answers.get(name, "") + " and files"
            for path in tmp_path.iterdir():
                path.rename(tmp_path.parent / f"left-by-{name}")
    assert answers == {}


@pytest.mark.parametrize("num_draws", [10.0, -1, "many"])
def test_a_refused_extension_leaves_the_run_as_it_was(num_draws):
    run = small_run(num_draws=20)
    with pytest.raises(SteppeError):
        run.extend(num_draws)
    assert run.extend(5).trace.num_rows == run.trace.num_rows + 5
