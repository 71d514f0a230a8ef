"""Find flat modes: `find_flat_modes(target, key=...)`."""

from steppe.modes.find import find_flat_modes
from steppe.modes.flat_modes import FlatModes, Mode

__all__ = ["FlatModes", "Mode", "find_flat_modes"]
