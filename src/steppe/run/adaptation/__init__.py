"""Adaptation: step sizes and coupling variances that move in warm-up, usable in anyone's loop over steps.

An `Adaptation` is a transformation of samplers with a state of its own:

    adapted = adaptation.init(sampler)
    state, info = adaptation.apply(sampler, adapted).step(key, state)
    adapted = adaptation.update(adapted, adaptation.observe(sampler, state, info))
    sampler = adaptation.apply(sampler, adaptation.freeze(adapted))      # after warm-up

`steppe.run.simulate.simulate` does this for many chains; a user's own `lax.scan` can do the same.
"""

from steppe.run.adaptation.contract import Adaptation
from steppe.run.adaptation.warmup import TARGET_ACCEPTANCE, Adapt, WarmupAdaptation, resolve_adaptation

__all__ = ["TARGET_ACCEPTANCE", "Adapt", "Adaptation", "WarmupAdaptation", "resolve_adaptation"]
