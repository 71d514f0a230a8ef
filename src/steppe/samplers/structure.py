"""Samplers that use which sites interact: all sites of a colour at once, clusters of sites that agree."""

from steppe.kernel.blocks.chromatic import ChromaticBlock
from steppe.kernel.blocks.cluster import ClusterBlock
from steppe.kernel.compose import Recipe, recipe
from steppe.samplers.registry import register
from steppe.validation import within

__all__ = ["chromatic_gibbs", "swendsen_wang", "wolff"]


@register(
    family="interaction graphs",
    summary="moves every site by its conditional, all that do not interact at once",
    cost="1",
    stationary="π",
    color="#0B6E4F",
    marker="3",
    reference="Gonzalez, Low, Gretton, Guestrin (2011), *Parallel Gibbs sampling: from colored fields to "
    "thin junction trees*; Suwa, Todo (2010), *Markov chain Monte Carlo method without detailed balance*.",
)
def chromatic_gibbs(*, overrelaxation: float = 0.8) -> Recipe:
    """Chromatic Gibbs: move all sites of one colour at once, colour after colour.

    Parameters
    ----------
    overrelaxation
        Probability `r` in [0, 1) with which a site moves away from its level as far as its conditional
        allows: by a Metropolis decision where it has two levels, by the move of Suwa and Todo where it has
        more. Otherwise it is drawn afresh from its conditional, and with 0 a sweep is plain Gibbs. Raising it
        decorrelates up to three times as fast near critical points and in glasses; where sites hardly
        interact, even observables then need about `(1 + r²) / (1 − r²)` sweeps for an effective draw.

    Notes
    -----
    Stationary distribution: `π` exactly; a step is one sweep and not reversible. Sites of one colour do not
    interact, so moving them together is moving them one after another. The target says which do: Ising,
    Potts, QUBO and max-cut targets know it, any other by `Target(..., interactions=pairs)`, with a
    `conditional` if that is cheaper than its log-density. Colours are found greedily, from the largest degree
    down. Cost: a sweep looks at every pair once.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((8, 8), coupling=0.3)
    >>> run = steppe.sample(target, steppe.chromatic_gibbs(), key=jax.random.key(0), num_draws=500)
    >>> run.diagnose().ok
    True
    """
    fraction = within("chromatic_gibbs(overrelaxation=...)", overrelaxation, "[0, 1)")
    return recipe("chromatic_gibbs", ChromaticBlock(fraction))


@register(
    family="interaction graphs",
    summary="joins sites that agree and draws a level for every cluster",
    cost="1",
    stationary="π",
    color="#B5651D",
    marker="4",
    reference="Swendsen, Wang (1987), *Nonuniversal critical dynamics in Monte Carlo simulations*.",
)
def swendsen_wang() -> Recipe:
    """Swendsen–Wang: join sites that agree by chance, and draw a new level for every cluster.

    Notes
    -----
    Stationary distribution: `π` exactly. Ising and Potts targets on lattices and graphs whose bonds favour
    agreement, or can be made to by turning spins over. A cluster takes a level with weight `exp` of the
    summed fields of its sites, as if bound to a ghost site. Cost: one evaluation, and finding the clusters,
    which takes as long as a dozen sweeps of `chromatic_gibbs`.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((8, 8), coupling=0.44)  # near the critical point
    >>> run = steppe.sample(target, steppe.swendsen_wang(), key=jax.random.key(0), num_draws=500)
    >>> bool(abs(run.positions.mean()) < 0.2)  # whole clusters flip
    True
    """
    return recipe("swendsen_wang", ClusterBlock("all"))


@register(
    family="interaction graphs",
    summary="joins sites that agree and changes the cluster of one site",
    cost="1",
    stationary="π",
    color="#7B3F00",
    marker="+",
    reference="Wolff (1989), *Collective Monte Carlo updating for spin systems*.",
)
def wolff() -> Recipe:
    """Wolff: join sites that agree by chance, and change the cluster of one random site.

    Notes
    -----
    Stationary distribution: `π` exactly. For the targets of `swendsen_wang`; fields enter by accepting the
    change or not. Cost: as `swendsen_wang`, because all clusters are found at once, for one that moves.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.potts((6, 6), num_levels=3, coupling=1.0)
    >>> run = steppe.sample(target, steppe.wolff(), key=jax.random.key(0), num_draws=100)
    >>> run.levels.shape
    (4, 100, 36)
    """
    return recipe("wolff", ClusterBlock("one"))
