"""Parameters of direct-coupling analysis: lines of couplings `J i j a b value` and fields `h i a value`."""

from collections.abc import Callable
from os import PathLike
from typing import NamedTuple

import numpy as np

from steppe.arguments import checked
from steppe.datasets.files import read_number, read_text
from steppe.datasets.gset import WHOLE
from steppe.errors import DataError
from steppe.validation import shorten

# Residues with a gap; a file may have fewer levels.
MAX_SITES, MAX_LEVELS = 5000, 64
# Tables of all pairs are stored in full.
MAX_NUMBERS = 2**28
AMINO_ACIDS = "-ACDEFGHIKLMNPQRSTVWY"


class DcaParameters(NamedTuple):
    """Couplings and fields as `steppe.targets.potts_tables` takes them.

    Attributes
    ----------
    couplings
        Of shape `(sites, sites, levels, levels)`, with `J[i, j, a, b] = J[j, i, b, a]`.
    field
        Of shape `(sites, levels)`.
    """

    couplings: np.ndarray
    field: np.ndarray


@checked(DataError)
def read_dca(path: str | PathLike[str]) -> DcaParameters:
    """Read a Potts model of proteins as programs of direct-coupling analysis write it (bmDCA, adabmDCA).

    Parameters
    ----------
    path
        The file: lines `J i j a b value`, every pair of sites in one order, and lines `h i a value`. Sites
        are numbered from 0; levels too, or they are letters of residues in the order `-ACDEFGHIKLMNPQRSTVWY`.
        What is not listed is 0.
    """
    what = str(path)
    places: dict[tuple[int, ...], tuple[int, float]] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        place, value = _read_line(f"{what}, line {number}", words)
        if place in places:
            raise DataError(f"{what}, line {number}: it stands in line {places[place][0]} already.")
        places[place] = number, value
    pairs = {place: value for place, (_, value) in places.items() if len(place) == 4}
    fields = {place: value for place, (_, value) in places.items() if len(place) == 2}
    if not places:
        raise DataError(f"{what}: it has no line `J i j a b value` or `h i a value`.")
    sites = 1 + max(max(place[: len(place) // 2]) for place in places)
    levels = 1 + max(max(place[len(place) // 2 :]) for place in places)
    if (sites * levels) ** 2 > MAX_NUMBERS:
        raise DataError(f"{what}: {sites} sites of {levels} levels are too many for tables of all pairs.")
    couplings, field = np.zeros((sites, sites, levels, levels)), np.zeros((sites, levels))
    for (first, second, a, b), value in pairs.items():
        couplings[first, second, a, b] = couplings[second, first, b, a] = value
    for place, value in fields.items():
        field[place] = value
    return DcaParameters(couplings, field)


def _read_line(where: str, words: list[str]) -> tuple[tuple[int, ...], float]:
    """Place of a parameter, pairs with the smaller site first, and its value."""
    num_sites = {"J": 2, "h": 1}.get(words[0], 0)
    if not num_sites or len(words) != 2 * num_sites + 2:
        raise DataError(
            f"{where}: a line is `J i j a b value` or `h i a value`; got {shorten(' '.join(words))}."
        )
    sites = [_read_place(where, word, MAX_SITES, "site", _to_whole) for word in words[1 : 1 + num_sites]]
    levels = [_read_place(where, word, MAX_LEVELS, "level", _to_level) for word in words[1 + num_sites : -1]]
    if len(set(sites)) < num_sites:
        raise DataError(f"{where}: site {sites[0]} is coupled to itself.")
    if sites != sorted(sites):
        sites, levels = sites[::-1], levels[::-1]
    return (*sites, *levels), read_number(where, words[-1])


def _read_place(where: str, word: str, limit: int, kind: str, convert: Callable[[str], int]) -> int:
    place = convert(word)
    if not 0 <= place < limit:
        raise DataError(f"{where}: {shorten(word)} is not a {kind} from 0 to {limit - 1}.")
    return place


def _to_whole(word: str) -> int:
    return int(word) if WHOLE.fullmatch(word) else -1


def _to_level(word: str) -> int:
    return AMINO_ACIDS.find(word) if len(word) == 1 and not word.isdigit() else _to_whole(word)
