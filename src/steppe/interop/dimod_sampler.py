"""`SteppeSampler`: annealing as a `dimod.Sampler`, for programs that take one."""

import jax
import numpy as np

from steppe.errors import RunError
from steppe.interop.dimod_networkx import Bqm, SampleSet, from_bqm, to_sampleset
from steppe.optional import require
from steppe.run.anneal import anneal
from steppe.run.schedule import geometric_schedule, parameter_schedule
from steppe.validation import count, positive

dimod = require("dimod", "graphs", "`steppe.SteppeSampler`")

NUM_READS, NUM_SWEEPS = 16, 1000


class SteppeSampler(dimod.Sampler):
    """Annealing by `steppe.anneal` behind the interface of dimod.

    `sample`, `sample_ising` and `sample_qubo` return a `dimod.SampleSet` with the best state of every read,
    its energy and how often it was found. Reads are chains that run side by side.

    Examples
    --------
    >>> import steppe
    >>> found = steppe.SteppeSampler().sample_ising({}, {("a", "b"): 1.0}, num_reads=4, num_sweeps=20, seed=0)
    >>> float(found.first.energy)
    -1.0
    """

    def __init__(self) -> None:
        self._parameters = {
            name: [] for name in ("num_reads", "num_sweeps", "beta_range", "time_limit", "seed")
        }

    @property
    def properties(self) -> dict[str, object]:
        """What is known of the sampler."""
        return {"description": "simulated annealing by chromatic or event-driven Gibbs sweeps"}

    @property
    def parameters(self) -> dict[str, list[str]]:
        """Names of the options of `sample`; none depends on a property."""
        return self._parameters

    def sample(
        self,
        bqm: Bqm,
        num_reads: int = NUM_READS,
        num_sweeps: int | None = None,
        beta_range: tuple[float, float] | None = None,
        time_limit: float | None = None,
        seed: int | None = None,
        **unknown: object,
    ) -> SampleSet:
        """Anneal a binary quadratic model.

        Parameters
        ----------
        bqm
            A `dimod.BinaryQuadraticModel`.
        num_reads
            States returned, equal ones counted together.
        num_sweeps
            Sweeps of every read; 1000 by default. With a time limit and no sweeps, as many as there is time.
        beta_range
            Inverse temperatures at the start and at the end; by default from the model's own differences.
        time_limit
            Seconds to anneal, compiling not counted.
        seed
            Of the random key; by default another one every time.
        unknown
            Options of other samplers, which are reported and not used.
        """
        self.remove_unknown_kwargs(**unknown)
        reads = count("SteppeSampler.sample(num_reads=...)", num_reads, error=RunError)
        if not bqm.num_variables:
            empty = np.zeros((reads, 0), np.int8)
            return dimod.SampleSet.from_samples_bqm((empty, []), bqm).aggregate()
        target = from_bqm(bqm)
        if beta_range is None and not (bqm.is_linear() and not any(bqm.linear.values())):
            schedule = None
        else:  # of a model without terms any temperature will do
            ends = (0.1, 1.0) if beta_range is None else tuple(beta_range)
            if len(ends) != 2:
                raise RunError(
                    f"`SteppeSampler.sample(beta_range=...)` must be two numbers; got {beta_range!r}."
                )
            first, last = (
                positive("SteppeSampler.sample(beta_range=...)", end, error=RunError) for end in ends
            )
            schedule = parameter_schedule(inverse_temperature=geometric_schedule(first, last))
        if num_sweeps is None and time_limit is None:
            num_sweeps = NUM_SWEEPS
        chosen = np.random.default_rng().integers(2**31) if seed is None else seed
        found = anneal(
            target,
            schedule=schedule,
            key=jax.random.key(
                count("SteppeSampler.sample(seed=...)", int(chosen), minimum=0, error=RunError)
            ),
            num_steps=num_sweeps,
            num_chains=reads,
            time_limit=time_limit,
            progress=False,
        )
        return to_sampleset(bqm, np.asarray(found.best_position)).aggregate()
