"""The oracle agrees with itself, with hand-written binary formulas and with published figures."""

import math

import numpy as np
import pytest

import oracle

BINARY4 = oracle.ScalarSites((0.0, 1.0), 4)
ORDINAL = oracle.ScalarSites((-1.0, 0.5, 2.0), 3)
ONE_HOT = oracle.OneHotSites((2, 3, 2))


def polynomial_target(shape):
    """Return U(x) = b.x + x.W.x + c.x^3 (not quadratic) and its gradient, x the flat position."""
    rng = np.random.default_rng(5)
    size = int(np.prod(shape))
    linear, cubic = rng.normal(size=size), 0.2 * rng.normal(size=size)
    pairs = 0.3 * rng.normal(size=(size, size))

    def log_density(position):
        x = np.ravel(position)
        return float(linear @ x + x @ pairs @ x + cubic @ x**3)

    def gradient(position):
        x = np.ravel(position)
        return np.reshape(linear + (pairs + pairs.T) @ x + 3 * cubic * x**2, shape)

    return log_density, gradient


def one_hot_target():
    """Return a polynomial target whose gradient is NaN in the columns that do not exist."""
    log_density, gradient = polynomial_target((3, 3))

    def padded_gradient(position):
        slope = gradient(position)
        slope[[0, 2], 2] = np.nan
        return slope

    return log_density, padded_gradient


TARGETS = {
    "ordinal": (ORDINAL, *polynomial_target((3,))),
    "one_hot": (ONE_HOT, *one_hot_target()),
}


def matrices(domain, log_density, gradient):
    """Return the transition matrices of all samplers that leave the target invariant."""
    pairs = oracle.blocks_of_size(domain, 2)
    triple = oracle.blocks_of_size(domain, 3)
    return {
        "dmala": oracle.dmala_matrix(domain, log_density, gradient, step_size=0.7),
        "gibbs": oracle.gibbs_matrix(domain, log_density),
        "block_gibbs": oracle.block_gibbs_matrix(domain, log_density, pairs),
        "hamming_ball": oracle.hamming_ball_matrix(domain, log_density, triple, 1),
        "hamming_ball_pairs": oracle.hamming_ball_matrix(domain, log_density, pairs, 1),
        "gwg": oracle.gwg_matrix(domain, log_density, gradient),
        "gwg_two_moves": oracle.gwg_matrix(domain, log_density, gradient, num_moves=2),
    }


@pytest.fixture(scope="module", params=sorted(TARGETS))
def enumerated(request):
    domain, log_density, gradient = TARGETS[request.param]
    target = oracle.target_probabilities(domain, log_density)
    return target, matrices(domain, log_density, gradient)


def random_state(domain, seed):
    """Return a position, a center, and a proposal of both."""
    rng = np.random.default_rng(seed)
    positions = oracle.enumerate_positions(domain)
    position, proposed = (positions[i] for i in rng.integers(len(positions), size=2))
    center = position + 0.5 * rng.normal(size=position.shape)
    return position, center, proposed, center + 0.3 * rng.normal(size=position.shape)


def assert_counts_follow(counts, probs):
    """Check counts against Bernstein's bound, each cell with false-alarm rate at most 1e-6."""
    size, depth = np.sum(counts), math.log(2 / 1e-6)
    variance = size * probs * (1 - probs)
    bound = depth / 3 + np.sqrt((depth / 3) ** 2 + 2 * depth * variance)
    assert np.all(np.abs(counts - size * probs) <= bound)


def test_positions_are_lexicographic_with_the_first_site_slowest():
    levels = [oracle.position_levels(ONE_HOT, p) for p in oracle.enumerate_positions(ONE_HOT)]
    assert levels == sorted(levels)
    assert len(set(levels)) == len(levels) == 12


def test_rows_of_transition_matrices_sum_to_one(enumerated):
    for name, matrix in enumerated[1].items():
        assert np.all(matrix >= 0), name
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=0, atol=1e-13, err_msg=name)


def test_corrected_and_exact_kernels_satisfy_detailed_balance(enumerated):
    target, named = enumerated
    for name, matrix in named.items():
        assert oracle.detailed_balance_error(matrix, target) < 1e-12, name


def test_stationary_distribution_of_irreducible_kernels_is_the_target(enumerated):
    target, named = enumerated
    for name in ("dmala", "gibbs", "block_gibbs", "hamming_ball", "gwg"):
        np.testing.assert_allclose(oracle.stationary(named[name]), target, rtol=1e-10, err_msg=name)


