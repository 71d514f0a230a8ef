"""Sweeps over spins whose bonds have one strength up to sign: chains in the bits of words.

With `k` of a site's `n` neighbours pulling it up, `k = 0 … n`, its conditional takes `n + 1` values only. So
a uniform need not be a number: its bits, one word per bit with a chain in every bit of the word, are compared
with those of the probability that belongs to `k`, from the highest on. Sixteen bits decide all but one site
in 65 536; where they leave one open, as many again are drawn, and then 32 that all sites of a colour share.
"""

import dataclasses
import math
from functools import partial, reduce
from operator import or_
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.compiling import materialize
from steppe.kernel.blocks.coloring import Color, Coloring
from steppe.kernel.blocks.many_chains import Moved
from steppe.kernel.density import JointDensity
from steppe.pytree import is_concrete
from steppe.random import bit_planes
from steppe.random.bit_planes import NUM_PLANES
from steppe.target.log_density import Target

# Neighbours of a site, above which their numbers would make too many cases.
MAX_NEIGHBOURS = 8
# Chains in a word.
MAX_CHAINS = max(bit_planes.WIDTHS)
# Bits that are drawn where the first ones leave something open are counted from here on.
MORE = 2**31
# Words of all sites together that stay in the cache while they are swept.
MAX_WORDS = 2048
# Sites of a colour that are moved at once: what is drawn for them stays in the cache, and rarely does one of
# them need more bits. A colour with so many segments is moved one segment after another.
SEGMENT = 2048
MIN_SEGMENTS = 4
# Axis of words side by side, which look closer together.
WORDS = "words"


class SpinColor(eqx.Module):
    """Bonds of the sites of one colour, as many for each.

    Attributes
    ----------
    neighbours
        Places of their neighbours, of shape `(slots, size)`.
    is_negative
        Which bonds favour disagreement; `None` where none does.
    is_earlier
        Which neighbours have earlier colours; `None` where those of the first slots do.
    num_earlier, num_bonds
        Slots with neighbours of earlier colours, if these are the first; bonds with earlier colours.
    """

    neighbours: Array
    is_negative: Array | None
    is_earlier: Array | None
    num_earlier: int = eqx.field(static=True)
    num_bonds: int = eqx.field(static=True)

    def list_agreements(self, new: Array, pulls: Array) -> list[Array]:
        """Words of bonds with earlier colours that are satisfied, slot by slot."""
        if self.is_earlier is None:
            return [~(new ^ pull) for pull in pulls[: self.num_earlier]]
        masks = -self.is_earlier.astype(new.dtype)
        return [~(new ^ pull) & mask for pull, mask in zip(pulls, masks, strict=True)]


class SpinBonds(eqx.Module):
    """The bonds of a target, colour by colour.

    Attributes
    ----------
    colors
        The colours.
    has_field
        Whether spins are in a field, the same for all.
    """

    colors: tuple[SpinColor, ...]
    has_field: bool = eqx.field(static=True)


def find_spin_bonds(target: Target, coloring: Coloring) -> SpinBonds | None:
    """Bonds by colour, where all have one strength up to sign, all sites as many of them, and one field."""
    form = target.pair_form
    if form is None or form.values != (-1.0, 1.0) or not is_concrete((target, coloring)):
        return None
    strengths, field = np.asarray(form.strengths), np.asarray(form.field)
    if (
        not field.size
        or (field != field.flat[0]).any()
        or (np.abs(strengths) != np.abs(strengths).max()).any()
    ):
        return None
    num_sites = target.domain.num_sites
    degrees = np.concatenate([(np.asarray(color.neighbours) < num_sites).sum(0) for color in coloring.colors])
    if degrees.min() != degrees.max() or not 0 < degrees[0] <= MAX_NEIGHBOURS:
        return None
    colors = tuple(_list_bonds(color, strengths, num_sites, int(degrees[0])) for color in coloring.colors)
    return SpinBonds(colors, bool(field.flat[0]))


