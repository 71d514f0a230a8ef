"""Validation of what a target is made from: as everywhere, but refusals are `TargetError`s."""

from functools import partial

from steppe import validation
from steppe.errors import TargetError
from steppe.validation import array_of_shape, real_array, square_matrix, symmetric_matrix, zeros
from steppe.validation import positive_scalar as positive
from steppe.validation import real_scalar as number

__all__ = [
    "array_of_shape",
    "choice",
    "count",
    "number",
    "positive",
    "real_array",
    "square_matrix",
    "symmetric_matrix",
    "zeros",
]

count = partial(validation.count, error=TargetError, remedy="")
choice = partial(validation.choice, error=TargetError)
