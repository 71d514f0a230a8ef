"""What prints as text is text in a notebook too; there rich would display it and leave an empty line."""

import numpy as np
import rich.console

from steppe.modes.result import FlatModes, Mode


def test_modes_print_as_text_in_a_notebook(monkeypatch):
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    numbers = dict.fromkeys(("roughness", "max_drop", "share_within", "score"), 0.0)
    entropies = dict.fromkeys(("local_entropy", "local_entropy_error", "basin_mass", "basin_mass_error"), 0.0)
    mode = Mode(
        position=np.zeros(3),
        levels=np.zeros(3, int),
        log_density=1.5,
        num_visits=1,
        found_by=("plain",),
        is_on_front=True,
        label="–",
        **numbers,
        **entropies,
    )
    assert "1.50" in str(FlatModes((mode,), "gap", 1.0, 10, 1))
