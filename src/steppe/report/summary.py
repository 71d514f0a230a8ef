"""Summary of a run: what converged, what did not, what it cost; to be printed, shown or taken as JSON."""

import dataclasses
from typing import TYPE_CHECKING

from steppe.diagnostics.findings import Diagnosis
from steppe.diagnostics.mixing import Cost, Mixing
from steppe.diagnostics.quantity import Quantity
from steppe.diagnostics.swaps import Swaps
from steppe.presented import Presented
from steppe.report.cells import divide, to_finite

if TYPE_CHECKING:
    from steppe.results import Results
    from steppe.run.storage.record import RunDescription


@dataclasses.dataclass(frozen=True, repr=False)
class Summary(Presented):
    """What a run says about itself.

    Show it with `rich.print(summary)` or `print(summary)`; `to_dict()` is ready for JSON.

    Attributes
    ----------
    run
        What was run.
    mixing
        Statistics and verdicts.
    cost
        Steps, model evaluations and seconds.
    diagnosis
        What is wrong, in sentences.
    end
        Why the run ended before all draws were made, or what `until` asked for and all of them did not reach,
        in a sentence; or empty.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((4, 4), coupling=0.2)
    >>> summary = steppe.sample(target, key=jax.random.key(0), num_draws=500).summary()
    >>> summary.diagnosis.ok, "R-hat" in str(summary)
    (True, True)
    """

    run: "RunDescription"
    mixing: Mixing
    cost: Cost
    diagnosis: Diagnosis
    end: str = ""

    def present(self) -> "Results":
        """Return verdict, facts and tables as results."""
        from steppe.report.present_run import present_run

        return present_run(self)

    def to_dict(self) -> dict[str, object]:
        """Return plain numbers and strings; what is undefined or infinite is `None`."""
        mixing, sites, chains = self.mixing, self.mixing.sites, self.mixing.chains
        return {
            "recipe": self.run.recipe,
            "domain": repr(self.run.make_domain()),
            "num_chains": len(mixing.chain_means),
            "num_draws": mixing.num_draws,
            "ok": self.diagnosis.ok,
            "findings": list(self.diagnosis.findings),
            "end": self.end,
            "quantities": {one.name: _to_numbers(one) for one in mixing.quantities},
            "observables": {
                one.name: {"autocorrelation_time": to_finite(one.pooled_time)} for one in mixing.streams
            },
            "sites": None if sites is None else sites.labels.tolist(),
            "chains": [
                {"verdict": label, "mean_log_density": to_finite(mean)}
                for label, mean in zip(chains.labels, mixing.chain_means, strict=True)
            ],
            "ladder": None if mixing.swaps is None else _describe_swaps(mixing.swaps),
            "acceptance_rate": to_finite(mixing.acceptance_rate),
            "flip_rate": to_finite(mixing.flip_rate),
            "num_unique": mixing.num_unique,
            "num_nonfinite": mixing.num_nonfinite,
            **self.cost._asdict(),
            "ess_per_evaluation": divide(mixing.log_density.ess, self.cost.num_evaluations),
            "ess_per_step": divide(mixing.log_density.ess, self.cost.num_steps),
            "ess_per_second": divide(mixing.log_density.ess, self.cost.seconds),
        }

    __repr__ = Presented.__str__  # so that `run.summary()` at a prompt is the table


def _describe_swaps(swaps: Swaps) -> dict[str, object]:
    return {
        "swap_rates": swaps.rates.tolist(),
        "barrier": swaps.barrier,
        "num_wanted": swaps.num_wanted,
        "round_trips": swaps.trips_by_chain.tolist(),
        "round_trips_per_draw": swaps.round_trips / max(swaps.num_rows, 1),
    }


def _to_numbers(quantity: Quantity) -> dict[str, float | None]:
    statistics = quantity._asdict()
    statistics.pop("name")
    return {name: to_finite(value) for name, value in statistics.items()}
