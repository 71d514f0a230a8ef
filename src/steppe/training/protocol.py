"""How an RBM is trained: the numbers of a preset, and what was given in their place."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from steppe.validation import choice, count, positive

Method = Literal["cd", "pcd"]
Preset = Literal["persistent", "paper"]


class Protocol(NamedTuple):
    """How a preset trains.

    Attributes
    ----------
    method, k
        What the samples start from, and steps per update.
    num_updates
        Updates of the weights.
    batch_size
        Rows, and samples, per update.
    learning_rate
        Of Adam, at the start.
    is_decayed
        Whether the learning rate falls linearly to zero.
    """

    method: Method
    k: int
    num_updates: int
    batch_size: int
    learning_rate: float
    is_decayed: bool


PROTOCOLS: dict[str, Protocol] = {
    "paper": Protocol("cd", 10, 600, 100, 1e-3, is_decayed=False),
    "persistent": Protocol("pcd", 1, 12_000, 100, 2e-3, is_decayed=True),
}


def protocol_of(preset: Preset, given: Mapping[str, str | float | None]) -> Protocol:
    """Return the protocol of a preset with the numbers that were given in its place.

    Parameters
    ----------
    preset
        Its name.
    given
        Fields of `Protocol`; `None` leaves the preset's.
    """
    choice("train_rbm(preset=...)", preset, Preset)
    numbers = {name: value for name, value in given.items() if value is not None}
    for name in ("k", "num_updates", "batch_size"):
        if name in numbers:
            numbers[name] = count(f"train_rbm({name}=...)", numbers[name])
    if "learning_rate" in numbers:
        numbers["learning_rate"] = positive("train_rbm(learning_rate=...)", numbers["learning_rate"])
    if "method" in numbers:
        choice("train_rbm(method=...)", numbers["method"], Method)
    return PROTOCOLS[preset]._replace(**numbers)
