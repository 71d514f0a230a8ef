"""Cooling: the schedule of an annealing for which none is given."""

from steppe.kernel.compose import Recipe
from steppe.run.schedule import Curves, geometric_schedule, parameter_schedule
from steppe.samplers.flip_fraction import coupling_variance_from_flip_fraction
from steppe.target import Target

# Fraction of sites in which a replica differs from a lattice center on flat ground, at the start and at the
# end.
LOOSE, TIGHT = 0.25, 0.05


def cool(recipe: Recipe, target: Target, temperatures: tuple[float, float]) -> Curves:
    """Raise the inverse temperature at a constant factor; replicas are tied tighter all the way.

    Parameters
    ----------
    recipe, target
        What is annealed.
    temperatures
        Inverse temperatures at the hot and at the cold end.
    """
    cooling = geometric_schedule(*temperatures)
    if recipe.replicas is None:
        return parameter_schedule(inverse_temperature=cooling)
    unit = target.domain.squared_unit
    loose, tight = (coupling_variance_from_flip_fraction(f, squared_unit=unit) for f in (LOOSE, TIGHT))
    return parameter_schedule(inverse_temperature=cooling, coupling_variance=geometric_schedule(loose, tight))