def _list_bonds(color: Color, strengths: np.ndarray, num_sites: int, degree: int) -> SpinColor:
    """Bonds of one colour, without slots that a site leaves empty."""
    neighbours = np.asarray(color.neighbours)
    own = strengths if color.strengths is None else strengths[np.asarray(color.strengths)]
    is_negative = np.broadcast_to(own < 0, neighbours.shape)
    is_earlier = np.broadcast_to(np.arange(len(neighbours))[:, None] < color.num_earlier, neighbours.shape)
    if len(neighbours) == degree:
        earlier = None
    else:
        filled = np.argsort(neighbours == num_sites, axis=0, kind="stable")[:degree]
        neighbours, is_negative, is_earlier = (
            np.take_along_axis(array, filled, axis=0) for array in (neighbours, is_negative, is_earlier)
        )
        earlier = jnp.asarray(is_earlier)
    return SpinColor(
        jnp.asarray(neighbours, jnp.int32),
        jnp.asarray(is_negative) if is_negative.any() else None,
        earlier,
        color.num_earlier,
        int(is_earlier.sum()),
    )


class Cases(NamedTuple):
    """What a site does by the number of neighbours that pull it up, and by where it is.

    Attributes
    ----------
    is_up
        Words per number of neighbours: chains in which up is the likelier level.
    limits
        Planes of the probability of the other one, (plane, case), of a site that is at the likelier level
        and then of one that is not; without a field, numbers as far from half of the neighbours are one case.
    """

    is_up: Array
    limits: Array


class Swept(NamedTuple):
    """Chains of one word after a sweep: words by site; log-densities and changed sites by chain."""

    words: Array
    log_density: Array
    num_flips: Array


def sweep_spins(
    density: JointDensity,
    coloring: Coloring,
    bonds: SpinBonds,
    overrelaxation: Array,
    keys: Array,
    position: Array,
) -> Moved:
    """One sweep of many chains, which stand on the last axis; idle bits of words repeat the first ones."""
    num_sites, num_chains = position.shape
    shape = _arrange(num_chains, num_sites)
    num_idle = math.prod(shape) - num_chains
    low, high = (jnp.asarray(point, position.dtype) for point in density.domain.points(0)[:, 0])

    def fill(array: Array) -> Array:
        return jnp.concatenate([array, array[..., :num_idle]], axis=-1) if num_idle else array

    def sweep(betas: Array, keys: Array, words: Array) -> Swept:
        at = dataclasses.replace(density, inverse_temperature=betas)
        return _sweep_word(at, coloring, bonds, overrelaxation, keys, words)

    betas = jnp.broadcast_to(density.inverse_temperature, num_chains)
    packed = bit_planes.pack_chains(fill(position > (low + high) / 2).reshape(-1, shape[-1]))
    lots = (*(fill(array).reshape(shape) for array in (betas, keys)), packed.reshape(-1, *shape[:2]))
    lots = *lots[:2], jnp.moveaxis(lots[2], 0, -1)
    swept = jax.lax.map(lambda lot: jax.vmap(sweep, axis_name=WORDS)(*lot), lots)
    words = jnp.moveaxis(swept.words, -1, 0)
    is_high = bit_planes.unpack_chains(words.reshape(-1), shape[-1]).reshape(num_sites, -1)[:, :num_chains]
    return Moved(
        position=jnp.where(is_high, high, low),
        log_density=swept.log_density.reshape(-1)[:num_chains],
        num_flips=swept.num_flips.reshape(-1)[:num_chains],
        num_nonfinite=jnp.zeros(num_chains, jnp.int32),
    )


