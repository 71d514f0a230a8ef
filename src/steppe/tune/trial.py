"""Try one setting: a short run of several chains, and its statistics with errors.

Numbers of a recipe are traced, so all settings of one recipe run the same compiled program.
"""

import dataclasses

import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.diagnostics.efficiency import efficiency
from steppe.kernel.acceptance import Metropolis
from steppe.kernel.blocks.metropolis import ProposalBlock
from steppe.kernel.compose import Recipe
from steppe.run.adaptation import Adapt
from steppe.run.result import Run
from steppe.run.sample import sample
from steppe.target import Target
from steppe.trace import Trace
from steppe.tune.tuned import Measured, Trial


@dataclasses.dataclass(frozen=True)
class Trials:
    """How settings are tried: on which target, from which key and with how many steps.

    Every setting is tried with the same key and starts, so that settings differ by what they do.
    """

    target: Target
    key: Array
    num_chains: int
    num_warmup: int
    num_draws: int
    initial: ArrayLike | None

    def run(self, recipe: Recipe, adapt: bool | Adapt) -> Run:
        """Sample with a setting."""
        return sample(
            self.target,
            recipe,
            key=self.key,
            num_chains=self.num_chains,
            num_warmup=self.num_warmup,
            num_draws=self.num_draws,
            initial=self.initial,
            adapt=adapt,
            progress=False,
        )

    def attempt(
        self,
        recipe: Recipe,
        value: float | str,
        *,
        adapt: bool | Adapt = False,
        reference: Measured | None = None,
    ) -> Trial:
        """Sample with a setting and measure.

        Parameters
        ----------
        recipe
            With the numbers on trial.
        value
            Of the number that is tuned.
        adapt
            What warm-up adapts beside it.
        reference
            `E_π[U]`, where a loss is wanted.
        """
        trace = self.run(recipe, adapt).trace
        per_step = recipe.build(self.target, audit=False).evaluations_per_step
        worth, kept = efficiency(trace), per_step * self.num_chains * self.num_draws
        mean = _average_over_chains(trace.statistic("log_density"))
        return Trial(
            value=value,
            step_size=_read_frozen_step(trace),
            acceptance_rate=_average_over_chains(trace.statistic("acceptance_rate")),
            flips_per_step=_average_over_chains(trace.statistic("num_flips")),
            log_density=mean,
            ess_per_evaluation=Measured(worth.num_effective / kept, worth.standard_error / kept),
            num_effective=worth.num_effective,
            loss=None if reference is None else _subtract(reference, mean),
            num_evaluations=per_step * self.num_chains * (self.num_warmup + self.num_draws),
        )


def adjust(recipe: Recipe) -> Recipe:
    """Return the recipe with every proposal decided on: `dmala` for `dula`, and so on."""
    blocks = tuple(
        dataclasses.replace(block, acceptance=Metropolis()) if isinstance(block, ProposalBlock) else block
        for block in recipe.blocks
    )
    return dataclasses.replace(recipe, blocks=blocks)


def _average_over_chains(values: np.ndarray) -> Measured:
    """Mean over chains and its standard error: chains are independent, draws of one are not."""
    means = values.reshape(len(values), -1).mean(axis=1, dtype=float)
    error = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.nan
    return Measured(float(means.mean()), float(error))


def _subtract(reference: Measured, mean: Measured) -> Measured:
    return Measured(reference.value - mean.value, float(np.hypot(reference.error, mean.error)))


def _read_frozen_step(trace: Trace) -> float | None:
    if not trace.has("step_size"):
        return None
    return float(np.exp(np.log(trace.statistic("step_size")[:, -1].astype(float)).mean()))
