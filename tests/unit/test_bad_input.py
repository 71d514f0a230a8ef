"""Every mistake is met before anything runs, by a typed error that says what was given."""

import inspect

import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe.arguments import checked
from steppe.diagnostics.exact import transition_matrix
from steppe.errors import (
    CompositionError,
    DomainError,
    RecipeError,
    StartError,
    SteppeError,
    TargetError,
)
from steppe.kernel.acceptance import Metropolis
from steppe.kernel.blocks.gibbs import GibbsBlock
from steppe.kernel.blocks.metropolis import ConditionalDraw, ProposalBlock
from steppe.kernel.compose import recipe
from steppe.kernel.coupling import StarCoupling
from steppe.kernel.proposals.center import CenterLangevin, CenterRefresh
from steppe.kernel.proposals.discrete_langevin import DiscreteLangevin, JointProposal
from steppe.kernel.start import check_start
from steppe.samplers import ALL_RECIPES
from steppe.target import Incremental, Target

BITS = steppe.Binary(3)
NAN, INF = float("nan"), float("inf")


def total(position):
    return jnp.sum(position)


def blows_up(position):
    raise KeyError("weights of layer 2")


GOOD = Target(total, BITS)
VALID_BELOW_TWO = Target(total, BITS, is_valid=lambda x: jnp.sum(x) < 2)


def wrong_where_first_is_one(value):
    return Target(lambda x: jnp.where(x[0] > 0, value, jnp.sum(x)), BITS)


# ---- Domains, targets, starts and compositions: (what is done, error, what the message says) --------

