"""Slow, plain NumPy oracle of the discrete Langevin samplers and their baselines.

Everything here is written from the formulas with loops in float64, so that it can be read against
the paper line by line and used to check a fast implementation number for number.

Notation in the docstrings: U = log_density (target pi ~ exp U), theta = position, a = center,
alpha = step_size, alpha_a = center_step_size, eta = coupling_variance, e_k = embedding of level k,
grad = gradient of U at theta. A dot is an inner product over the coordinates of one site.

A domain is an embedding table and nothing else:

* ``ScalarSites(levels, num_sites)``: a position is a length-n array of values from ``levels``;
* ``OneHotSites(num_levels)``: a position is an (n, max K_i) array with a single 1 per row. Columns
  beyond K_i do not exist: no sum runs over them, and a center returned from here holds 0 there.

``log_density(position)`` returns a float and ``gradient(position)`` an array shaped like position.
Arrays of any float type are accepted and widened to float64; pass step sizes as Python floats.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np

# --------------------------------------------------------------------------------------------------
# Domains
# --------------------------------------------------------------------------------------------------


class ScalarSites(NamedTuple):
    """Sites that share one list of real levels."""

    levels: tuple
    num_sites: int


class OneHotSites(NamedTuple):
    """Sites embedded as unit vectors, with K_i = num_levels[i] levels at site i."""

    num_levels: tuple


def number_of_sites(domain):
    """Return n."""
    return domain.num_sites if isinstance(domain, ScalarSites) else len(domain.num_levels)


def number_of_levels(domain, site):
    """Return K_i."""
    return len(domain.levels) if isinstance(domain, ScalarSites) else domain.num_levels[site]


def site_candidates(domain, site):
    """Return the list of e_k: reals, or unit vectors padded to the widest site."""
    if isinstance(domain, ScalarSites):
        return [float(level) for level in domain.levels]
    width = max(domain.num_levels)
    return [np.eye(width)[level] for level in range(domain.num_levels[site])]


def site_entries(domain, site):
    """Return the array indices of the coordinates of a site: (i,), or (i, 0) ... (i, K_i - 1)."""
    if isinstance(domain, ScalarSites):
        return [(site,)]
    return [(site, column) for column in range(domain.num_levels[site])]


def all_entries(domain):
    """Return the array indices of every coordinate that exists."""
    return [entry for site in range(number_of_sites(domain)) for entry in site_entries(domain, site)]


def set_level(domain, position, site, level):
    """Return a copy of the position with one site at the given level."""
    moved = np.array(position, dtype=float)
    moved[site] = site_candidates(domain, site)[level]
    return moved


def set_levels(domain, position, sites, levels):
    """Return a copy of the position with several sites at the given levels."""
    for site, level in zip(sites, levels, strict=True):
        position = set_level(domain, position, site, level)
    return position


def site_level(domain, position, site):
    """Return the level whose embedding is nearest the position at a site."""
    distances = []
    for level in range(number_of_levels(domain, site)):
        moved = set_level(domain, position, site, level)
        distances.append(squared_distance(moved, position, site_entries(domain, site)))
    return int(np.argmin(distances))


def position_levels(domain, position):
    """Return the tuple of levels of all sites."""
    return tuple(site_level(domain, position, site) for site in range(number_of_sites(domain)))


def position_from_levels(domain, levels):
    """Return the position whose site i is at levels[i]."""
    num_sites = number_of_sites(domain)
    scalar = isinstance(domain, ScalarSites)
    empty = np.zeros(num_sites) if scalar else np.zeros((num_sites, max(domain.num_levels)))
    return set_levels(domain, empty, range(num_sites), levels)


def enumerate_positions(domain):
    """Return all positions in lexicographic order of their levels, first site slowest."""
    ranges = [range(number_of_levels(domain, site)) for site in range(number_of_sites(domain))]
    return [position_from_levels(domain, levels) for levels in itertools.product(*ranges)]


# --------------------------------------------------------------------------------------------------
# Arithmetic
# --------------------------------------------------------------------------------------------------


def as_float64(values):
    """Return the values as a float64 array; None stays None."""
    return None if values is None else np.asarray(values, dtype=float)


def log_sum_exp(values):
    """Return log sum_k exp(v_k) = m + log sum_k exp(v_k - m), m = max_k v_k."""
    largest = max(values)
    if largest == -math.inf:
        return -math.inf
    return largest + math.log(sum(math.exp(value - largest) for value in values))


def log_normalise(scores):
    """Return s_k - log sum_j exp(s_j) as an array."""
    return np.array(scores, dtype=float) - log_sum_exp(scores)


def log_normalise_dict(scores):
    """Return the same for a dict of scores."""
    total = log_sum_exp(list(scores.values()))
    return {key: score - total for key, score in scores.items()}


def squared_distance(first, second, entries):
    """Return sum_j (first_j - second_j)^2 over the given entries."""
    return sum((float(first[j]) - float(second[j])) ** 2 for j in entries)


def accepts(log_ratio, uniform):
    """Return whether log u < log r."""
    return (math.log(uniform) if uniform > 0 else -math.inf) < log_ratio


# --------------------------------------------------------------------------------------------------
# Proposal of the position
# --------------------------------------------------------------------------------------------------


def langevin_scores(domain, position, gradient, center, step_size, coupling_variance, exact_coupling=False):
    """Return, per site, the list over levels k of the unnormalised log-probability.

    Linearised coupling (the paper's): g = grad - (theta - a) / eta and
    s_k = 1/2 g_i . (e_k - theta_i) - |e_k - theta_i|^2 / (2 alpha).
    Exact coupling: s_k = 1/2 grad_i . (e_k - theta_i)
    - [|e_k - a_i|^2 - |theta_i - a_i|^2] / (4 eta) - |e_k - theta_i|^2 / (2 alpha).
    Without a center the coupling term is absent. The current level always scores 0.
    """
    position, center = as_float64(position), as_float64(center)
    slope = as_float64(gradient(position))
    scores = []
    for site in range(number_of_sites(domain)):
        entries = site_entries(domain, site)
        site_scores = []
        for level in range(number_of_levels(domain, site)):
            moved = set_level(domain, position, site, level)
            score = -squared_distance(moved, position, entries) / (2 * step_size)
            for j in entries:
                score += 0.5 * slope[j] * (moved[j] - position[j])
                if center is not None and not exact_coupling:
                    pull = -(position[j] - center[j]) / coupling_variance
                    score += 0.5 * pull * (moved[j] - position[j])
            if center is not None and exact_coupling:
                change = squared_distance(moved, center, entries)
                change -= squared_distance(position, center, entries)
                score -= change / (4 * coupling_variance)
            site_scores.append(float(score))
        scores.append(site_scores)
    return scores


def langevin_log_probs(
    domain, position, gradient, center, step_size, coupling_variance, exact_coupling=False
):
    """Return, per site, the array of log q_i(level k) = s_k - log sum_j exp(s_j)."""
    scores = langevin_scores(domain, position, gradient, center, step_size, coupling_variance, exact_coupling)
    return [log_normalise(site_scores) for site_scores in scores]


def langevin_log_q(
    domain, position, gradient, center, step_size, coupling_variance, proposed, exact_coupling=False
):
    """Return log q(theta' | theta, a) = sum_i log q_i(theta'_i | theta, a)."""
    log_probs = langevin_log_probs(
        domain, position, gradient, center, step_size, coupling_variance, exact_coupling
    )
    levels = position_levels(domain, proposed)
    return float(sum(site[level] for site, level in zip(log_probs, levels, strict=True)))


# --------------------------------------------------------------------------------------------------
# Proposals of the center
# --------------------------------------------------------------------------------------------------


def center_langevin_mean(domain, position, center, center_step_size, coupling_variance):
    """Return a + (alpha_a / 2) (theta - a) / eta."""
    position, center = as_float64(position), as_float64(center)
    mean = np.zeros(position.shape)
    for j in all_entries(domain):
        pull = (position[j] - center[j]) / coupling_variance
        mean[j] = center[j] + 0.5 * center_step_size * pull
    return mean


def center_langevin_log_q(domain, position, center, proposed_center, center_step_size, coupling_variance):
    """Return log N(a'; center_langevin_mean, alpha_a I), normaliser -(d/2) log(2 pi alpha_a)."""
    mean = center_langevin_mean(domain, position, center, center_step_size, coupling_variance)
    return gaussian_log_density(domain, proposed_center, mean, center_step_size)


def gaussian_log_density(domain, value, mean, variance):
    """Return sum_j [-1/2 log(2 pi v) - (x_j - m_j)^2 / (2 v)] over the d coordinates that exist."""
    entries = all_entries(domain)
    normaliser = -0.5 * len(entries) * math.log(2 * math.pi * variance)
    return normaliser - squared_distance(value, mean, entries) / (2 * variance)


def exact_center_mean_var(domain, positions, coupling_variance):
    """Return mean and variance of p(a | theta_1 ... theta_R) = N(mean_r theta_r, eta / R).

    ``positions`` is a list of R replicas; with one it is N(theta, eta).
    """
    positions = [as_float64(position) for position in positions]
    mean = np.zeros(positions[0].shape)
    for j in all_entries(domain):
        mean[j] = sum(position[j] for position in positions) / len(positions)
    return mean, coupling_variance / len(positions)


def ou_mean_var(domain, position, center, coupling_variance, correlation):
    """Return mean theta + rho (a - theta) and variance eta (1 - rho^2) of the refreshed center.

    It leaves N(theta, eta) invariant; for R replicas pass their mean and eta / R.
    """
    position, center = as_float64(position), as_float64(center)
    mean = np.zeros(position.shape)
    for j in all_entries(domain):
        mean[j] = position[j] + correlation * (center[j] - position[j])
    return mean, coupling_variance * (1 - correlation**2)


def gaussian_from_normals(domain, mean, variance, normals):
    """Return m_j + sqrt(v) xi_j on the coordinates that exist, 0 elsewhere."""
    mean, normals = as_float64(mean), as_float64(normals)
    value = np.zeros(mean.shape)
    for j in all_entries(domain):
        value[j] = mean[j] + math.sqrt(variance) * normals[j]
    return value


# --------------------------------------------------------------------------------------------------
# Acceptance
# --------------------------------------------------------------------------------------------------


def log_joint(domain, log_density, position, center, coupling_variance):
    """Return U(theta) - |theta - a|^2 / (2 eta); without a center, U(theta)."""
    value = float(log_density(as_float64(position)))
    if center is None:
        return value
    return value - squared_distance(position, center, all_entries(domain)) / (2 * coupling_variance)


def glu_log_ratio(
    domain,
    position,
    proposed,
    center,
    log_density,
    gradient,
    *,
    step_size,
    coupling_variance,
    exact_coupling=False,
):
    """Return the log ratio of the move theta -> theta' given a.

    log p(theta', a) - log p(theta, a) + log q(theta | theta', a) - log q(theta' | theta, a).
    The same a appears in all four terms. A proposal of zero density has log ratio -inf, whatever
    the gradient is there.
    """
    gain = log_joint(domain, log_density, proposed, center, coupling_variance)
    gain -= log_joint(domain, log_density, position, center, coupling_variance)
    if gain == -math.inf:
        return -math.inf
    parameters = (gradient, center, step_size, coupling_variance)
    backward = langevin_log_q(domain, proposed, *parameters, position, exact_coupling)
    forward = langevin_log_q(domain, position, *parameters, proposed, exact_coupling)
    return gain + backward - forward


def dmala_log_ratio(domain, position, proposed, log_density, gradient, *, step_size):
    """Return U(theta') - U(theta) + log q(theta | theta') - log q(theta' | theta)."""
    return glu_log_ratio(
        domain,
        position,
        proposed,
        None,
        log_density,
        gradient,
        step_size=step_size,
        coupling_variance=None,
    )


def edmala_log_ratio(
    domain,
    position,
    center,
    proposed,
    proposed_center,
    log_density,
    gradient,
    *,
    step_size,
    center_step_size,
    coupling_variance,
    exact_coupling=False,
):
    """Return the log of the joint ratio of Algorithm 1, five terms.

    log p(theta', a') - log p(theta, a)
    + log q_alpha(theta | theta', a') - log q_alpha(theta' | theta, a)
    + log q_alpha_a(a | theta', a') - log q_alpha_a(a' | theta, a).
    A proposal of zero density has log ratio -inf, whatever the gradient is there.
    """
    gain = log_joint(domain, log_density, proposed, proposed_center, coupling_variance)
    gain -= log_joint(domain, log_density, position, center, coupling_variance)
    if gain == -math.inf:
        return -math.inf
    steps = (step_size, coupling_variance)
    backward = langevin_log_q(domain, proposed, gradient, proposed_center, *steps, position, exact_coupling)
    forward = langevin_log_q(domain, position, gradient, center, *steps, proposed, exact_coupling)
    center_steps = (center_step_size, coupling_variance)
    center_backward = center_langevin_log_q(domain, proposed, proposed_center, center, *center_steps)
    center_forward = center_langevin_log_q(domain, position, center, proposed_center, *center_steps)
    return gain + backward - forward + center_backward - center_forward


# --------------------------------------------------------------------------------------------------
# Next state from given random numbers
# --------------------------------------------------------------------------------------------------


def flip_from_uniform(logit, uniform):
    """Return whether a two-level site flips, an event of probability sigmoid(z).

    With e = exp(-|z|) the less likely outcome (flip if z < 0, stay if z >= 0) happens iff
    u (1 + e) < e.
    """
    small = math.exp(-abs(float(logit)))
    unlikely = float(uniform) * (1 + small) < small
    return bool(unlikely if logit < 0 else not unlikely)


def level_from_exponentials(log_probs, uniforms):
    """Return argmax_k log p_k - log E_k with E_k = -log1p(-u_k), an exact draw from p.

    Levels of zero probability are never chosen; uniforms beyond the last level are ignored.
    """
    keys = []
    for log_prob, uniform in zip(log_probs, uniforms, strict=False):
        exponential = -math.log1p(-float(uniform))
        log_exponential = math.log(exponential) if exponential > 0 else -math.inf
        keys.append(-math.inf if log_prob == -math.inf else log_prob - log_exponential)
    return int(np.argmax(keys))


def level_from_uniforms(scores, current, uniforms):
    """Return the next level of a site; the shape of its random numbers selects the convention.

    A single uniform: two-level site, flip with logit s_other - s_current. A row of uniforms: one
    per level (further ones are padding), by exponentials.
    """
    if np.ndim(uniforms) > 0:
        return level_from_exponentials(log_normalise(scores), uniforms)
    if len(scores) != 2:
        raise ValueError(f"One uniform decides a two-level site only; got {len(scores)} levels.")
    flips = flip_from_uniform(scores[1 - current] - scores[current], uniforms)
    return 1 - current if flips else current


def langevin_proposal(
    domain, position, uniforms, gradient, center, step_size, coupling_variance, exact_coupling=False
):
    """Return theta' with site i drawn from log q_i by uniforms[i] (see level_from_uniforms)."""
    scores = langevin_scores(domain, position, gradient, center, step_size, coupling_variance, exact_coupling)
    proposed = position
    for site, site_scores in enumerate(scores):
        current = site_level(domain, position, site)
        level = level_from_uniforms(site_scores, current, uniforms[site])
        proposed = set_level(domain, proposed, site, level)
    return proposed


class Step(NamedTuple):
    """One transition: the next state, the decision, and the proposal it was made about.

    Unadjusted samplers accept always; their log_ratio is the one a correction would have used.
    """

    position: np.ndarray
    center: np.ndarray | None
    accepted: bool
    log_ratio: float
    proposed: np.ndarray
    proposed_center: np.ndarray | None


def glu_position_step(
    domain,
    position,
    center,
    uniforms,
    accept_uniform,
    log_density,
    gradient,
    *,
    step_size,
    coupling_variance,
    exact_coupling=False,
):
    """Move theta given a fixed center (or none): propose, then accept iff log u < glu_log_ratio.

    With accept_uniform None the proposal is always accepted.
    """
    proposed = langevin_proposal(
        domain, position, uniforms, gradient, center, step_size, coupling_variance, exact_coupling
    )
    log_ratio = glu_log_ratio(
        domain,
        position,
        proposed,
        center,
        log_density,
        gradient,
        step_size=step_size,
        coupling_variance=coupling_variance,
        exact_coupling=exact_coupling,
    )
    accepted = accept_uniform is None or accepts(log_ratio, accept_uniform)
    following = proposed if accepted else np.array(position, dtype=float)
    return Step(following, center, accepted, log_ratio, proposed, center)


def dmala_step(domain, position, uniforms, accept_uniform, log_density, gradient, *, step_size):
    """Propose theta' ~ q(. | theta); accept iff log u < dmala_log_ratio."""
    return glu_position_step(
        domain,
        position,
        None,
        uniforms,
        accept_uniform,
        log_density,
        gradient,
        step_size=step_size,
        coupling_variance=None,
    )


def dula_step(domain, position, uniforms, log_density, gradient, *, step_size):
    """Move to theta' ~ q(. | theta)."""
    return dmala_step(domain, position, uniforms, None, log_density, gradient, step_size=step_size)


def edmala_step(
    domain,
    position,
    center,
    uniforms,
    normals,
    accept_uniform,
    log_density,
    gradient,
    *,
    step_size,
    center_step_size,
    coupling_variance,
    exact_coupling=False,
):
    """Propose theta' ~ q_alpha and a' = a + (alpha_a / 2)(theta - a) / eta + sqrt(alpha_a) xi.

    Both start from the old (theta, a). One decision: accept both iff log u < edmala_log_ratio, else
    keep both. With accept_uniform None the proposal is always accepted.
    """
    proposed = langevin_proposal(
        domain, position, uniforms, gradient, center, step_size, coupling_variance, exact_coupling
    )
    mean = center_langevin_mean(domain, position, center, center_step_size, coupling_variance)
    proposed_center = gaussian_from_normals(domain, mean, center_step_size, normals)
    log_ratio = edmala_log_ratio(
        domain,
        position,
        center,
        proposed,
        proposed_center,
        log_density,
        gradient,
        step_size=step_size,
        center_step_size=center_step_size,
        coupling_variance=coupling_variance,
        exact_coupling=exact_coupling,
    )
    if accept_uniform is None or accepts(log_ratio, accept_uniform):
        return Step(proposed, proposed_center, True, log_ratio, proposed, proposed_center)
    kept = np.array(position, dtype=float), np.array(center, dtype=float)
    return Step(*kept, False, log_ratio, proposed, proposed_center)


def edula_step(
    domain,
    position,
    center,
    uniforms,
    normals,
    log_density,
    gradient,
    *,
    step_size,
    center_step_size,
    coupling_variance,
    exact_coupling=False,
):
    """Move to the proposal of edmala_step."""
    return edmala_step(
        domain,
        position,
        center,
        uniforms,
        normals,
        None,
        log_density,
        gradient,
        step_size=step_size,
        center_step_size=center_step_size,
        coupling_variance=coupling_variance,
        exact_coupling=exact_coupling,
    )


def glu_step(
    domain,
    position,
    uniforms,
    normals,
    accept_uniform,
    log_density,
    gradient,
    *,
    step_size,
    coupling_variance,
    exact_coupling=False,
):
    """Draw a = theta + sqrt(eta) xi and keep it; then move theta given a (glu_position_step).

    The old center is forgotten, so it is no argument. accept_uniform None: unadjusted.
    """
    mean, variance = exact_center_mean_var(domain, [position], coupling_variance)
    center = gaussian_from_normals(domain, mean, variance, normals)
    return glu_position_step(
        domain,
        position,
        center,
        uniforms,
        accept_uniform,
        log_density,
        gradient,
        step_size=step_size,
        coupling_variance=coupling_variance,
        exact_coupling=exact_coupling,
    )


def ou_step(
    domain,
    position,
    center,
    uniforms,
    normals,
    accept_uniform,
    log_density,
    gradient,
    *,
    step_size,
    coupling_variance,
    correlation,
    exact_coupling=False,
):
    """Draw a' = theta + rho (a - theta) + sqrt(eta (1 - rho^2)) xi and keep it; then move theta.

    rho = 0 is glu_step. accept_uniform None: unadjusted.
    """
    mean, variance = ou_mean_var(domain, position, center, coupling_variance, correlation)
    refreshed = gaussian_from_normals(domain, mean, variance, normals)
    return glu_position_step(
        domain,
        position,
        refreshed,
        uniforms,
        accept_uniform,
        log_density,
        gradient,
        step_size=step_size,
        coupling_variance=coupling_variance,
        exact_coupling=exact_coupling,
    )


# --------------------------------------------------------------------------------------------------
# Baselines
# --------------------------------------------------------------------------------------------------


def block_log_probs(domain, position, sites, log_density):
    """Return {levels of the block: log p} with p ~ exp U, all other sites held at theta."""
    ranges = [range(number_of_levels(domain, site)) for site in sites]
    scores = {}
    for levels in itertools.product(*ranges):
        scores[levels] = float(log_density(set_levels(domain, position, sites, levels)))
    return log_normalise_dict(scores)


def gibbs_site_log_probs(domain, position, site, log_density):
    """Return the array over k of log p(theta_i = e_k | all other sites)."""
    return np.array(list(block_log_probs(domain, position, [site], log_density).values()))


def hamming_ball(domain, levels, sites, radius):
    """Return all level tuples of the block that differ from ``levels`` in at most radius sites."""
    ranges = [range(number_of_levels(domain, site)) for site in sites]

    def distance(other):
        return sum(x != y for x, y in zip(levels, other, strict=True))

    return [other for other in itertools.product(*ranges) if distance(other) <= radius]


def hamming_ball_log_transition(domain, position, sites, radius, log_density):
    """Return {levels of the block: log P(theta' | theta)}, always accepted.

    P(theta' | theta) = sum over u in B(theta) of 1/|B(theta)| * exp U(theta') 1[theta' in B(u)]
    / sum over v in B(u) of exp U(v); B is the radius ball of the block, counting differing sites.
    """
    current = tuple(site_level(domain, position, site) for site in sites)
    first_ball = hamming_ball(domain, current, sites, radius)
    terms = {}
    for intermediate in first_ball:
        scores = {}
        for levels in hamming_ball(domain, intermediate, sites, radius):
            scores[levels] = float(log_density(set_levels(domain, position, sites, levels)))
        for levels, log_prob in log_normalise_dict(scores).items():
            terms.setdefault(levels, []).append(log_prob - math.log(len(first_ball)))
    return {levels: log_sum_exp(values) for levels, values in terms.items()}


def gwg_scores(domain, position, gradient):
    """Return {(i, k): 1/2 grad_i . (e_k - theta_i)} over all sites i and levels k not current."""
    position = as_float64(position)
    slope = as_float64(gradient(position))
    scores = {}
    for site in range(number_of_sites(domain)):
        current = site_level(domain, position, site)
        for level in range(number_of_levels(domain, site)):
            if level == current:
                continue
            moved = set_level(domain, position, site, level)
            entries = site_entries(domain, site)
            dot = sum(slope[j] * (moved[j] - position[j]) for j in entries)
            scores[site, level] = float(0.5 * dot)
    return scores


def gwg_log_probs(domain, position, gradient):
    """Return {(i, k): log probability}, softmax of gwg_scores over all moves."""
    return log_normalise_dict(gwg_scores(domain, position, gradient))


def gwg_path_log_prob(domain, position, gradient, moves):
    """Return the log-probability of picking these moves, in this order, on distinct sites.

    sum_x [s(m_x) - log sum of exp s(m) over moves m on sites not picked before x]; all s are
    computed at theta.
    """
    remaining = gwg_scores(domain, position, gradient)
    total = 0.0
    for site, level in moves:
        total += log_normalise_dict(remaining)[site, level]
        remaining = {move: score for move, score in remaining.items() if move[0] != site}
    return total


def gwg_log_ratio(domain, position, log_density, gradient, moves):
    """Return U(theta') - U(theta) + log path(theta' -> theta) - log path(theta -> theta').

    The reverse path undoes the moves in reverse order, with weights computed at theta'. A proposal
    of zero density has log ratio -inf.
    """
    sites = [site for site, _ in moves]
    proposed = set_levels(domain, position, sites, [level for _, level in moves])
    gain = float(log_density(proposed)) - float(log_density(as_float64(position)))
    if gain == -math.inf:
        return -math.inf
    undo = [(site, site_level(domain, position, site)) for site in reversed(sites)]
    backward = gwg_path_log_prob(domain, proposed, gradient, undo)
    return gain + backward - gwg_path_log_prob(domain, position, gradient, moves)


# --------------------------------------------------------------------------------------------------
# Transition matrices by enumeration
# --------------------------------------------------------------------------------------------------


def transition_matrix(domain, branches):
    """Return P over enumerate_positions(domain).

    ``branches(position)`` yields (proposed position, log probability, log ratio); a branch moves
    with probability q min(1, r) and stays with q (1 - min(1, r)). Log ratio 0: always accepted.
    """
    positions = enumerate_positions(domain)
    index = {position_levels(domain, position): row for row, position in enumerate(positions)}
    matrix = np.zeros((len(positions), len(positions)))
    for row, position in enumerate(positions):
        for proposed, log_prob, log_ratio in branches(position):
            moves, stays = math.exp(min(0.0, log_ratio)), -math.expm1(min(0.0, log_ratio))
            matrix[row, index[position_levels(domain, proposed)]] += math.exp(log_prob) * moves
            matrix[row, row] += math.exp(log_prob) * stays
    return matrix


def dula_matrix(domain, gradient, *, step_size, center=None, coupling_variance=None, exact_coupling=False):
    """Return P(theta, theta') = q(theta' | theta, a), for a fixed center or none."""

    def branches(position):
        log_probs = langevin_log_probs(
            domain, position, gradient, center, step_size, coupling_variance, exact_coupling
        )
        for proposed in enumerate_positions(domain):
            levels = position_levels(domain, proposed)
            log_q = sum(site[level] for site, level in zip(log_probs, levels, strict=True))
            yield proposed, log_q, 0.0

    return transition_matrix(domain, branches)


def dmala_matrix(
    domain,
    log_density,
    gradient,
    *,
    step_size,
    center=None,
    coupling_variance=None,
    exact_coupling=False,
):
    """Return P(theta, theta') = q min(1, r) off the diagonal, for a fixed center or none."""

    def branches(position):
        parameters = (gradient, center, step_size, coupling_variance)
        for proposed in enumerate_positions(domain):
            log_q = langevin_log_q(domain, position, *parameters, proposed, exact_coupling)
            log_ratio = glu_log_ratio(
                domain,
                position,
                proposed,
                center,
                log_density,
                gradient,
                step_size=step_size,
                coupling_variance=coupling_variance,
                exact_coupling=exact_coupling,
            )
            yield proposed, log_q, log_ratio

    return transition_matrix(domain, branches)


def blocks_of_size(domain, size):
    """Return all blocks of ``size`` sites, each in increasing order."""
    return list(itertools.combinations(range(number_of_sites(domain)), size))


def block_gibbs_matrix(domain, log_density, blocks):
    """Return P = mean over blocks of the exact conditional given the sites outside the block."""

    def branches(position):
        for sites in blocks:
            for levels, log_prob in block_log_probs(domain, position, sites, log_density).items():
                proposed = set_levels(domain, position, sites, levels)
                yield proposed, log_prob - math.log(len(blocks)), 0.0

    return transition_matrix(domain, branches)


def gibbs_matrix(domain, log_density):
    """Return P of random-scan Gibbs: one site, uniform, from its conditional."""
    return block_gibbs_matrix(domain, log_density, blocks_of_size(domain, 1))


def hamming_ball_matrix(domain, log_density, blocks, radius):
    """Return P = mean over blocks of hamming_ball_log_transition."""

    def branches(position):
        for sites in blocks:
            row = hamming_ball_log_transition(domain, position, sites, radius, log_density)
            for levels, log_prob in row.items():
                proposed = set_levels(domain, position, sites, levels)
                yield proposed, log_prob - math.log(len(blocks)), 0.0

    return transition_matrix(domain, branches)


def gwg_matrix(domain, log_density, gradient, num_moves=1):
    """Return P of GWG-X: ordered paths of X moves on distinct sites, each with its own ratio."""

    def branches(position):
        for sites in itertools.permutations(range(number_of_sites(domain)), num_moves):
            options = []
            for site in sites:
                current = site_level(domain, position, site)
                levels = range(number_of_levels(domain, site))
                options.append([(site, level) for level in levels if level != current])
            for moves in itertools.product(*options):
                proposed = set_levels(domain, position, sites, [level for _, level in moves])
                log_prob = gwg_path_log_prob(domain, position, gradient, moves)
                log_ratio = gwg_log_ratio(domain, position, log_density, gradient, moves)
                yield proposed, log_prob, log_ratio

    return transition_matrix(domain, branches)


def target_probabilities(domain, log_density):
    """Return pi(theta) = exp U(theta) / Z over enumerate_positions(domain)."""
    scores = [float(log_density(position)) for position in enumerate_positions(domain)]
    return np.exp(log_normalise(scores))


def stationary(matrix):
    """Return the row vector p with p P = p, by Grassmann-Taksar-Heyman elimination.

    Only sums, products and quotients of off-diagonal entries occur, so no digits cancel.
    """
    reduced = np.array(matrix, dtype=float)
    size = len(reduced)
    for last in range(size - 1, 0, -1):
        reduced[:last, last] /= sum(reduced[last, :last])
        for row in range(last):
            for column in range(last):
                if row != column:
                    reduced[row, column] += reduced[row, last] * reduced[last, column]
    weights = np.ones(size)
    for state in range(1, size):
        weights[state] = sum(weights[i] * reduced[i, state] for i in range(state))
    return weights / sum(weights)


def detailed_balance_error(matrix, probabilities):
    """Return the largest |pi_i P_ij - pi_j P_ji|."""
    flow = np.array(probabilities)[:, None] * np.array(matrix)
    return float(np.max(np.abs(flow - flow.T)))


def total_variation(first, second):
    """Return 1/2 sum |p - q|."""
    return 0.5 * float(sum(abs(p - q) for p, q in zip(first, second, strict=True)))


# --------------------------------------------------------------------------------------------------
# The four-dimensional joint Bernoulli target
# --------------------------------------------------------------------------------------------------


def bernoulli4_probabilities():
    """Return the 16 tabulated p(b1 b2 b3 b4), b1 most significant; they sum to 1 + 4e-8."""
    return np.array(
        [
            [0.07688966, 0.04725621, 0.125, 0.01667631],
            [0.08688745, 0.07688966, 0.07688966, 0.16756987],
            [0.04725621, 0.05825, 0.01667631, 0.04725621],
            [0.07688966, 0.04725621, 0.019004, 0.01335262],
        ]
    ).reshape(16)


def multilinear_log_density(position, corner_values=None):
    """Return U(theta) = sum over corners s of v_s prod_i [theta_i if s_i else 1 - theta_i].

    ``corner_values`` are in lexicographic order of s; the default is log bernoulli4_probabilities.
    """
    values = np.log(bernoulli4_probabilities()) if corner_values is None else corner_values
    corners = itertools.product((0, 1), repeat=len(position))
    total = 0.0
    for value, corner in zip(values, corners, strict=True):
        weight = 1.0
        for bit, coordinate in zip(corner, position, strict=True):
            weight *= coordinate if bit else 1 - coordinate
        total += value * weight
    return float(total)


def multilinear_gradient(position, corner_values=None):
    """Return d_i U = U(theta with theta_i = 1) - U(theta with theta_i = 0)."""
    slope = np.zeros(len(position))
    for i in range(len(position)):
        upper, lower = np.array(position, dtype=float), np.array(position, dtype=float)
        upper[i], lower[i] = 1.0, 0.0
        slope[i] = multilinear_log_density(upper, corner_values)
        slope[i] -= multilinear_log_density(lower, corner_values)
    return slope
