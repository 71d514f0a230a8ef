"""Observables: numbers of a state that are followed while chains run, at fixed memory.

Notation: `x_t` is the value at the `t`-th look. What is kept of it, whatever the number of looks:

- mean and sum of squared deviations (Welford), both relative to the first value, so that a large constant
  does not use up the digits of a float;
- sums over batches of `2ᵏ` looks each, at most `NUM_BATCHES`: when all are full, neighbours are added and `k`
  grows by one. From their spread come the autocorrelation time and R-hat, and they are a coarse trace;
- counts in bins of width `2ᵉ` at multiples of `2ᵉ`: when a value falls outside, neighbours are added and `e`
  grows by one. Bins of different chains fit each other, so that their sum is exact.

Chains `2j` and `2j + 1` are the two replicas of an overlap; they are in one block, side by side.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import PyTree

from steppe.arguments import checked
from steppe.domain.base import Domain
from steppe.errors import RunError
from steppe.kernel.types import SamplerState, StepInfo
from steppe.run.simulate import CHAINS
from steppe.validation import call_back, count, flag, shorten

NUM_BATCHES = 64
MIN_BINS = 8
# The first value is resolved to one part in a million; bins are widened from there.
FIRST_RESOLUTION = 20
MAX_BYTES = 2**28

# A function of one position, or of the positions of two replicas, as the log-density takes them.
Function = Callable[..., ArrayLike]
Overlap = Literal["overlap"]


@dataclasses.dataclass(frozen=True, init=False)
class Observable:
    """A number of a state to be followed while chains run.

    Parameters
    ----------
    function
        From one position, as the log-density takes it, to one number; written with `jax.numpy`.
    every
        Evaluate it at every k-th kept step: the cost of an expensive one.
    bins
        Number of bins of its histogram, at least 8, or 0 for none. They are placed and widened as values
        come.
    of_pairs
        Whether the function takes two positions: those of chains 0 and 1, 2 and 3, and so on, at the same
        step.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((4, 4), coupling=0.3)
    >>> magnetisation = steppe.Observable(lambda spins: spins.mean(), every=5)
    >>> run = steppe.sample(
    ...     target,
    ...     steppe.chromatic_gibbs(),
    ...     key=jax.random.key(0),
    ...     keep="none",
    ...     observables={"m": magnetisation, "q": "overlap"},
    ... )
    >>> run.observables["m"].num_seen.tolist()
    [200, 200, 200, 200]
    """

    function: Function | Overlap
    every: int = 1
    bins: int = 128
    of_pairs: bool = False

    @checked(RunError)
    def __init__(
        self, function: Function | Overlap, *, every: int = 1, bins: int = 128, of_pairs: bool = False
    ) -> None:
        set_field = object.__setattr__  # the class is frozen
        set_field(self, "function", function)
        set_field(self, "every", count("Observable(every=...)", every, error=RunError))
        set_field(self, "bins", count("Observable(bins=...)", bins, 0, error=RunError))
        set_field(self, "of_pairs", flag("Observable(of_pairs=...)", of_pairs) or function == "overlap")
        if 0 < bins < MIN_BINS:
            raise RunError(f"`Observable(bins=...)` must be at least {MIN_BINS}, or 0; got {bins!r}.")

    def evaluate(self, domain: Domain, *positions: Array) -> Array:
        """Return its value at a position, or a pair of them, as kernels hold them."""
        if isinstance(self.function, str):
            return overlap(domain, *positions)
        return jnp.asarray(self.function(*map(domain.unflatten, positions)), jnp.result_type(float))


def overlap(domain: Domain, first: Array, second: Array) -> Array:
    """Overlap of two positions: 1 where all sites agree, 0 on average where they are independent.

    On two levels it is `1/N Σ s_i s'_i` with spins `s = ±1`; with `p` levels of a site, agreement counts 1
    and anything else `−1 / (p − 1)`.
    """
    levels = jnp.maximum(jnp.asarray(domain.num_levels, jnp.result_type(float)), 2)
    return jnp.mean(jnp.where(domain.differs(first, second), -1 / (levels - 1), 1.0))


class Stream(NamedTuple):
    """What is kept of one observable of one chain.

    Attributes
    ----------
    num_seen, num_nonfinite
        Finite values, and others, which count nowhere else.
    origin
        The first value.
    mean, sum_of_squares
        Of the values minus the origin, and of their squared deviations from that mean.
    batch_size, batches
        Values of a batch, and the sums of the values minus the origin in each.
    exponent, first_bin, counts
        Bin `i` counts values in `2ᵉ [first + i, first + i + 1)`.
    """

    num_seen: Array
    num_nonfinite: Array
    origin: Array
    mean: Array
    sum_of_squares: Array
    batch_size: Array
    batches: Array
    exponent: Array
    first_bin: Array
    counts: Array

    @classmethod
    def start(cls, bins: int) -> "Stream":
        """Nothing seen yet."""
        zero, whole = jnp.zeros(()), jnp.zeros((), jnp.int32)
        return cls(
            num_seen=whole,
            num_nonfinite=whole,
            origin=zero,
            mean=zero,
            sum_of_squares=zero,
            batch_size=whole + 1,
            batches=jnp.zeros(NUM_BATCHES),
            exponent=whole,
            first_bin=whole,
            counts=jnp.zeros(bins, jnp.int32),
        )

    def add(self, value: Array) -> "Stream":
        """Look at a value."""
        is_finite = jnp.isfinite(value)
        added = self._add_finite(jnp.where(is_finite, value, 0))
        skipped = self._replace(num_nonfinite=self.num_nonfinite + 1)
        return jax.tree.map(lambda new, old: jnp.where(is_finite, new, old), added, skipped)

    def _add_finite(self, value: Array) -> "Stream":
        origin = jnp.where(self.num_seen == 0, value, self.origin)
        moved = value - origin
        num_seen = self.num_seen + 1
        step = moved - self.mean
        mean = self.mean + step / num_seen
        batch_size, batches = _make_room(self.num_seen, self.batch_size, self.batches)
        place = self.num_seen // batch_size
        stream = self._replace(
            num_seen=num_seen,
            origin=origin,
            mean=mean,
            sum_of_squares=self.sum_of_squares + step * (moved - mean),
            batch_size=batch_size,
            batches=batches + jnp.where(jnp.arange(NUM_BATCHES) == place, moved, 0),
        )
        return stream._count(value, is_first=self.num_seen == 0) if self.counts.size else stream

    def _count(self, value: Array, is_first: Array) -> "Stream":
        size = self.counts.shape[0]
        scale = jnp.frexp(value)[1].astype(jnp.int32)
        exponent = jnp.where(is_first, scale - FIRST_RESOLUTION, self.exponent)
        start = jnp.floor(jnp.ldexp(value, -exponent)) - size // 2
        first_bin = jnp.where(is_first, start.astype(jnp.int32), self.first_bin)

        def find(bins: tuple[Array, Array, Array]) -> Array:
            exponent, first_bin, _ = bins
            return jnp.floor(jnp.ldexp(value, -exponent)) - first_bin

        def is_outside(bins: tuple[Array, Array, Array]) -> Array:
            place = find(bins)
            return (place < 0) | (place >= size)

        def widen(bins: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            exponent, first_bin, counts = bins
            # What is there goes to the middle, so that there is room on both sides.
            new_first = first_bin // 2 - size // 4
            places = (first_bin + jnp.arange(size)) // 2 - new_first
            return exponent + 1, new_first, jnp.zeros_like(counts).at[places].add(counts)

        # Under `vmap` a loop runs only while some chain needs it, which is hardly ever.
        bins = jax.lax.while_loop(is_outside, widen, (exponent, first_bin, self.counts))
        is_here = jnp.arange(size) == find(bins).astype(jnp.int32)
        return self._replace(exponent=bins[0], first_bin=bins[1], counts=bins[2] + is_here)


def _make_room(num_seen: Array, batch_size: Array, batches: Array) -> tuple[Array, Array]:
    """Add neighbouring batches where all are full: their size doubles, and half of them are free."""

    def halve(full: tuple[Array, Array]) -> tuple[Array, Array]:
        size, sums = full
        pairs = sums.reshape(-1, 2).sum(axis=1)
        return 2 * size, jnp.concatenate([pairs, jnp.zeros_like(pairs)])

    return jax.lax.while_loop(lambda full: num_seen == NUM_BATCHES * full[0], halve, (batch_size, batches))


class Readings(NamedTuple):
    """What is followed of one chain: its log-density, then the observables; and how it moves.

    Attributes
    ----------
    streams
        The log-density first, then one for each observable, in their order.
    num_rows
        Kept steps.
    acceptance_rate, num_flips
        Sums over them.
    """

    streams: tuple[Stream, ...]
    num_rows: Array
    acceptance_rate: Array
    num_flips: Array


class Followed(NamedTuple):
    """Observables of a run by name; part of the compiled program."""

    named: tuple[tuple[str, Observable], ...]

    @property
    def has_pairs(self) -> bool:
        """Whether some are of two replicas."""
        return any(one.of_pairs for _, one in self.named)

    def start(self) -> Readings:
        """Nothing seen yet."""
        zero = jnp.zeros(())
        streams = tuple(Stream.start(one.bins) for one in (LOG_DENSITY, *(one for _, one in self.named)))
        return Readings(streams, jnp.zeros((), jnp.int32), zero, zero)

    def update(
        self, domain: Domain, readings: Readings, state: SamplerState, info: StepInfo, row: Array
    ) -> Readings:
        """Look at a state that counts; `row` counts from the first of them."""
        position, value = state.position, state.log_density
        if value.ndim:  # an ensemble: its first replica stands for the distribution
            position, value = position[0], value[0]
        first, *others = readings.streams

        def look(observable: Observable, stream: Stream) -> Stream:
            def add() -> Stream:
                positions = (position, _partner(position)) if observable.of_pairs else (position,)
                return stream.add(observable.evaluate(domain, *positions))

            return (
                add()
                if observable.every == 1
                else jax.lax.cond(row % observable.every == 0, add, lambda: stream)
            )

        streams = [look(one, stream) for (_, one), stream in zip(self.named, others, strict=True)]
        return Readings(
            (first.add(value), *streams),
            readings.num_rows + 1,
            readings.acceptance_rate + info.acceptance_rate,
            readings.num_flips + info.num_flips,
        )


# The log-density is followed beside every observable: it costs nothing.
LOG_DENSITY = Observable(lambda position: 0.0)


def _partner(position: Array) -> Array:
    """Return the position of the other chain of a pair."""
    size = jax.lax.psum(1, CHAINS)
    return jax.lax.ppermute(position, CHAINS, [(chain, chain ^ 1) for chain in range(size)])


def check_observables(
    domain: Domain, observables: Mapping[str, Function | Observable | Overlap] | None, num_chains: int
) -> Followed | None:
    """Return observables that can be followed, or say of the first that cannot why."""
    if not observables:
        return None
    made = {
        name: one if isinstance(one, Observable) else Observable(one) for name, one in observables.items()
    }
    for name, observable in made.items():
        _check_name(name)
        _check_value(name, observable, domain)
        size = 4 * observable.bins * num_chains
        if size > MAX_BYTES:
            raise RunError(
                f"The histogram of the observable {name!r} would take {size / 2**20:.0f} MB: "
                f"{observable.bins} bins of {num_chains} chains. At most {MAX_BYTES / 2**20:.0f} MB are "
                "kept; use fewer bins."
            )
        if observable.of_pairs and num_chains % 2:
            raise RunError(
                f"The observable {name!r} is of two replicas, chains 0 and 1, 2 and 3, …: give an even "
                f"`num_chains`; got {num_chains}."
            )
    return Followed(tuple(made.items()))


def _check_name(name: str) -> None:
    if not name.isidentifier() or name == "log_density":
        raise RunError(
            f"An observable needs a name like that of a variable, and not 'log_density', which is followed "
            f"in any case; got {shorten(name)}."
        )


def _check_value(name: str, observable: Observable, domain: Domain) -> None:
    position = jax.ShapeDtypeStruct(domain.shape, jnp.result_type(float))
    given = f"observables[{name!r}]"
    arguments = (position,) * (2 if observable.of_pairs else 1)

    def evaluate(*positions: Array) -> PyTree:
        if isinstance(observable.function, str):
            return overlap(domain, *positions)
        return observable.function(*map(domain.unflatten, positions))

    value = call_back(given, lambda: jax.eval_shape(evaluate, *arguments))
    is_number = isinstance(value, jax.ShapeDtypeStruct) and value.shape == ()
    if not is_number or not (jnp.issubdtype(value.dtype, jnp.number) or value.dtype == bool):
        found = f"shape {value.shape}" if isinstance(value, jax.ShapeDtypeStruct) else type(value).__name__
        raise RunError(
            f"`{given}` must turn {'two positions' if observable.of_pairs else 'one position'} into one "
            f"number; it returned {found}. Reduce all axes, for example `lambda position: position.mean()`."
        )
    if jnp.issubdtype(value.dtype, jnp.complexfloating):
        raise RunError(f"`{given}` must be a real number; it returned a complex one.")