DOMAINS = {
    "no sites": (lambda: steppe.Binary(0), "got 0"),
    "negative sites": (lambda: steppe.Spin(-2), "got -2"),
    "fractional sites": (lambda: steppe.Binary(2.5), "got 2.5"),
    "sites as text": (lambda: steppe.Categorical("3", 2), "got '3'"),
    "sites missing": (lambda: steppe.Ordinal(None, 3), "got None"),
    "sites as truth value": (lambda: steppe.Binary(True), "got True"),
    "one level": (lambda: steppe.Ordinal(3, 1), "got 1"),
    "one level in a list": (lambda: steppe.Ordinal(3, [0.5]), "got [0.5]"),
    "one category": (lambda: steppe.Categorical(3, 1), "got 1"),
    "one category at a site": (
        lambda: steppe.Categorical(3, [2, 1, 2]),
        "`num_levels[1]` must be an integer of at least 2; got 1.",
    ),
    "repeated levels": (lambda: steppe.Ordinal(3, [0, 1, 1]), "got [0, 1, 1]"),
    "falling levels": (lambda: steppe.Ordinal(3, [1.0, 0.0]), "got [1.0, 0.0]"),
    "levels too close for float32": (lambda: steppe.Ordinal(3, [1.0, 1.0 + 1e-9]), "1.000000001"),
    "NaN level": (lambda: steppe.Ordinal(3, [0, NAN]), "nan"),
    "infinite level": (lambda: steppe.Ordinal(3, [0, INF]), "inf"),
    "complex level": (lambda: steppe.Ordinal(3, [0, 2j]), "2j"),
    "table of levels": (lambda: steppe.Ordinal(3, [[0, 1], [1, 2]]), "[[0, 1], [1, 2]]"),
    "levels missing": (lambda: steppe.Ordinal(3, None), "got None"),
    "too few level counts": (lambda: steppe.Categorical(3, [2, 3]), "got [2, 3] for 3 sites"),
    "fractional level count": (
        lambda: steppe.Categorical(2, [2.0, 3]),
        "`Categorical(num_levels=...)` must be an integer or a sequence, each an integer; got [2.0, 3].",
    ),
    "levels as text": (lambda: steppe.Ordinal(3, "12"), "got '12'"),
    "level beyond the last": (lambda: BITS.from_levels([0, 1, 2]), "got [0, 1, 2]"),
    "level below the first": (lambda: steppe.Categorical(2, 3).from_levels([-1, 0]), "got [-1, 0]"),
    "level a ragged site lacks": (lambda: steppe.Categorical(2, [2, 3]).from_levels([2, 0]), "got [2, 0]"),
    "half a level": (lambda: BITS.from_levels([0, 0.5, 1]), "0.5"),
    "too many states to list": (lambda: steppe.Binary(21).enumerate(), "2.1e+06"),
}
TARGETS = {
    "vector log-density": (lambda: Target(lambda x: x, BITS), "shape (3,)"),
    "integer log-density": (lambda: Target(lambda x: total(x).astype(int), BITS), "int32"),
    "complex log-density": (lambda: Target(lambda x: total(x) * 1j, BITS), "complex64"),
    "boolean log-density": (lambda: Target(lambda x: total(x) > 1, BITS), "bool"),
    "log-density returns nothing": (lambda: Target(lambda x: None, BITS), "NoneType"),
    "log-density returns a pair": (lambda: Target(lambda x: (total(x), x), BITS), "tuple"),
    "log-density raises": (lambda: Target(blows_up, BITS), "KeyError: 'weights of layer 2'"),
    "log-density branches in Python": (lambda: Target(lambda x: 1.0 if x[0] else 0.0, BITS), "float32"),
    "log-density needs more arguments": (lambda: Target(lambda x, y: x @ y, BITS), "'y'"),
    "log-density is no function": (lambda: Target("U", BITS), "got str"),
    "energy is no function": (lambda: Target.from_energy(3.0, BITS), "got float"),
    "no domain": (lambda: Target(total, None), "got None"),
    "domain is a number": (lambda: Target(total, 64), "got 64"),
    "domain is a class": (lambda: Target(total, steppe.Binary), "domain.real.Binary"),
    "constraint is a number": (lambda: Target(total, BITS, is_valid=total), "float32"),
    "constraint per site": (lambda: Target(total, BITS, is_valid=lambda x: x > 0), "shape (3,)"),
    "constraint is no function": (lambda: Target(total, BITS, is_valid=True), "got bool"),
    "table too wide": (lambda: Target(total, BITS, differences=lambda x: jnp.zeros((3, 4))), "shape (3, 4)"),
    "table of integers": (
        lambda: Target(total, BITS, differences=lambda x: jnp.zeros((3, 2), int)),
        "int32",
    ),
    "table fails": (lambda: Target(total, BITS, differences=blows_up), "KeyError"),
    "gradient without value": (lambda: Target(total, BITS, value_and_grad=lambda x: x), "value_and_grad"),
    "three results": (lambda: Target(total, BITS, value_and_grad=lambda x: (total(x), x, x)), "tuple"),
    "short gradient": (lambda: Target(total, BITS, value_and_grad=lambda x: (total(x), x[:2])), "shape (2,)"),
    "value per site": (lambda: Target(total, BITS, value_and_grad=lambda x: (x, x)), "shape (3,)"),
    "batch summed up": (
        lambda: Target(total, BITS, batched_value_and_grad=lambda x: (total(x), x)),
        "shape ()",
    ),
    "batched gradient flat": (
        lambda: Target(total, BITS, batched_value_and_grad=lambda x: (x.sum(1), x.sum(1))),
        "shape (3,)",
    ),
    "incremental is a tuple": (lambda: Target(total, BITS, incremental=(total,) * 3), "got tuple"),
    "incremental misses a part": (
        lambda: Target(total, BITS, incremental=Incremental(total, None, total)),
        "incremental.differences",
    ),
}
STARTS = {
    "too long": (lambda: steppe.dmala().build(GOOD).init(jnp.zeros(4)), "shape (4,)"),
    "too many axes": (lambda: steppe.gibbs().build(GOOD).init(jnp.zeros((2, 3))), "shape (2, 3)"),
    "a number": (lambda: steppe.dmala().build(GOOD).init(0.0), "shape ()"),
    "between levels": (lambda: steppe.dmala().build(GOOD).init([0, 0.5, 1]), "0.5 on site 1"),
    "beyond the levels": (lambda: steppe.gwg().build(GOOD).init([0, 0, 2]), "2 on site 2"),
    "NaN": (lambda: steppe.edmala().build(GOOD).init([NAN, 0, 0]), "nan on site 0"),
    "invalid": (lambda: steppe.gibbs().build(VALID_BELOW_TWO).init([1, 1, 0]), "-inf"),
    "NaN log-density": (
        lambda: steppe.dmala().build(wrong_where_first_is_one(NAN)).init([1, 0, 0]),
        "log-density is nan",
    ),
    "no key for a drawn center": (
        lambda: steppe.edmala_glu(center_start="conditional").build(GOOD).init([0, 0, 0]),
        "needs a key",
    ),
    "third chain out of the domain": (
        lambda: check_start(GOOD, [[0, 0, 0], [1, 1, 1], [0, 7, 0]], batched=True),
        "Chain 2 starts at 7 on site 1",
    ),
    "chains without a chain axis": (lambda: check_start(GOOD, jnp.zeros(3), batched=True), "(chains, 3)"),
    "replica out of the domain": (
        lambda: steppe.robust_ensemble(replicas=2).build(GOOD).init(np.full((2, 3), 0.5)),
        "Replica 0 starts at 0.5 on site 0",
    ),
    "no chains": (lambda: check_start(GOOD, np.zeros((0, 3)), batched=True), "holds no chain"),
} | {
    f"second chain at {value}": (
        lambda value=value: check_start(
            wrong_where_first_is_one(value), [[0, 0, 0], [1, 0, 0], [0, 0, 1]], batched=True
        ),
        f"Chain 1 starts where the log-density is {value}",
    )
    for value in (NAN, INF, -INF)
}