@pytest.mark.parametrize("name", sorted(TARGETS))
@pytest.mark.parametrize("exact_coupling", [False, True])
def test_metropolis_given_a_center_leaves_the_conditional_invariant(name, exact_coupling):
    domain, log_density, gradient = TARGETS[name]
    center = random_state(domain, 11)[1]

    def conditional(position):
        return oracle.log_joint(domain, log_density, position, center, 0.6)

    matrix = oracle.dmala_matrix(
        domain,
        log_density,
        gradient,
        step_size=0.9,
        center=center,
        coupling_variance=0.6,
        exact_coupling=exact_coupling,
    )
    target = oracle.target_probabilities(domain, conditional)
    assert oracle.detailed_balance_error(matrix, target) < 1e-12


def test_dula_is_biased_on_a_target_that_is_not_quadratic():
    domain, log_density, gradient = TARGETS["ordinal"]
    matrix = oracle.dula_matrix(domain, gradient, step_size=0.7)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=0, atol=1e-13)
    distribution = oracle.stationary(matrix)
    np.testing.assert_allclose(distribution @ matrix, distribution, rtol=1e-12)
    assert oracle.total_variation(distribution, oracle.target_probabilities(domain, log_density)) > 0.01


@pytest.mark.parametrize(
    ("step_size", "flat", "sharp", "distance"),
    [
        (0.1, ".1453", ".2897", ".0033"),
        (0.1225, ".1454", ".2854", ".0083"),
        (0.2, ".1465", ".2595", ".0383"),
        (0.4, ".1476", ".1993", ".108"),
        (0.6, ".1467", ".1730", ".139"),
        (1.0, ".1445", ".1539", ".161"),
    ],
)
def test_dula_distribution_on_the_bernoulli_target_has_the_published_figures(
    step_size, flat, sharp, distance
):
    matrix = oracle.dula_matrix(BINARY4, oracle.multilinear_gradient, step_size=step_size)
    distribution = oracle.stationary(matrix)
    target = oracle.target_probabilities(BINARY4, oracle.multilinear_log_density)
    figures = {
        flat: distribution[0b0100] + distribution[0b1001],
        sharp: distribution[0b0010] + distribution[0b0111],
        distance: oracle.total_variation(distribution, target),
    }
    for printed, value in figures.items():
        assert f"{value:.{len(printed) - 1}f}".lstrip("0") == printed


def test_multilinear_target_interpolates_its_table_and_differentiates_it():
    target = oracle.target_probabilities(BINARY4, oracle.multilinear_log_density)
    table = oracle.bernoulli4_probabilities()
    np.testing.assert_allclose(target, table / table.sum(), rtol=1e-13)
    point, width = np.array([0.2, 0.9, 0.4, 0.5]), 1e-5
    for i, slope in enumerate(oracle.multilinear_gradient(point)):
        shift = width * np.eye(4)[i]
        rise = oracle.multilinear_log_density(point + shift)
        rise -= oracle.multilinear_log_density(point - shift)
        assert slope == pytest.approx(rise / (2 * width), rel=1e-8)


@pytest.mark.parametrize("center", [None, np.array([0.3, -0.4, 1.6, 0.9])])
def test_binary_langevin_log_q_is_a_product_of_sigmoids(center):
    position, proposed = np.array([0.0, 1.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0, 0.0])
    slope = oracle.multilinear_gradient(position)
    if center is not None:
        slope = slope - (position - center) / 0.25
    logits = 0.5 * (1 - 2 * position) * slope - 1 / (2 * 0.4)
    signs = np.where(proposed != position, 1, -1)
    expected = -np.log1p(np.exp(-signs * logits)).sum()
    log_q = oracle.langevin_log_q(BINARY4, position, oracle.multilinear_gradient, center, 0.4, 0.25, proposed)
    assert log_q == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_exact_coupling_is_linearised_coupling_at_a_smaller_step(name):
    domain, _, gradient = TARGETS[name]
    position, center, _, _ = random_state(domain, 2)
    exact = oracle.langevin_log_probs(domain, position, gradient, center, 0.8, 0.3, True)
    smaller = 1 / (1 / 0.8 + 1 / (2 * 0.3))
    linear = oracle.langevin_log_probs(domain, position, gradient, center, smaller, 0.3)
    for left, right in zip(exact, linear, strict=True):
        np.testing.assert_allclose(left, right, rtol=0, atol=1e-13)


