"""`E_π[U]`, against which a loss is measured: enumerated where that is cheap, else sampled."""

import numpy as np

from steppe.diagnostics.flatness.tables import law_of, log_table
from steppe.diagnostics.states import is_exact_wanted
from steppe.samplers.langevin import dmala
from steppe.tune.trial import Trials
from steppe.tune.tuned import Measured


def expected_log_density(trials: Trials) -> tuple[Measured, float]:
    """Return `E_π[U]` with its error, and the evaluations it cost."""
    if is_exact_wanted(trials.target, None):
        table = log_table(trials.target)
        law, values = np.ravel(law_of(table)), np.ravel(table)
        possible = law > 0
        return Measured(float(law[possible] @ values[possible]), 0.0), float(table.size)
    plain = trials.attempt(dmala(), 0.0, adapt=True)
    return plain.log_density, plain.num_evaluations
