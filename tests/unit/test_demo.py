"""The demo's numbers are those of enumeration, and its table and figures come out."""

import contextlib
import io

import numpy as np
import pytest

import oracle
from steppe import demo
from steppe.report import style
from steppe.samplers import ALL_RECIPES

pytestmark = pytest.mark.slow  # compiles eleven samplers; `make demo` shows the same

BUDGET = demo.Budget(num_chains=256, num_warmup=200, num_draws=100)
NAMES = ("dula", "edula", "dmala", "roughness_tilted")
ENTRIES = [entry for entry in demo.ENTRIES if entry.call.make.__name__ in NAMES]
DULA_EXACT = "dula(.1225) └ exact"
LARGER_DULA_EXACT = "edula(.2, .1, .1) └ dula(.6), exact"
TILTED_EXACT = "roughness_tilted(2) └ exact"
FLAT, SHARP = [0b0100, 0b1001], [0b0010, 0b0111]

# Rows are made in float32: an error of 1e-7 in a matrix entry is amplified by at most the relaxation time
# of the chain, 46 steps for dula(.1225).
TOLERANCE = 1e-5
# Sampled against exact, six comparisons of 5 standard errors each: a false alarm in 3e-6 of all versions of
# the random numbers. A dmala that accepts everything is 12 standard errors off in its mass on sharp modes.
STANDARD_ERRORS = 5

BITS = oracle.ScalarSites((0.0, 1.0), 4)


@pytest.fixture(scope="module")
def rows():
    """Rows by label; an enumerated one by the label of the sampler above it as well."""
    named, above = {}, ""
    for row in demo.collect_rows(BUDGET, ENTRIES):
        above = row.label if row.sampler else above
        named[f"{above} {row.label}" if row.label.startswith("└") else row.label] = row
    return named


@pytest.fixture(scope="module")
def law():
    probabilities = oracle.bernoulli4_probabilities()
    return np.asarray(probabilities) / np.sum(probabilities)


def dula_law(step_size):
    return oracle.stationary(oracle.dula_matrix(BITS, oracle.multilinear_gradient, step_size=step_size))


def tilted_law(law, strength):
    flips = law.reshape(2, 2, 2, 2)
    rises = [np.abs(np.log(np.flip(flips, axis) / flips)) for axis in range(4)]
    weights = law * np.exp(-strength * np.mean(rises, axis=0).ravel())
    return weights / weights.sum()


def assert_row_is(row, law, target_law):
    np.testing.assert_allclose(row.occupancy, law, atol=TOLERANCE)
    masses = [row.flat_mass.value, row.sharp_mass.value]
    np.testing.assert_allclose(masses, [law[FLAT].sum(), law[SHARP].sum()], atol=TOLERANCE)
    assert row.log_density.value == pytest.approx(law @ np.log(target_law), abs=TOLERANCE)
    assert row.distance == pytest.approx(np.abs(law - target_law).sum() / 2, abs=TOLERANCE)
    assert row.flat_mass.error is row.noise is row.sampler is None


def test_rows_stand_in_the_order_of_the_entries_with_enumerated_laws_below(rows):
    assert list(rows) == [
        "π, exact",
        "dula(.1225)",
        DULA_EXACT,
        "edula(.2, .1, .1)",
        LARGER_DULA_EXACT,
        "dmala(.4)",
        "roughness_tilted(2)",
        TILTED_EXACT,
    ]


def test_exact_row_of_the_target_is_its_table(rows, law):
    assert_row_is(rows["π, exact"], law, law)


@pytest.mark.parametrize(("label", "step_size"), [(DULA_EXACT, 0.1225), (LARGER_DULA_EXACT, 0.6)])
def test_exact_row_of_dula_is_its_enumerated_law(rows, law, label, step_size):
    assert_row_is(rows[label], dula_law(step_size), law)


def test_exact_row_of_the_tilted_sampler_is_the_law_it_promises(rows, law):
    assert_row_is(rows[TILTED_EXACT], tilted_law(law, 2), law)


@pytest.mark.parametrize(
    ("sampled", "exact"),
    [
        ("dula(.1225)", DULA_EXACT),
        ("dmala(.4)", "π, exact"),
        ("roughness_tilted(2)", TILTED_EXACT),
    ],
)
def test_sampled_masses_agree_with_the_exact_law_within_their_errors(rows, sampled, exact):
    for mass in ("flat_mass", "sharp_mass"):
        estimate, truth = getattr(rows[sampled], mass), getattr(rows[exact], mass).value
        assert abs(estimate.value - truth) < STANDARD_ERRORS * estimate.error


def test_acceptance_is_reported_only_where_something_is_decided(rows):
    assert rows["dula(.1225)"].acceptance is None
    assert 0.8 < rows["dmala(.4)"].acceptance < 1  # enumerated: 0.89


def test_declared_law_matches_the_recipe():
    for entry in demo.ENTRIES:
        assert (entry.law == "biased") == (not entry.call.recipe.is_exact)


def test_main_prints_table_reading_and_paths_of_the_figures_it_wrote(rows, tmp_path):
    with contextlib.redirect_stdout(io.StringIO()) as stdout:
        demo.main(tmp_path / "demo", BUDGET, ENTRIES)
    lines = stdout.getvalue().splitlines()
    written = sorted((tmp_path / "demo").iterdir())
    assert [path.name for path in written] == [
        "flat-modes.png",
        "flat-modes.svg",
        "occupancy.png",
        "occupancy.svg",
    ]
    assert sorted(line.strip() for line in lines[-4:]) == [str(path) for path in written]
    assert all(path.stat().st_size > 10_000 for path in written)
    assert all(any(line.strip().startswith(label) for line in lines) for label in ("π, exact", *NAMES))
    assert max(map(len, lines[:-4])) <= demo.TABLE_WIDTH
    assert "do not prefer flat" in " ".join(stdout.getvalue().split())


def test_every_recipe_has_a_colour_and_a_marker_of_its_own():
    assert set(ALL_RECIPES) == set(style.SAMPLER_COLORS) == set(style.SAMPLER_MARKERS)
    assert (
        len(set(style.SAMPLER_COLORS.values()))
        == len(set(style.SAMPLER_MARKERS.values()))
        == len(ALL_RECIPES)
    )
