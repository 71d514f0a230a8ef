"""Description of a run: from an engine and a recipe to the record that a directory carries."""

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from steppe.errors import RunMismatchError
from steppe.run.plan import Plan
from steppe.run.storage.identity import (
    are_close,
    describe_component,
    describe_software,
    find_other_software,
    identify_observable,
    identify_target,
)

if TYPE_CHECKING:
    from steppe.kernel.compose import Recipe
    from steppe.run.engine import Engine
    from steppe.run.storage.record import RunDescription, RunRecord

_SOFTWARE = {
    "jax": "jax",
    "jaxlib": "jaxlib",
    "device": "the device",
    "cpu": "the processor",
    "xla_flags": "XLA_FLAGS",
}
# More draws of the same are welcome, and these do not shape them. The target is compared on its own, and a
# ladder or a cycle as a part of the sampler.
_MAY_DIFFER = {
    "num_draws",
    "evaluations_per_step",
    "software",
    "metadata",
    "target",
    "observables",
    "rungs",
    "cycle",
    "picture",
}


def describe_run(
    engine: "Engine", plan: Plan, recipe: "Recipe", metadata: Mapping[str, object] | None
) -> "RunDescription":
    """Return what is run; an engine may have a longer plan by now."""
    from steppe.run.storage.record import RunDescription

    return RunDescription.model_validate(_fields(engine, plan, recipe, metadata))


def record_run(
    engine: "Engine",
    plan: Plan,
    recipe: "Recipe",
    metadata: Mapping[str, object] | None,
    adapted: Mapping[str, Mapping[str, object] | None] | None = None,
) -> "RunRecord":
    """Return what is run with what its target is known by, which is evaluated for it."""
    from steppe.run.storage.record import RunRecord

    sampler = engine.sampler
    identity = identify_target(sampler.target, uses_gradient=sampler.recipe.uses_gradient)
    fields = {**_fields(engine, plan, recipe, metadata), "target": identity, **(adapted or {})}
    return RunRecord.model_validate(fields)


def check_same_run(saved: "RunRecord", wanted: "RunRecord", *, allow_other_version: bool) -> None:
    """Refuse to continue a run as something else; more draws of the same are welcome.

    Parameters
    ----------
    saved, wanted
        The run on disk, and the one that is to be continued there.
    allow_other_version
        Whether another version of JAX, or another processor, may continue it: the target then needs to be
        the same but for rounding.
    """
    from steppe.run.storage.record import first_difference

    # Precision first: numbers differ because of it.
    there, here = (
        {"dtype": record.dtype, **record.model_dump(mode="json", exclude=_MAY_DIFFER)}
        for record in (saved, wanted)
    )
    different = first_difference(there, here, "")
    if different is not None:
        name, there, here = different
        raise RunMismatchError(
            f"The run on disk has {name.removeprefix('.')} {there!r}, this one has {here!r}. Continue it "
            "with what it was started with, or start another in a new directory."
        )
    if not allow_other_version:
        _check_version(saved, wanted)
    _check_target(saved, wanted, allow_other_version)
    _check_observables(saved, wanted)


def _check_version(saved: "RunRecord", wanted: "RunRecord") -> None:
    different = find_other_software(saved.software, wanted.software)
    if different is not None:
        what, there, here = different
        raise RunMismatchError(
            f"The run on disk was made with {_SOFTWARE[what]} {there!r}, this is {here!r}; draws might "
            "differ in the last bit. Continue it with the same, or allow the other one "
            "(`allow_other_version`)."
        )


def _check_target(saved: "RunRecord", wanted: "RunRecord", allow_other_version: bool) -> None:
    there, here = saved.target, wanted.target
    is_close = are_close(there.log_density, here.log_density, wanted.dtype) and are_close(
        there.slope, here.slope, wanted.dtype
    )
    if is_close and (there == here or allow_other_version):
        return
    remedy = "Continue it with the target it was started with, or start another in a new directory."
    if is_close and there.arrays == here.arrays and there.program == here.program:
        remedy = (
            f"Its log-density differs in the last bits, as on another processor: it was made on "
            f"{saved.software.get('cpu')!r}, this is {wanted.software.get('cpu')!r}. Allow it "
            "(`allow_other_version`) if the target is the same."
        )
    raise RunMismatchError(f"The run on disk has another target. {remedy}")


def _check_observables(saved: "RunRecord", wanted: "RunRecord") -> None:
    there, here = saved.observables, wanted.observables
    differ = [one.name for one in here] != [one.name for one in there]
    if differ:
        named = [", ".join(one.name for one in some) or "none" for some in (there, here)]
        raise RunMismatchError(
            f"The run on disk follows the observables {named[0]}; this one {named[1]}. Continue it with "
            "those it was started with."
        )
    for old, new in zip(there, here, strict=True):
        settings = (old.every, old.bins, old.of_pairs) == (new.every, new.bins, new.of_pairs)
        if not settings or not are_close(old.values, new.values, wanted.dtype):
            raise RunMismatchError(
                f"The observable {new.name!r} is another one than in the run on disk. Continue it with the "
                "one it was started with, or start another run in a new directory."
            )


def _fields(
    engine: "Engine", plan: Plan, recipe: "Recipe", metadata: Mapping[str, object] | None
) -> dict[str, object]:
    sampler, adapt = engine.sampler, engine.layout.adapt
    picture = sampler.target.picture
    counts = ("num_chains", "num_warmup", "num_draws", "thinning", "keep", "chain_block")
    return {
        "recipe": recipe.name,
        "parameters": {name: float(value) for name, value in sampler.parameters.items()},
        "sampler": describe_component(sampler.recipe),
        "evaluations_per_step": sampler.evaluations_per_step,
        "domain": sampler.target.domain.to_json(),
        "key": np.asarray(jax.random.key_data(engine.root)).tolist(),
        "key_type": str(jax.random.key_impl(engine.root)),
        "dtype": str(jnp.result_type(float)),
        "adapt": None if adapt is None else dataclasses.asdict(adapt.wanted),
        "observables": _list_observables(engine),
        "shard": dataclasses.asdict(plan.shard),
        **{name: getattr(plan, name) for name in counts},
        "software": describe_software(),
        "metadata": dict(metadata or {}),
        "picture": None if picture is None else picture._asdict(),
    }


def _list_observables(engine: "Engine") -> list[dict[str, object]]:
    followed, domain = engine.layout.followed, engine.sampler.target.domain
    return [
        {
            "name": name,
            "every": one.every,
            "bins": one.bins,
            "of_pairs": one.of_pairs,
            "values": identify_observable(partial(one.evaluate, domain), domain, of_pairs=one.of_pairs),
        }
        for name, one in ([] if followed is None else followed.named)
    ]
