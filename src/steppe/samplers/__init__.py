"""The samplers by name, each one expression, so that each reads as a difference from the one above.

Symbols of the paper and the arguments they are here: α `step_size`, α_a `center_step_size`, η
`coupling_variance`, ρ `persistence`. Step sizes and variances are squared lengths in the embedding; the
defaults are in units of the shortest squared move of the domain (1 for bits, 4 for spins, 2 for one-hot
sites). A step is one full sweep of all blocks. "Evaluations" are calls of the user's value and gradient
(or log-density, for samplers without gradient) per step and chain.
"""

from collections.abc import Callable

from steppe.kernel.compose import Recipe
from steppe.samplers import baselines, flat, further, langevin, permutations, structure
from steppe.samplers.baselines import *  # noqa: F403
from steppe.samplers.flat import *  # noqa: F403
from steppe.samplers.further import *  # noqa: F403
from steppe.samplers.langevin import *  # noqa: F403
from steppe.samplers.permutations import *  # noqa: F403
from steppe.samplers.registry import list_entries
from steppe.samplers.structure import *  # noqa: F403

__all__: list[str] = []
__all__ += langevin.__all__
__all__ += flat.__all__
__all__ += baselines.__all__
__all__ += further.__all__
__all__ += permutations.__all__
__all__ += structure.__all__

# Every recipe with its defaults, in the order of the table in the README. Apart: those of permutations, and
# those of targets that say which sites interact.
ORDER_RECIPES: dict[str, Callable[..., Recipe]] = {
    name: entry.make for name, entry in list_entries().items() if entry.family == "permutations"
}
GRAPH_RECIPES: dict[str, Callable[..., Recipe]] = {
    name: entry.make for name, entry in list_entries().items() if entry.family == "interaction graphs"
}
ALL_RECIPES: dict[str, Callable[..., Recipe]] = {
    name: entry.make
    for name, entry in list_entries().items()
    if name not in ORDER_RECIPES and name not in GRAPH_RECIPES
}