def _sweep_word(
    density: JointDensity,
    coloring: Coloring,
    bonds: SpinBonds,
    overrelaxation: Array,
    keys: Array,
    words: Array,
) -> Swept:
    """One sweep of the chains of one word."""
    num_chains, form = len(keys), density.target.pair_form
    assert form is not None
    words = old = materialize(_gather, words, coloring.order)
    cases = _weigh_cases(density, bonds, overrelaxation, num_chains)
    lanes = bit_planes.pack_chains(jnp.ones((1, num_chains), bool))
    satisfied = []
    for color, own in zip(coloring.colors, bonds.colors, strict=True):
        pulls = materialize(_gather, words, own.neighbours)
        if own.is_negative is not None:
            pulls = pulls ^ -own.is_negative.astype(pulls.dtype)
        new = _move_segments(cases, pulls, color.slice(words), lanes, keys, color.start)
        words = jax.lax.dynamic_update_slice(words, new, (color.start,))
        if own.num_bonds:
            satisfied.append(jnp.stack(_count_planes(own.list_agreements(new, pulls))))
    count = partial(bit_planes.count_by_chain, num_chains=num_chains)
    num_bonds = sum(own.num_bonds for own in bonds.colors)
    agreeing = jnp.asarray(sum(_join_counts(count(planes)) for planes in satisfied))
    total = jnp.abs(form.strengths.reshape(-1)[0]) * (2 * agreeing - num_bonds).astype(form.field.dtype)
    if bonds.has_field:
        num_up = count(words[None])[0]
        total = total + form.field.reshape(-1)[0] * (2 * num_up - len(words)).astype(form.field.dtype)
    return Swept(
        words=materialize(_gather, words, coloring.places),
        log_density=form.scale * total + form.offset,
        num_flips=count((words ^ old)[None])[0],
    )


