"""Which club members belong together? Communities of Zachary's karate club, with how sure they are.

    python examples/communities.py

Posterior of a stochastic block model with two groups; a member's certainty is how often draws put it with the
instructor. Needs networkx: `pip install "steppe[graphs,plots]"`. Writes out/examples/communities.png.

Result: draws put 31.9 ± 1.0 of the 34 members where they went when the club split.
"""

from pathlib import Path

import jax
import networkx as nx
import numpy as np

import steppe
from steppe.report import style
from steppe.targets import block_model

OUT = Path("out/examples/communities")
INSIDE, BETWEEN = 0.26, 0.05


def main():
    club = nx.karate_club_graph()
    edges = np.asarray(club.edges())
    target = block_model(edges, 2, inside=INSIDE, between=BETWEEN, num_nodes=len(club))
    run = steppe.sample(target, key=jax.random.key(0), num_draws=2000)
    together = (run.levels == run.levels[..., :1]).mean(axis=(0, 1))
    side = np.asarray([club.nodes[node]["club"] == "Mr. Hi" for node in sorted(club)])
    right = ((run.levels == run.levels[..., :1]) == side).sum(axis=-1)
    print(f"{right.mean():.1f} ± {right.std():.1f} of {len(side)} members where they went when it split")
    print("least sure:", *np.argsort(np.abs(together - 0.5))[:3])
    draw(club, together)


@style.apply()
def draw(club, together):
    figure, (axes,) = style.make_row(1, 6.0, 4.0)
    places = nx.spring_layout(club, seed=2)
    nx.draw_networkx_edges(club, places, ax=axes, edge_color="#bbbbbb")
    nodes = nx.draw_networkx_nodes(
        club, places, ax=axes, node_color=together, cmap="coolwarm", vmin=0, vmax=1, node_size=120
    )
    figure.colorbar(nodes, ax=axes, label="with the instructor")
    axes.set_axis_off()
    print(*style.save(figure, OUT), sep="\n")


if __name__ == "__main__":
    main()
