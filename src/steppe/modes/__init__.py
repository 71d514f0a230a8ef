"""Find modes that stay good after a disturbance: `find_flat_modes(target, key=...)`."""

from steppe.modes.find import find_flat_modes
from steppe.modes.flat_modes import FlatModes, Mode
from steppe.modes.strength_curves import StrengthCurves

__all__ = ["FlatModes", "Mode", "StrengthCurves", "find_flat_modes"]