MOVE = DiscreteLangevin(0.1)
POSITION = ProposalBlock(MOVE, Metropolis())
CENTER = ConditionalDraw(CenterRefresh())
STAR = StarCoupling(1.0)
COMPOSITIONS = {
    "nothing": (lambda: recipe("odd"), "move []"),
    "two position blocks": (lambda: recipe("odd", POSITION, POSITION), "['position', 'position']"),
    "two center blocks": (
        lambda: recipe("odd", CENTER, CENTER, POSITION, coupling=STAR),
        "'center', 'center'",
    ),
    "only a center": (lambda: recipe("odd", CENTER, coupling=STAR), "['center']"),
    "center moved twice": (
        lambda: recipe(
            "odd",
            CENTER,
            ProposalBlock(JointProposal(MOVE, CenterLangevin(0.1)), Metropolis()),
            coupling=STAR,
        ),
        "['center', 'position', 'center']",
    ),
    "center without coupling": (lambda: recipe("odd", CENTER, POSITION), "NoCoupling"),
    "coupling without center": (lambda: recipe("odd", POSITION, coupling=STAR), "StarCoupling"),
    "center starts nowhere": (lambda: recipe("odd", POSITION, center_start="moon"), "got 'moon'"),
    "conditional with center": (
        lambda: recipe("odd", CENTER, GibbsBlock(1), coupling=STAR),
        "Gibbs conditionals with a center",
    ),
}
BUILDS = {
    "a function": (lambda: steppe.dmala().build(total), "got function"),
    "nothing": (lambda: steppe.gibbs().build(None), "got NoneType"),
    "a domain": (lambda: steppe.dula().build(BITS), "got Binary"),
    "block too large": (lambda: steppe.block_gibbs(block_size=4).build(GOOD), "changes 4 sites"),
    "default ball too large": (lambda: steppe.hamming_ball().build(GOOD), "changes 10 sites"),
    "too many flips": (lambda: steppe.gwg(num_flips=4).build(GOOD), "changes 4 sites"),
    "radius beyond the block": (lambda: steppe.hamming_ball(block_size=2, radius=3), "radius=3"),
    "too many joint levels": (
        lambda: steppe.block_gibbs(block_size=21).build(Target(total, steppe.Binary(30))),
        "2.1e+06",
    ),
    "diverging center": (
        lambda: steppe.edula(step_size=0.1, center_step_size=4.0, coupling_variance=1.0),
        "center_step_size=4",
    ),
    "center diverges in default units": (
        lambda: steppe.edula(center_step_size=5.0).build(GOOD),
        "coupling_variance=1)",
    ),
    "center made to diverge": (lambda: steppe.edula().replace(center_step_size=4.0).build(GOOD), "4η = 4"),
    "number it does not have": (lambda: steppe.dmala().replace(stepsize=0.1), "['stepsize']"),
    "persistence of a fresh center": (lambda: steppe.edmala_glu().replace(persistence=0.5), "persistence"),
    "center of a tilt without one": (
        lambda: steppe.roughness_tilted(coupling_variance=-1.0),
        "coupling_variance=-1.0",
    ),
    "weight of a real center": (lambda: steppe.robust_ensemble(center_weight=1.0), "center_weight=1.0"),
}
CASES = [
    pytest.param(error, *case, id=f"{error.__name__}-{name}")
    for error, cases in (
        (DomainError, DOMAINS),
        (TargetError, TARGETS),
        (StartError, STARTS),
        (CompositionError, COMPOSITIONS),
        (RecipeError, BUILDS),
    )
    for name, case in cases.items()
]


@pytest.mark.parametrize(("error", "mistake", "said"), CASES)
def test_mistake_is_met_by_a_typed_error_that_says_what_was_given(error, mistake, said):
    with pytest.raises(error) as caught:
        mistake()
    assert isinstance(caught.value, SteppeError)
    assert said in str(caught.value)