def _arrange(num_chains: int, num_sites: int) -> tuple[int, int, int]:
    """Lots of words side by side, one lot after another, and chains in a word: as few idle as can be."""
    num_words = -(-num_chains // MAX_CHAINS)
    num_lots = -(-num_words // max(MAX_WORDS // num_sites, 1))
    per_lot = -(-num_words // num_lots)
    return num_lots, per_lot, -(-num_chains // (num_lots * per_lot))


def _weigh_cases(density: JointDensity, bonds: SpinBonds, overrelaxation: Array, num_chains: int) -> Cases:
    """Probabilities of the less likely level, as `draws.switch` has them, in 64 binary places."""
    form, num_neighbours = density.target.pair_form, len(bonds.colors[0].neighbours)
    assert form is not None
    pulls = 2.0 * np.arange(num_neighbours + 1) - num_neighbours
    sums = jnp.abs(form.strengths.reshape(-1)[0]) * jnp.asarray(pulls) + form.field.reshape(-1)[0]
    # The sign of all bonds together is in the scale.
    logits = (
        2
        * density.inverse_temperature
        * form.scale
        * jnp.broadcast_to(sums[:, None], (num_neighbours + 1, num_chains))
    )
    rare, is_up = jnp.exp(-jnp.abs(logits)), logits >= 0
    leaves, stays = rare * (1 + overrelaxation * rare) / (1 + rare), rare * (1 - overrelaxation) / (1 + rare)
    if not bonds.has_field:  # one pull more or less than half of them is the same but for the sign
        leaves, stays = (array[: num_neighbours // 2 + 1] for array in (leaves, stays))
    scaled = jnp.concatenate([leaves, stays]) * 2.0**32
    high = jnp.floor(scaled)
    low = (scaled - high) * 2.0**32
    planes = [bit_planes.number_planes(part.astype(jnp.uint32)) for part in (high, low)]
    return Cases(bit_planes.pack_chains(is_up), jnp.concatenate(planes))


def _move_segments(cases: Cases, pulls: Array, old: Array, lanes: Array, keys: Array, start: int) -> Array:
    """New spins of a colour, in segments where it is large, whose places follow each other."""
    size, place = len(old), jnp.uint32(start)
    num_segments = -(-size // SEGMENT)
    if num_segments < MIN_SEGMENTS:
        return _move_color(cases, pulls, old, lanes, keys, place)
    pulls = jnp.pad(pulls, ((0, 0), (0, num_segments * SEGMENT - size)))
    old = jnp.pad(old, (0, num_segments * SEGMENT - size))

    def move(index: Array) -> Array:
        first = index * SEGMENT
        own, before = materialize(_cut, pulls, first), materialize(_cut, old, first)
        return _move_color(cases, own, before, lanes, keys, place + first.astype(jnp.uint32))

    return jax.lax.map(move, jnp.arange(num_segments)).reshape(-1)[:size]


# A slice that is fused into what follows would be computed word by word.
def _cut(words: Array, first: Array) -> Array:
    return jax.lax.dynamic_slice_in_dim(words, first, SEGMENT, axis=-1)


@jax.jit  # traced once for all colours of one size
def _move_color(cases: Cases, pulls: Array, old: Array, lanes: Array, keys: Array, place: Array) -> Array:
    """New spins of a colour, whose random bits are counted from a place on."""
    numbers = _find_numbers(pulls)
    likely = _look_up(numbers, cases.is_up)
    if cases.limits.shape[1] < 2 * len(numbers):
        numbers = _fold(numbers)
    moves = likely ^ old
    is_case = [number & ~moves for number in numbers] + [number & moves for number in numbers]
    is_less, is_open = jnp.zeros_like(old), ~jnp.zeros_like(old)
    drawn = bit_planes.random_planes(keys, place, len(old))
    for limit, plane in zip(cases.limits[:NUM_PLANES], drawn, strict=True):
        is_less, is_open = _compare(is_case, limit, plane, is_less, is_open)

    def look_closer(is_less: Array, is_open: Array) -> Array:
        more = bit_planes.random_planes(keys, place + np.uint32(MORE), len(old))
        shared = jnp.broadcast_to(bit_planes.shared_planes(keys, place), (32, *old.shape))
        planes = cases.limits[NUM_PLANES:], jnp.concatenate([more, shared])

        def compare(
            carry: tuple[Array, Array], plane: tuple[Array, Array]
        ) -> tuple[tuple[Array, Array], None]:
            return _compare(is_case, *plane, *carry), None

        return jax.lax.scan(compare, (is_less, is_open), planes)[0][0]

    is_rare = jax.lax.cond(
        jax.lax.pmax(jnp.any(is_open & lanes).astype(jnp.int32), WORDS) > 0,
        look_closer,
        lambda is_less, _: is_less,
        is_less,
        is_open,
    )
    return likely ^ is_rare


def _find_numbers(pulls: Array) -> list[Array]:
    """How many neighbours pull up, a word for each number."""
    bits = _count_planes(list(pulls))
    numbers = []
    for number in range(len(pulls) + 1):
        match = [plane if number >> place & 1 else ~plane for place, plane in enumerate(bits)]
        numbers.append(reduce(lambda first, second: first & second, match))
    return numbers


def _fold(numbers: list[Array]) -> list[Array]:
    """One word for a number and its counterpart beyond half of them."""
    half = (len(numbers) + 1) // 2
    return [
        first if first is second else first | second
        for first, second in zip(numbers[:half], numbers[::-1][:half], strict=True)
    ]


def _look_up(is_case: list[Array], values: Array) -> Array:
    return reduce(or_, (case & value for case, value in zip(is_case, values, strict=True)))


def _compare(
    is_case: list[Array], limit: Array, drawn: Array, is_less: Array, is_open: Array
) -> tuple[Array, Array]:
    """One bit of uniforms and of the limits of their cases: which are below, and which are still open."""
    bit = _look_up(is_case, limit)
    return is_less | (is_open & ~drawn & bit), is_open & ~(drawn ^ bit)


def _count_planes(words: list[Array]) -> list[Array]:
    """Planes of how many words have a bit set, the lowest first."""
    planes: list[Array] = []
    for word in words:
        carry = word
        for place, plane in enumerate(planes):
            planes[place], carry = plane ^ carry, plane & carry
        if len(planes) < len(words).bit_length():
            planes.append(carry)
    return planes


def _join_counts(counts: Array) -> Array:
    """Numbers from counts of their binary places, (place, chain)."""
    return jnp.asarray(sum(count << place for place, count in enumerate(counts)))


def _gather(words: Array, places: Array) -> Array:
    return words[places]