def test_edmala_log_ratio_is_the_five_term_formula_written_out_for_bits():
    position, center, proposed, proposed_center = random_state(BINARY4, 3)
    step_size, center_step_size, variance = 0.4, 0.1, 0.3

    def joint(x, a):
        return oracle.multilinear_log_density(x) - ((x - a) ** 2).sum() / (2 * variance)

    def log_q(x, a, y):
        slope = oracle.multilinear_gradient(x) - (x - a) / variance
        logits = 0.5 * (1 - 2 * x) * slope - 1 / (2 * step_size)
        return -np.log1p(np.exp(np.where(x != y, -logits, logits))).sum()

    def log_q_center(x, a, b):
        drift = center_step_size / 2 * (x - a) / variance
        return -((b - a - drift) ** 2).sum() / (2 * center_step_size)

    expected = joint(proposed, proposed_center) - joint(position, center)
    expected += log_q(proposed, proposed_center, position) - log_q(position, center, proposed)
    expected += log_q_center(proposed, proposed_center, center)
    expected -= log_q_center(position, center, proposed_center)
    ratio = oracle.edmala_log_ratio(
        BINARY4,
        position,
        center,
        proposed,
        proposed_center,
        oracle.multilinear_log_density,
        oracle.multilinear_gradient,
        step_size=step_size,
        center_step_size=center_step_size,
        coupling_variance=variance,
    )
    assert ratio == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_edmala_log_ratio_changes_sign_when_the_move_is_reversed(name):
    domain, log_density, gradient = TARGETS[name]
    position, center, proposed, proposed_center = random_state(domain, 4)
    numbers = {"step_size": 0.5, "center_step_size": 0.2, "coupling_variance": 0.4}
    functions = (log_density, gradient)
    there = (domain, position, center, proposed, proposed_center, *functions)
    back = (domain, proposed, proposed_center, position, center, *functions)
    ratio = oracle.edmala_log_ratio(*there, **numbers)
    assert ratio == pytest.approx(-oracle.edmala_log_ratio(*back, **numbers), rel=1e-12)


def test_center_densities_ignore_columns_that_do_not_exist():
    position, center, _, proposed_center = random_state(ONE_HOT, 6)
    log_q = oracle.center_langevin_log_q(ONE_HOT, position, center, proposed_center, 0.2, 0.5)
    center[0, 2], proposed_center[2, 2] = 1e3, -1e3
    assert log_q == oracle.center_langevin_log_q(ONE_HOT, position, center, proposed_center, 0.2, 0.5)
    coordinates = np.array([True, True, False] + [True] * 5 + [False]).reshape(3, 3)
    mean = position * 0.2 + center * 0.8
    squares = (((proposed_center - mean) ** 2)[coordinates]).sum()
    assert log_q == pytest.approx(-3.5 * math.log(2 * math.pi * 0.2) - squares / 0.4, rel=1e-12)
    assert np.all(oracle.gaussian_from_normals(ONE_HOT, mean, 1.0, mean)[~coordinates] == 0)


def test_ou_refresh_composes_to_the_exact_center_distribution():
    position, center, _, _ = random_state(ORDINAL, 7)
    mean, variance = oracle.ou_mean_var(ORDINAL, position, center, 0.7, 0.0)
    exact_mean, exact_variance = oracle.exact_center_mean_var(ORDINAL, [position], 0.7)
    np.testing.assert_array_equal(mean, exact_mean)
    assert variance == exact_variance == 0.7
    mean, variance = oracle.ou_mean_var(ORDINAL, position, center, 0.7, 0.6)
    assert variance + 0.6**2 * 0.7 == pytest.approx(0.7, rel=1e-15)
    np.testing.assert_allclose(mean - position, 0.6 * (center - position), rtol=1e-13)
    replicas = [np.zeros(3), np.ones(3), 2 * np.ones(3), np.ones(3)]
    mean, variance = oracle.exact_center_mean_var(ORDINAL, replicas, 0.8)
    np.testing.assert_array_equal(mean, np.ones(3))
    assert variance == 0.2


