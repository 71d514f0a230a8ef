"""A domain is an embedding table: positions, levels, rows and the geometry of one-site moves."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import steppe
from contract.cases import quick_jit
from exact_targets import DOMAINS
from steppe.errors import DomainError

TWO_LEVEL = {
    "binary": steppe.Binary(4),
    "spin": steppe.Spin(4),
    "uneven": steppe.Ordinal(3, [0.1, 0.7]),
    "one-hot": steppe.Categorical(3, 2),
}
ALL = DOMAINS | {"uneven": TWO_LEVEL["uneven"]}
on_every_domain = pytest.mark.parametrize("domain", ALL.values(), ids=ALL)
on_two_levels = pytest.mark.parametrize("domain", TWO_LEVEL.values(), ids=TWO_LEVEL)


def embedding(domain: steppe.Domain, site: int, level: int) -> np.ndarray:
    """The real number or one-hot row of a level, straight from the definition."""
    if isinstance(domain, steppe.Categorical):
        return np.eye(domain.max_levels)[level]
    assert isinstance(domain, steppe.Ordinal)
    return np.asarray(domain.levels[level])


def some_position(domain: steppe.Domain) -> tuple[np.ndarray, np.ndarray]:
    """A position with its levels."""
    levels = np.random.default_rng(2).integers(0, domain.num_levels)
    return np.stack([embedding(domain, *pair) for pair in enumerate(levels)]), levels


# ---- Positions, levels and rows ---------------------------------------------------------------------


@on_every_domain
def test_enumeration_is_lexicographic_with_the_first_site_slowest(domain):
    positions = domain.enumerate()
    expected = np.indices(domain.num_levels).reshape(domain.num_sites, -1).T
    assert positions.shape == (domain.num_states, *domain.shape)
    np.testing.assert_array_equal(domain.to_levels(positions), expected)
    assert len(np.unique(np.asarray(positions), axis=0)) == domain.num_states


@on_every_domain
def test_index_is_the_row_of_the_enumeration(domain):
    positions = domain.enumerate()
    np.testing.assert_array_equal(domain.index(positions), np.arange(domain.num_states))
    assert domain.index(positions[5]) == 5


@on_every_domain
def test_levels_and_positions_are_one_to_one(domain):
    position, levels = some_position(domain)
    np.testing.assert_array_equal(domain.from_levels(levels), position.astype(np.float32))
    np.testing.assert_array_equal(domain.to_levels(domain.from_levels(levels)), levels)


@pytest.mark.usefixtures("float64")
@on_every_domain
def test_positions_are_exact_in_double_precision(domain):
    position, levels = some_position(domain)
    np.testing.assert_array_equal(domain.from_levels(levels), position)
    assert domain.contains(position)


# A χ² test that raises a false alarm once in 10⁶. One state that is 20 % too likely has noncentrality
# 4096 · 0.2² = 164 against a limit of 71 for 27 states, and is missed less than once in 1000 times.
DRAWS_PER_STATE = 4096


@pytest.mark.parametrize("name", DOMAINS)
def test_draws_are_uniform_over_all_states(name):
    domain = DOMAINS[name]
    shape = (DRAWS_PER_STATE, domain.num_states)
    draws = quick_jit(lambda key: domain.draw(key, shape))(jax.random.key(0))
    assert domain.contains(draws)
    rows = quick_jit(domain.index)(draws)
    counts = np.bincount(np.asarray(rows).ravel(), minlength=domain.num_states)
    statistic = np.sum((counts - DRAWS_PER_STATE) ** 2) / DRAWS_PER_STATE
    assert statistic < stats.chi2.isf(1e-6, domain.num_states - 1)


@on_every_domain
def test_draws_have_the_shape_asked_for(domain):
    for shape in ((), (2, 5)):
        drawn = jax.eval_shape(lambda key, shape=shape: domain.draw(key, shape), jax.random.key(1))
        assert drawn.shape == (*shape, *domain.shape)


OUTSIDE = {
    "another level": (steppe.Binary(3), [0, 1, 2]),
    "between levels": (steppe.Ordinal(3, [-1.0, 0.1, 0.8]), [0.1, 0.1, 0.11]),
    "zero for a spin": (steppe.Spin(2), [0, 1]),
    "NaN": (steppe.Binary(2), [np.nan, 0]),
    "too short": (steppe.Binary(3), [0, 1]),
    "too few axes": (steppe.Categorical(2, 3), [1, 0, 0]),
    "a number": (steppe.Binary(1), 1.0),
    "two ones": (steppe.Categorical(2, 3), [[1, 1, 0], [0, 0, 1]]),
    "no one": (steppe.Categorical(2, 3), [[0, 0, 0], [0, 0, 1]]),
    "halves": (steppe.Categorical(2, 2), [[0.5, 0.5], [0, 1]]),
    "padded column": (steppe.Categorical(2, [2, 3]), [[0, 0, 1], [0, 0, 1]]),
    "one bad of a batch": (steppe.Binary(2), [[0, 1], [0, 3]]),
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_what_is_outside_is_not_contained(case):
    domain, position = OUTSIDE[case]
    assert domain.contains(position) is False


@on_every_domain
def test_what_is_inside_is_contained(domain):
    position, _ = some_position(domain)
    assert domain.contains(position) is True
    assert domain.contains(np.stack([position, position]))
    assert domain.contains(domain.enumerate())


# ---- Geometry of one-site moves, against the definition ------------------------------------------------


def jumps(domain: steppe.Domain, position: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
    """`level_k − position_i` for every site and existing level."""
    return {
        (site, level): embedding(domain, site, level) - position[site]
        for site in range(domain.num_sites)
        for level in range(domain.num_levels[site])
    }


@pytest.mark.usefixtures("float64")
@on_every_domain
def test_slopes_and_squared_jumps_follow_their_definition(domain):
    position, _ = some_position(domain)
    gradient = np.random.default_rng(1).normal(size=domain.shape)
    slopes = np.asarray(domain.slopes(jnp.asarray(position), jnp.asarray(gradient)))
    squared = np.asarray(domain.squared_jumps(jnp.asarray(position)))
    assert slopes.shape == squared.shape == (domain.num_sites, domain.max_levels)
    for (site, level), jump in jumps(domain, position).items():
        assert slopes[site, level] == pytest.approx(np.sum(gradient[site] * jump), abs=1e-14)
        assert squared[site, level] == pytest.approx(np.sum(jump**2), abs=1e-14)
    shortest = min(np.sum(jump**2) for jump in jumps(domain, position).values() if np.any(jump))
    assert domain.squared_unit <= shortest + 1e-14


@pytest.mark.usefixtures("float64")
@on_two_levels
def test_flips_follow_their_definition(domain):
    assert domain.is_two_level
    position, levels = some_position(domain)
    gradient = np.random.default_rng(1).normal(size=domain.shape)
    other = np.asarray(domain.from_levels(1 - levels))
    slopes = domain.flip_slopes(jnp.asarray(position), jnp.asarray(gradient))
    expected = [np.sum(gradient[i] * (other[i] - position[i])) for i in range(domain.num_sites)]
    np.testing.assert_allclose(slopes, expected, rtol=0, atol=1e-14)
    assert domain.squared_flip == pytest.approx(np.sum((other[0] - position[0]) ** 2))
    sites = np.arange(domain.num_sites) % 2 == 0
    flipped = np.asarray(domain.flip(jnp.asarray(position), jnp.asarray(sites)))
    np.testing.assert_array_equal(domain.to_levels(jnp.asarray(flipped)), np.where(sites, 1 - levels, levels))
    assert domain.contains(flipped)  # bit for bit, also for levels such as 0.1 and 0.7
    np.testing.assert_array_equal(domain.differs(jnp.asarray(flipped), jnp.asarray(position)), sites)


@on_every_domain
def test_replacing_sites_sets_their_levels_and_no_others(domain):
    position, levels = some_position(domain)
    sites, new_levels = np.array([2, 0]), np.array([1, 0])
    changed = domain.replace_sites(jnp.asarray(position, jnp.float32), sites, new_levels)
    expected = levels.copy()
    expected[sites] = new_levels
    np.testing.assert_array_equal(domain.to_levels(changed), expected)
    assert domain.contains(changed)


# ---- Sizes and identity --------------------------------------------------------------------------------


def test_sizes_of_the_domains():
    ragged = steppe.Categorical(3, [2, 3, 4])
    assert (ragged.num_states, ragged.max_levels, ragged.is_ragged, ragged.is_two_level) == (
        24,
        4,
        True,
        False,
    )
    assert ragged.level_mask.tolist() == [[True] * 2 + [False] * 2, [True] * 3 + [False], [True] * 4]
    assert steppe.Binary(100).num_states == 2**100
    units = {d: d.squared_unit for d in (steppe.Binary(2), steppe.Spin(2), steppe.Categorical(2, 5))}
    assert list(units.values()) == [1.0, 4.0, 2.0]
    assert steppe.Ordinal(2, [0.0, 3.0, 3.5]).squared_unit == 0.25


@pytest.mark.parametrize(
    ("domain", "dtype"),
    [
        (steppe.Spin(2), np.uint8),
        (steppe.Ordinal(2, 256), np.uint8),
        (steppe.Ordinal(2, 257), np.uint16),
        (steppe.Categorical(2, [2, 300]), np.uint16),
    ],
)
def test_levels_are_stored_in_the_smallest_unsigned_type(domain, dtype):
    assert domain.level_dtype == dtype
    position, levels = some_position(domain)
    stored = domain.to_levels(jnp.asarray(position))
    assert stored.dtype == dtype
    np.testing.assert_array_equal(stored, levels)


def test_more_than_a_million_states_are_not_enumerated():
    assert steppe.Binary(20).num_states == 2**20
    with pytest.raises(DomainError, match=r"Binary\(21\)"):
        steppe.Binary(21).enumerate()
    with pytest.raises(DomainError, match="about 1e6020 positions"):
        steppe.Binary(20_000).enumerate()


def test_a_million_sites_are_counted_at_once():
    # A product site by site takes some 10 s.
    started = time.process_time()
    assert steppe.Binary(10**6).num_states == 1 << 10**6
    assert time.process_time() - started < 2


def test_domains_are_equal_when_their_levels_are():
    assert steppe.Ordinal(3, 3) == steppe.Ordinal(3, [0, 1, 2])
    assert hash(steppe.Ordinal(3, 3)) == hash(steppe.Ordinal(3, [0, 1, 2]))
    assert steppe.Categorical(2, 3) == steppe.Categorical(2, [3, 3])
    different = [steppe.Binary(2), steppe.Binary(3), steppe.Spin(2), steppe.Categorical(2, 2)]
    different += [steppe.Categorical(2, [2, 3]), steppe.Ordinal(2, 2), steppe.Ordinal(2, [0.0, 2.0])]
    assert len(set(different)) == len(different)
    assert steppe.Binary(2) != "Binary(2)"


@on_every_domain
def test_representation_makes_the_domain_again(domain):
    assert eval(repr(domain), vars(steppe)) == domain
