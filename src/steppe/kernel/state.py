"""What a chain carries from step to step, and what a step reports."""

from typing import Any, NamedTuple

from jax import Array


class State(NamedTuple):
    """Where a chain is, with everything the next step needs and nothing else.

    Attributes
    ----------
    position
        The discrete variable θ.
    center
        The auxiliary variable θ_a, or `None` without coupling.
    log_density
        The user's `U(position)`; the coupling adds its own term in closed form.
    gradient
        The user's `∇U(position)`, or `None` for samplers that do not use it.
    cache
        The target's incremental cache, or `None`.
    scan
        The next site of a systematic scan, or `None`.
    """

    # `Any` where a field is an array or `None`: which one it is, is fixed by the recipe, not by a branch.
    position: Array
    center: Any
    log_density: Array
    gradient: Any = None
    cache: Any = None
    scan: Any = None


class Info(NamedTuple):
    """What one step did.

    Attributes
    ----------
    acceptance_rate
        Probability with which the proposal was accepted, in [0, 1].
    is_accepted
        Whether it was. Moves of exact conditionals are always accepted.
    num_flips
        Number of sites whose level changed in the step.
    num_nonfinite
        1 if the proposed state had a NaN or `+inf` log-density or a non-finite gradient (the move is
        then rejected), else 0.
    """

    acceptance_rate: Array
    is_accepted: Array
    num_flips: Array
    num_nonfinite: Array