@pytest.mark.parametrize("logit", [-30.0, -2.0, -0.1, 0.0, 0.1, 2.0, 30.0])
def test_flip_frequency_over_a_grid_of_uniforms_is_the_sigmoid(logit):
    size = 2000
    flips = sum(oracle.flip_from_uniform(logit, (i + 0.5) / size) for i in range(size))
    assert flips / size == pytest.approx(1 / (1 + math.exp(-logit)), abs=1 / size)


def test_flips_stay_exact_at_huge_logits():
    assert not oracle.flip_from_uniform(-1e4, 0.0)
    assert oracle.flip_from_uniform(1e4, 0.0)
    assert oracle.flip_from_uniform(-700.0, 0.0)


def test_level_frequency_from_exponentials_is_the_probability():
    probs, size = np.array([0.1, 0.6, 0.0, 0.3]), 20_000
    with np.errstate(divide="ignore"):
        log_probs = np.log(probs)
    uniforms = np.random.default_rng(8).random((size, 5))
    counts = np.bincount([oracle.level_from_exponentials(log_probs, row) for row in uniforms], minlength=4)
    assert counts[2] == 0
    assert_counts_follow(counts, probs)


def test_level_draw_survives_a_uniform_of_zero():
    assert oracle.level_from_exponentials([-5.0, -0.1, -math.inf], [0.0, 0.9, 0.0]) == 0


def draw(domain, seed):
    """Return uniforms (one per site if all have two levels, else one per level) and normals."""
    rng = np.random.default_rng(seed)
    position = oracle.enumerate_positions(domain)[-1]
    if domain is BINARY4:
        return rng.random(4), rng.normal(size=4)
    return rng.random((len(position), 3)), rng.normal(size=position.shape)


STEP_TARGETS = TARGETS | {"binary": (BINARY4, oracle.multilinear_log_density, oracle.multilinear_gradient)}


@pytest.mark.parametrize("name", sorted(STEP_TARGETS))
def test_joint_step_moves_or_keeps_position_and_center_together(name):
    domain, *functions = STEP_TARGETS[name]
    position, center, _, _ = random_state(domain, 9)
    uniforms, normals = draw(domain, 10)
    numbers = {"step_size": 2.0, "center_step_size": 0.2, "coupling_variance": 0.5}
    state = (domain, position, center, uniforms, normals)
    free = oracle.edula_step(*state, *functions, **numbers)
    threshold = math.exp(min(0.0, free.log_ratio))
    taken = oracle.edmala_step(*state, threshold * 0.999, *functions, **numbers)
    assert taken.accepted
    np.testing.assert_array_equal(taken.position, free.position)
    np.testing.assert_array_equal(taken.center, free.center)
    for j in oracle.all_entries(domain):
        drift = 0.1 * (position[j] - center[j]) / 0.5
        moved = center[j] + drift + math.sqrt(0.2) * normals[j]
        assert free.center[j] == pytest.approx(moved, rel=1e-12)
    if threshold < 1:
        refused = oracle.edmala_step(*state, (1 + threshold) / 2, *functions, **numbers)
        assert not refused.accepted
        np.testing.assert_array_equal(refused.position, position)
        np.testing.assert_array_equal(refused.center, center)


@pytest.mark.parametrize("name", sorted(STEP_TARGETS))
def test_alternating_step_keeps_the_refreshed_center_after_a_rejection(name):
    domain, log_density, gradient = STEP_TARGETS[name]
    position, center, _, _ = random_state(domain, 9)
    uniforms, normals = draw(domain, 12)

    def peaked(x):
        return log_density(x) - 1e3 * float(np.any(x != position))

    numbers = {"step_size": 1e6, "coupling_variance": 0.5}
    rest = (uniforms, normals, 0.5, peaked, gradient)
    glu = oracle.glu_step(domain, position, *rest, **numbers)
    ou = oracle.ou_step(domain, position, center, *rest, correlation=0.0, **numbers)
    assert not glu.accepted
    np.testing.assert_array_equal(glu.position, position)
    np.testing.assert_array_equal(glu.center, ou.center)
    assert glu.log_ratio == ou.log_ratio
    for j in oracle.all_entries(domain):
        assert glu.center[j] == position[j] + math.sqrt(0.5) * normals[j]


def test_frequency_of_dmala_steps_is_the_row_of_its_transition_matrix():
    domain, *functions = STEP_TARGETS["binary"]
    position = oracle.enumerate_positions(domain)[7]
    row = oracle.dmala_matrix(domain, *functions, step_size=0.6)[7]
    rng, counts = np.random.default_rng(13), np.zeros(16)
    for _ in range(1000):
        step = oracle.dmala_step(domain, position, rng.random(4), rng.random(), *functions, step_size=0.6)
        counts[int(step.position @ [8, 4, 2, 1])] += 1
    assert_counts_follow(counts, row)