def test_stable_center_in_default_units_is_accepted():
    steppe.edula(center_step_size=5.0).build(Target(total, steppe.Spin(3)), audit=False)  # 4η = 16 here


# ---- Arguments of recipes, found by their defaults -------------------------------------------------

BAD_NUMBERS = [-0.1, NAN, INF, "0.1", 1j, True, [0.1, 0.2], [[1], [1, 2]], np.array([0.1])]
BAD_COUNTS = [0, -1, 1.5, "3", None, True, NAN]
BAD_CHOICES = ["nonsense", None, 3, np.zeros(2)]
REACHED_WITH = {
    ("roughness_tilted", "coupling_variance"): {"base": "glu"},
    ("pas", "step_size"): {"path_length": "poisson"},
}


def arguments_with_bad_values():
    for name, make in ALL_RECIPES.items():
        for argument, parameter in inspect.signature(make).parameters.items():
            for value in bad_values(parameter.default):
                # Probabilities of sites, whatever their number; a hot end at 0.
                is_good = {"reference": is_row(value), "hottest": value == 0.0}
                if not is_good.get(argument, False):
                    yield name, argument, value


def is_row(value):
    return isinstance(value, np.ndarray) or (isinstance(value, list) and isinstance(value[0], float))


def bad_values(default):
    if default is None:
        return [*BAD_NUMBERS, 0.0]
    if isinstance(default, float):
        return [*BAD_NUMBERS, None]
    if isinstance(default, bool):
        return [value for value in BAD_COUNTS if not isinstance(value, bool)]
    if isinstance(default, int):
        return [value for value in BAD_COUNTS if value != default or isinstance(value, bool)]
    return BAD_CHOICES


@pytest.mark.parametrize(("name", "argument", "value"), list(arguments_with_bad_values()))
def test_bad_argument_of_a_recipe_is_named_with_its_value(name, argument, value):
    others = REACHED_WITH.get((name, argument), {})
    with pytest.raises(RecipeError) as caught:
        ALL_RECIPES[name](**{argument: value}, **others)
    assert f"`{name}({argument}=...)`" in str(caught.value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("name", ALL_RECIPES)
def test_a_recipe_takes_back_its_own_numbers(name):
    recipe = ALL_RECIPES[name]()
    assert recipe.replace(**recipe.parameters).parameters == recipe.parameters


@pytest.mark.parametrize("position", ["010", ["a", "b", "c"], [[0], [0, 1]], [0, 1j, 0], None, jnp.zeros(2)])
def test_what_is_no_position_is_not_contained(position):
    assert not BITS.contains(position)


def test_numbers_of_any_real_kind_are_taken():
    for value in (1, 0.5, np.float32(0.5), np.int64(2), jnp.asarray(0.5)):
        assert steppe.dmala(step_size=value).parameters["step_size"] == float(value)


@pytest.mark.parametrize("given", ["dmala", 3, None])
def test_a_class_that_only_type_checkers_import_is_still_asked_for(given):
    with pytest.raises(TargetError, match=r"recipe=.*a recipe such as `steppe.dmala\(\)`"):
        transition_matrix(given, Target(total, BITS))


@pytest.mark.parametrize("size", [2**27 + 4, 2**40, 2**62])
def test_sizes_are_refused_before_anything_is_made_of_them(size):
    makes = (
        lambda: steppe.Binary(size),
        lambda: steppe.Categorical((size // 4, 8), 3),
        lambda: steppe.Counts(size, 4),
        lambda: steppe.Permutation(size),
        lambda: steppe.targets.ising_lattice((size, 2), coupling=0.1),
        lambda: steppe.targets.spin_glass((size, 2)),
    )
    for make in makes:
        with pytest.raises((DomainError, TargetError), match=r"must (be|have) at most 134217728"):
            make()


def test_what_does_not_fit_into_memory_is_a_sentence():
    @checked(TargetError)
    def make(size: int) -> None:
        raise MemoryError("Unable to allocate 2 EiB." if size else "")

    with pytest.raises(TargetError, match=r"make\(...\)` needs more memory than there is: Unable .* EiB\.$"):
        make(3)
    with pytest.raises(TargetError, match=r"more memory than there is: the system has no more\.$"):
        make(0)


def test_a_function_that_fails_is_named_in_sentences_that_end_once():
    with pytest.raises(TargetError) as caught:
        steppe.Target(lambda bits: 1.0 if bits[0] > 0 else 0.0, BITS)
    assert ".." not in str(caught.value)
    with pytest.raises(steppe.errors.RunError, match="needs the directory of a run in shards; got none"):
        steppe.merge_shards([], "nowhere")
