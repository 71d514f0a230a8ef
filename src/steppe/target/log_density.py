"""Target: a log-density of ONE state on a domain, with whatever makes it cheap.

`π(θ) ∝ exp U(θ)`: the log-density `U` is larger where states are better. An energy has the opposite
sign; use `Target.from_energy` for one.

`Target(log_density, domain)` wraps a function. A subclass of `Target` holds its arrays in fields and defines
methods instead. Both are the same to everything that samples them.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import (
    TYPE_CHECKING,
    ClassVar,
    Generic,
    NamedTuple,
    TypedDict,
    TypeVar,
    Unpack,
    dataclass_transform,
)

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial
from jax.typing import ArrayLike
from jaxtyping import PyTree

from steppe.domain.base import Domain
from steppe.errors import TargetError
from steppe.pytree import as_pytree, on_device
from steppe.target import checking
from steppe.target.batching import call_batched
from steppe.target.interactions import Interactions, PairForm
from steppe.target.picture import Picture, picture_graph
from steppe.validation import shorten

Cache = TypeVar("Cache")
Function = TypeVar("Function", bound=Callable[..., PyTree])

LogDensity = Callable[[Array], Array]
ValueAndGrad = Callable[[Array], tuple[Array, Array]]


class Incremental(NamedTuple, Generic[Cache]):
    """How a target follows one-site changes at the cost of what changed.

    Attributes
    ----------
    init
        `init(position) → cache`, any pytree of arrays (for example the inputs to hidden units).
    differences
        `differences(cache, position, sites) → table` of shape `(len(sites), max_levels)`: the exact
        `U(site set to level) − U(position)`, finite everywhere: what is forbidden outright belongs into
        `is_valid`, because blocks are followed through states that may not be valid themselves.
    update
        `update(cache, position, site, level) → cache` after one site of `position` takes `level`.
    refresh
        `refresh(cache, position) → cache`, called once a step where it is given: repairs a part of what the
        rounding of many updates did to the cache, at the cost of an update or two.
    all_differences
        `all_differences(cache, position) → table` of all sites, where that is cheaper than looking sites up.
    table_size
        How many sites to decide from one table, in a subclass whose sites change so rarely, or so often, that
        counts of operations mislead; the chain is the same.

    Examples
    --------
    >>> import jax.numpy as jnp, steppe
    >>> weights = jnp.asarray([1.0, -2.0, 0.5])
    >>> def differences(total, bits, sites):  # U = −(w·x)², followed by the sum w·x
    ...     after = total + (jnp.arange(2) - bits[sites][:, None]) * weights[sites][:, None]
    ...     return total**2 - after**2
    >>> follow = steppe.Incremental(
    ...     init=lambda bits: jnp.sum(weights * bits),
    ...     differences=differences,
    ...     update=lambda total, bits, site, level: total + (level - bits[site]) * weights[site],
    ... )
    >>> target = steppe.Target(
    ...     lambda bits: -(jnp.sum(weights * bits) ** 2), steppe.Binary(3), incremental=follow
    ... )
    >>> target.differences(jnp.ones(3)).tolist()
    [[-2.0, 0.0], [-2.0, 0.0], [-0.75, 0.0]]
    """

    init: Callable[[Array], Cache]
    differences: Callable[[Cache, Array, Array], Array]
    update: Callable[[Cache, Array, Array, Array], Cache]
    refresh: Callable[[Cache, Array], Cache] | None = None
    all_differences: Callable[[Cache, Array], Array] | None = None
    table_size: int | None = None


class Offers(TypedDict, total=False):
    """What `Target(log_density, domain, ...)` can be given besides; see there."""

    value_and_grad: ValueAndGrad | None
    batched_value_and_grad: ValueAndGrad | None
    differences: Callable[[Array], Array] | None
    is_valid: Callable[[Array], Array] | None
    incremental: Incremental[PyTree] | None
    interactions: ArrayLike | None
    conditional: Callable[[Array, Array], Array] | None
    multilinear: bool
    as_levels: bool


@dataclass_transform(field_specifiers=(dataclasses.field, eqx.field))
class _TargetType(type(eqx.Module)):  # pyright: ignore[reportGeneralTypeIssues, reportUntypedBaseClass]
    """Makes targets: `Target(...)` wraps a function, a subclass makes itself; both are checked."""

    if not TYPE_CHECKING:  # checkers know what a class returns better than this could say

        def __call__(cls, *args: PyTree, **kwargs: PyTree) -> "Target":
            try:
                given = cls.__signature__.bind(*args, **kwargs).arguments
            except TypeError as problem:
                raise TargetError(f"`{cls._label}(...)` cannot be called so: {problem}.") from None
            if "domain" in given and not isinstance(given["domain"], Domain):
                raise TargetError(
                    f"`{cls._label}(..., domain)` needs a domain such as `steppe.Binary(64)`; got "
                    f"{shorten(given['domain'])}."
                )
            if cls is not Target and "domain" in given and given["domain"].num_reals:
                raise TargetError(
                    f"`{cls._label}` is for discrete parts alone, and {given['domain']!r} has real ones. "
                    "Hold them fixed by `target.given({...})`; a mixed model is "
                    "`Target(log_density, domain)`, sampled by `steppe.mixed(...)`."
                )
            made = type(eqx.Module).__call__(cls._wrapper if cls is Target else cls, *args, **kwargs)
            target = jax.tree.map(on_device, made)
            if target._is_to_be_checked:
                target._check()
            return target

    @property
    def __signature__(cls) -> inspect.Signature:
        signature = inspect.signature((cls._wrapper if cls is Target else cls).__init__)
        return signature.replace(parameters=list(signature.parameters.values())[1:])


class Target(eqx.Module, metaclass=_TargetType):
    """A log-density on a domain.

    Parameters
    ----------
    log_density
        `U(position) → scalar` for one position, written in JAX: an array of the shape of the sites (and of
        their one-hot rows), or a dictionary of such arrays on a `Product`. It may be a pytree
        (an equinox module, a `jax.tree_util.Partial`): its arrays are then traced, and changing them does
        not recompile.
    domain
        Where the position lives.
    value_and_grad
        `position → (value, gradient)`, if you can do it faster than `jax.value_and_grad`.
    batched_value_and_grad
        The same for a stack of positions, used whenever a kernel is mapped over chains.
    differences
        `position → table` of shape `(num_sites, max_levels)`, the exact
        `U(site set to level) − U(position)`, if it is cheap.
    is_valid
        `position → bool` for constrained spaces. An invalid state has `U = −inf`.
    incremental
        An `Incremental`, so that single-site and block samplers cost what changed.
    multilinear
        Whether `U` is linear in every single site (its number, or its one-hot row) with all others held, as
        sums of products of different sites are. The gradient then is the table of exact differences, at the
        cost of one evaluation; `build` compares it with differences at random states.
    as_levels
        Whether the functions take integer levels instead of the numbers and one-hot rows of the domain, so
        that `logits[jnp.arange(n), z]` works on categories, and permutations are indices. Integers have no
        gradient: samplers that weigh single changes, such as `gibbs()`, are for them.
    interactions
        Pairs of sites that interact, an integer array of shape `(num_pairs, 2)`: given all others, a site
        depends on its partners only. It lets `chromatic_gibbs` move all sites that do not interact at once.
        The graph is compared with the log-density at random states before it is used.
    conditional
        `conditional(position, site) → log-weights` of shape `(max_levels,)`, up to a constant those of the
        levels of one site given all others, read from its partners only; goes with `interactions`.

    Notes
    -----
    A subclass is an `equinox.Module`: its fields are traced leaves, except `domain` and those declared with
    `equinox.field(static=True)`. It must define `log_density`, and may define any of the methods named above
    and `move_differences`, `canonical` and `distance`; `incremental`, `interactions` and `pair_form` are then
    properties. What it returns is
    checked, and masked where the position is not valid, as if the functions had been given to `Target`. Its
    methods take positions as samplers hold them; `self.domain.unflatten` gives them shapes and names.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, steppe
    >>> target = steppe.Target(lambda bits: jnp.sum(bits) ** 2 / 4, steppe.Binary(8))
    >>> float(target.log_density(jnp.ones(8)))
    16.0

    >>> class Independent(steppe.Target):
    ...     logits: jax.Array
    ...
    ...     def log_density(self, position):
    ...         return self.logits @ position
    >>> target = Independent(steppe.Binary(3), logits=jnp.asarray([1.0, -1.0, 0.5]))
    >>> float(target.log_density(jnp.ones(3)))
    0.5
    """

    domain: Domain = eqx.field(static=True)

    # The methods that a class and its parents bring, as they were written.
    _own: ClassVar[dict[str, Callable[..., PyTree]]] = {}
    _label: ClassVar[str] = "Target"
    # Not where all functions are the library's, on a base that was checked: it takes a tenth of a second.
    _is_to_be_checked: ClassVar[bool] = True
    # What `Target(...)` makes of functions; `steppe.target.wrapped` puts it here.
    _wrapper: ClassVar["type[Target]"]

    if TYPE_CHECKING:

        def __init__(self, log_density: LogDensity, domain: Domain, **offers: Unpack[Offers]) -> None: ...

    def __init_subclass__(cls, **options: PyTree) -> None:
        """Complete the methods a subclass defines: cast and mask what they return."""
        super().__init_subclass__(**options)
        cls._label = cls.__dict__.get("_label", cls.__name__)
        own = {name: cls.__dict__[name] for name in COMPLETIONS if name in cls.__dict__}
        cls._own = cls._own | own
        for name, method in own.items():
            setattr(cls, name, COMPLETIONS[name](method))

    @staticmethod
    def from_energy(energy: LogDensity, domain: Domain, **offers: Unpack[Offers]) -> "Target":
        """Target `π ∝ exp(−energy)`; further arguments as for `Target`, in terms of `U = −energy`."""
        return Target(Partial(_negate, as_function("energy", energy)), domain, **offers)

    # ---- evaluation --------------------------------------------------------------------------

    def log_density(self, position: Array) -> Array:
        """`U(position)`, `−inf` where the position is not valid."""
        raise NotImplementedError

    def value_and_grad(self, position: Array) -> tuple[Array, Array]:
        """`U` and its gradient together. Where the position is not valid only `U` is `−inf`."""
        return _complete_value_and_grad(differentiate)(self, position)

    def batched_value_and_grad(self, stack: Array) -> tuple[Array, Array]:
        """`U` and its gradient for a stack of positions, used where a kernel is mapped over chains."""
        return jax.vmap(self.value_and_grad)(stack)

    def differences(self, position: Array) -> Array:
        """Exact table `U(site i set to level k) − U(position)`, site × level.

        Uses what the target brought, the gradient of a multilinear one, or evaluates the log-density of every
        neighbour. Levels that a ragged site does not have are `−inf`.
        """
        return _complete_differences(evaluate_differences)(self, position)

    def conditional(self, position: Array, site: Array) -> Array:
        """Log-weights of the levels of one site given all others, up to a constant.

        Uses what the target brought, or evaluates the log-density with every level.
        """
        return _complete_conditional(evaluate_conditional)(self, position, site)

    def is_valid(self, position: Array) -> Array:
        """Whether the position satisfies the constraint; always true without one."""
        return jnp.asarray(True)

    def move_differences(self, kind: str, position: Array) -> Array:
        """Exact `U(after) − U(position)` of all `"swap"`, `"two_opt"` or `"insert"` moves of a permutation.

        A subclass on a `Permutation` domain may offer this table over (first, last) place; entries that are
        no move may hold anything. Ask `has_move_differences` first.
        """
        raise TargetError(
            f"`{type(self).__name__}` makes no tables of {kind!r} moves. Define `move_differences(kind, "
            "position)` in a subclass of `Target`, or evaluate `log_density` after every move."
        )

    def given(self, reals: ArrayLike | Mapping[str, ArrayLike]) -> "Target":
        """The target of the discrete parts of a mixed model, its real parts held fixed.

        Parameters
        ----------
        reals
            Arrays of the `Real` parts by name, or all their coordinates on one axis.

        Examples
        --------
        >>> import jax.numpy as jnp, steppe
        >>> domain = steppe.Product(z=steppe.Binary(2), mu=steppe.Real(1))
        >>> target = steppe.Target(lambda x: jnp.sum(x["z"] * x["mu"]) - x["mu"][0] ** 2, domain)
        >>> float(target.given({"mu": [2.0]}).log_density(jnp.ones(2)))
        0.0
        """
        raise TargetError(f"`given(...)` holds real parts fixed, and {self.domain!r} has none.")

    # ---- symmetry and distance -----------------------------------------------------------------

    def canonical(self, position: Array) -> Array:
        """The position that stands for all those that mean the same: by default itself."""
        return position

    def distance(self, first: Array, second: Array) -> Array:
        """How far apart two positions are: by default the number of sites that differ."""
        return jnp.sum(self.domain.differs(first, second))

    # ---- what is on offer ----------------------------------------------------------------------

    @property
    def offers(self) -> tuple[str, ...]:
        """Names of the functions the target brought itself."""
        return tuple(name for name in COMPLETIONS if name in self._own)

    @property
    def has_differences(self) -> bool:
        """Whether one evaluation gives the table of exact differences: its own, or the gradient."""
        return "differences" in self.offers or self.is_multilinear

    @property
    def is_multilinear(self) -> bool:
        """Whether `U` is declared to be linear in every single site; a subclass may say so."""
        return False

    @property
    def has_constraint(self) -> bool:
        """Whether some positions of the domain are not valid."""
        return "is_valid" in self.offers

    @property
    def has_move_differences(self) -> bool:
        """Whether the target, on permutations, makes its own tables of exact differences of moves."""
        return "move_differences" in self.offers

    @property
    def incremental(self) -> Incremental[PyTree] | None:
        """The incremental form, if the target has one."""
        return None

    @property
    def interactions(self) -> Interactions | None:
        """Which sites interact, if the target says so."""
        return None

    @property
    def pair_form(self) -> PairForm | None:
        """The log-density as a sum over sites and pairs of sites, if it is one."""
        return None

    @property
    def picture(self) -> Picture | None:
        """What states are drawn on in reports: the graph of interactions, where it is small and sparse."""
        return picture_graph(self)

    # ---- identity: a target is compared as an object, its arrays are not looked at ----------------

    if not TYPE_CHECKING:
        # Equinox makes methods pytrees that are compared by their arrays, which cannot be done while tracing.
        __getattribute__ = object.__getattribute__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        offers = [*self.offers, *([] if self.incremental is None else ["incremental"])]
        return f"{self._label}({self.domain!r}, {', '.join(offers)})"

    # ---- checks --------------------------------------------------------------------------------

    def _check(self) -> None:
        """Compare what every function returns with the domain."""
        domain, offers = self.domain, self.offers
        if "log_density" not in offers:
            raise TargetError(
                f"`{self._label}`, a subclass of `Target`, needs a method `log_density(self, position)`. A "
                "function is wrapped by `Target(log_density, domain)`."
            )
        if domain.num_reals:
            self.given(np.zeros(domain.num_reals, jnp.result_type(float)))._check()
            return
        position = jax.ShapeDtypeStruct(domain.shape, jnp.result_type(float))
        own = {name: Partial(function, self) for name, function in self._own.items()}
        checking.check_scalar("log_density", own["log_density"], position)
        if "value_and_grad" in offers:
            checking.check_value_and_grad("value_and_grad", own["value_and_grad"], position)
        if "batched_value_and_grad" in offers:
            name = "batched_value_and_grad"
            checking.check_batched_value_and_grad(name, own[name], position)
        if "differences" in offers:
            shape = (domain.num_sites, domain.max_levels)
            checking.check_table("differences", own["differences"], position, shape)
        if self.incremental is not None:
            shape = (domain.num_sites, domain.max_levels)
            checking.check_incremental(*self.incremental[:5], position, shape)
        if "is_valid" in offers:
            checking.check_boolean("is_valid", own["is_valid"], position)
        if "conditional" in offers:
            checking.check_conditional("conditional", own["conditional"], position, domain.max_levels)


# ---- completions: from a method as a subclass writes it to what kernels call -------------------------------


def _complete_log_density(own: Callable[[Target, Array], Array]) -> Callable[[Target, Array], Array]:
    """Cast to the default float type and mask."""

    @wraps(own)
    def log_density(self: Target, position: Array) -> Array:
        return _mask(self, position, jnp.asarray(own(self, position), jnp.result_type(float)))

    return log_density


def _complete_value_and_grad(
    own: Callable[[Target, Array], tuple[Array, Array]],
) -> Callable[[Target, Array], tuple[Array, Array]]:
    """Give stacks to the batched form if there is one; cast; mask the value, not the gradient."""

    @wraps(own)
    def value_and_grad(self: Target, position: Array) -> tuple[Array, Array]:
        if "batched_value_and_grad" in self.offers:
            batched = Partial(self._own["batched_value_and_grad"])
            value, gradient = call_batched(Partial(own), batched, self, position)
        else:
            value, gradient = own(self, position)
        dtype = jnp.result_type(float)  # whatever precision the user's function answers in
        return _mask(self, position, jnp.asarray(value, dtype)), jnp.asarray(gradient, dtype)

    return value_and_grad


def _complete_differences(own: Callable[[Target, Array], Array]) -> Callable[[Target, Array], Array]:
    """Cast, and mask neighbours that are not valid or do not exist."""

    @wraps(own)
    def differences(self: Target, position: Array) -> Array:
        table = jnp.asarray(own(self, position), jnp.result_type(float))
        is_made = self.has_differences or self.incremental is not None
        if is_made and self.has_constraint:  # evaluated neighbours are masked already
            table = jnp.where(_over_neighbours(self, self.is_valid, position), table, -jnp.inf)
        return jnp.where(self.domain.level_mask, table, -jnp.inf)

    return differences


def _complete_conditional(
    own: Callable[[Target, Array, Array], Array],
) -> Callable[[Target, Array, Array], Array]:
    """Cast, and mask levels that do not exist."""

    @wraps(own)
    def conditional(self: Target, position: Array, site: Array) -> Array:
        weights = jnp.asarray(own(self, position, site), jnp.result_type(float))
        return jnp.where(jnp.asarray(self.domain.level_mask)[site], weights, -jnp.inf)

    return conditional


def _keep(own: Function) -> Function:
    return own


COMPLETIONS: dict[str, Callable[[Callable[..., PyTree]], Callable[..., PyTree]]] = {
    "log_density": _complete_log_density,
    "value_and_grad": _complete_value_and_grad,
    "batched_value_and_grad": _keep,
    "differences": _complete_differences,
    "is_valid": _keep,
    "conditional": _complete_conditional,
    "move_differences": _keep,
}


def _mask(target: Target, position: Array, value: Array) -> Array:
    return jnp.where(target.is_valid(position), value, -jnp.inf) if target.has_constraint else value


def differentiate(target: Target, position: Array) -> tuple[Array, Array]:
    """Value and gradient of the log-density as it was written: that of a masked one would be lost."""
    return jax.value_and_grad(partial(target._own["log_density"], target))(position)


def evaluate_differences(target: Target, position: Array) -> Array:
    """Table of exact differences, by the cheapest way the target has besides its own."""
    if target.is_multilinear:
        return target.domain.slopes(position, target.value_and_grad(position)[1])
    if target.incremental is not None:
        init, differences, *_ = target.incremental
        return differences(init(position), position, jnp.arange(target.domain.num_sites))
    return _over_neighbours(target, target.log_density, position) - target.log_density(position)


def evaluate_conditional(target: Target, position: Array, site: Array) -> Array:
    """Log-weights of the levels of a site, by an evaluation for each."""
    levels = jnp.arange(target.domain.max_levels)
    candidates = jax.vmap(target.domain.replace_sites, (None, None, 0))(position, site, levels)
    return jax.vmap(target.log_density)(candidates)


def _over_neighbours(target: Target, function: Callable[[Array], Array], position: Array) -> Array:
    domain = target.domain
    sites, levels = jnp.asarray(np.indices((domain.num_sites, domain.max_levels)).reshape(2, -1))
    neighbours = jax.vmap(domain.replace_sites, (None, 0, 0))(position, sites, levels)
    return jax.vmap(function)(neighbours).reshape(domain.num_sites, domain.max_levels)


def hold_reals(target: Target) -> Target:
    """Return a target to look at: a mixed one at reals as chains start from, others as they are."""
    domain = target.domain
    return target if not domain.num_reals else target.given(domain.draw_reals(jax.random.key(0)))


def _negate(energy: LogDensity, position: Array) -> Array:
    return -energy(position)


def as_function(name: str, function: Function) -> Function:
    """Return a function of the user as a pytree, or say that it is none."""
    if not callable(function):
        raise TargetError(f"`{name}` must be a function of one position; got {type(function).__name__}.")
    return as_pytree(function)