@pytest.mark.parametrize("name", sorted(STEP_TARGETS))
def test_single_precision_arrays_are_computed_with_in_double_precision(name):
    domain, *functions = STEP_TARGETS[name]
    position, center, _, _ = random_state(domain, 14)
    arrays = [np.float32(array) for array in (position, center, *draw(domain, 15))]
    numbers = {"step_size": 0.7, "center_step_size": 0.2, "coupling_variance": 0.5}
    narrow = oracle.edula_step(domain, *arrays, *functions, **numbers)
    wide = oracle.edula_step(domain, *map(np.float64, arrays), *functions, **numbers)
    assert narrow.log_ratio == wide.log_ratio
    assert narrow.position.dtype == narrow.center.dtype == np.float64
    np.testing.assert_array_equal(narrow.position, wide.position)
    np.testing.assert_array_equal(narrow.center, wide.center)


def test_a_proposal_of_zero_density_is_rejected_without_using_its_gradient():
    start, end = np.zeros(4), np.ones(4)

    def log_density(position):
        return -math.inf if position[0] else 0.0

    def gradient(position):
        return np.full(4, np.nan) if position[0] else np.zeros(4)

    ratio = oracle.dmala_log_ratio(BINARY4, start, end, log_density, gradient, step_size=0.5)
    assert ratio == -math.inf
    assert not oracle.accepts(ratio, 0.0)


def test_hamming_ball_as_wide_as_its_block_is_block_gibbs():
    domain, log_density, _ = TARGETS["one_hot"]
    blocks = oracle.blocks_of_size(domain, 2)
    wide = oracle.hamming_ball_matrix(domain, log_density, blocks, 2)
    exact = oracle.block_gibbs_matrix(domain, log_density, blocks)
    np.testing.assert_allclose(wide, exact, rtol=0, atol=1e-14)


def test_gwg_paths_over_all_orders_and_levels_have_total_probability_one():
    domain, _, gradient = TARGETS["one_hot"]
    position = oracle.enumerate_positions(domain)[5]
    first = oracle.gwg_log_probs(domain, position, gradient)
    assert len(first) == 4
    total = 0.0
    for move in first:
        for other in first:
            if other[0] != move[0]:
                path = oracle.gwg_path_log_prob(domain, position, gradient, [move, other])
                total += math.exp(path)
    assert total == pytest.approx(1.0, rel=1e-13)
    one = next(iter(first))
    assert oracle.gwg_path_log_prob(domain, position, gradient, [one]) == first[one]


def test_gwg_reverse_path_undoes_the_moves_in_reverse_order():
    """Either order leaves the target invariant, so only the formula itself can tell them apart."""
    position, proposed = np.array([0.0, 1.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0, 1.0])

    def log_pick(x, sites):
        weights = np.exp(0.5 * (1 - 2 * x) * oracle.multilinear_gradient(x))
        first, second = (weights[site] for site in sites)
        return math.log(first / weights.sum() * second / (weights.sum() - first))

    expected = oracle.multilinear_log_density(proposed) - oracle.multilinear_log_density(position)
    expected += log_pick(proposed, [1, 3]) - log_pick(position, [3, 1])
    log_density, gradient = STEP_TARGETS["binary"][1:]
    ratio = oracle.gwg_log_ratio(BINARY4, position, log_density, gradient, [(3, 1), (1, 0)])
    assert ratio == pytest.approx(expected, rel=1e-12)
    other = expected - log_pick(proposed, [1, 3]) + log_pick(proposed, [3, 1])
    assert abs(other - expected) > 1e-3


def test_gibbs_site_distribution_is_the_sigmoid_of_the_flip_difference():
    position = np.array([0.0, 1.0, 0.0, 1.0])
    flipped = np.array([0.0, 1.0, 1.0, 1.0])
    log_probs = oracle.gibbs_site_log_probs(BINARY4, position, 2, oracle.multilinear_log_density)
    gain = oracle.multilinear_log_density(flipped) - oracle.multilinear_log_density(position)
    assert log_probs[1] == pytest.approx(-math.log1p(math.exp(-gain)), rel=1e-13)
