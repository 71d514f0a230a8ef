"""The samplers by name, each one expression, so that each reads as a difference from the one above.

Symbols of the paper and the arguments they are here: α `step_size`, α_a `center_step_size`, η
`coupling_variance`, ρ `persistence`. Step sizes and variances are squared lengths in the embedding; the
defaults are in units of the shortest squared move of the domain (1 for bits, 4 for spins, 2 for one-hot
sites). A step is one full sweep of all blocks. "Evaluations" are calls of the user's value and gradient
(or log-density, for samplers without gradient) per step and chain.
"""

from collections.abc import Callable

from steppe.kernel.compose import Recipe
from steppe.samplers.baselines import block_gibbs, gibbs, gwg, hamming_ball
from steppe.samplers.flat import robust_ensemble, roughness_tilted
from steppe.samplers.further import dlmc, dmala_cyclical, parallel_tempering, pas
from steppe.samplers.langevin import dmala, dula, edmala, edmala_glu, edmala_ou, edula, edula_glu

# Every recipe with its defaults, in the order of the table in the README.
ALL_RECIPES: dict[str, Callable[..., Recipe]] = {
    make.__name__: make
    for make in (
        dula,
        dmala,
        edula,
        edmala,
        edula_glu,
        edmala_glu,
        edmala_ou,
        robust_ensemble,
        roughness_tilted,
        dlmc,
        dmala_cyclical,
        parallel_tempering,
        gwg,
        pas,
        gibbs,
        block_gibbs,
        hamming_ball,
    )
}
