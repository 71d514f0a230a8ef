"""Which recipe for which problem: the decision figure of the page Choose.

python docs/figures/choose.py
"""

from pathlib import Path

from matplotlib import rc_context
from matplotlib.patches import FancyBboxPatch

from steppe.report import style

QUESTIONS = [
    ("Only the best states,\nno probabilities?", "find_flat_modes, anneal", "#DDDDDD"),
    (
        "Is a state an order\n(a tour, a schedule)?",
        "informed_permutation\nuniform_permutation if n is large",
        "#CFE5EE",
    ),
    (
        "Flat states more often\nthan π visits them?",
        "roughness_tilted: changes must not hurt\nrobust_ensemble: mass within a radius",
        "#DCEBCB",
    ),
    (
        "Are one-site differences\ncheap (sparse, tabled)?",
        "gibbs\nblock_gibbs for groups that move together",
        "#CFE5EE",
    ),
    ("Is the gradient useless\n(steps, no derivative)?", "gibbs, hamming_ball", "#CFE5EE"),
    ("Do a few steep sites\nmatter most?", "gwg, pas", "#CFE5EE"),
    ("Do chains stay in\ndifferent modes?", "parallel_tempering", "#CFE5EE"),
]
LAST = "dmala"
HEIGHT, GAP, LEFT, RIGHT = 0.74, 0.26, 2.5, 3.6


@style.apply()
def draw():
    total = (len(QUESTIONS) + 1) * (HEIGHT + GAP)
    figure, (axis,) = style.make_row(1, 6.8, 0.72 * total)
    axis.set(xlim=(0, LEFT + RIGHT + 0.8), ylim=(-total + GAP, 0.05))
    axis.axis("off")
    for row, (question, answer, colour) in enumerate(QUESTIONS):
        top = -row * (HEIGHT + GAP)
        _box(axis, 0, top, LEFT, question, "white", "normal")
        _box(axis, LEFT + 0.75, top, RIGHT, answer, colour, "bold")
        _arrow(axis, (LEFT, top - HEIGHT / 2), (LEFT + 0.75, top - HEIGHT / 2), "yes", (0.1, 0.06))
        _arrow(axis, (LEFT / 2, top - HEIGHT), (LEFT / 2, top - HEIGHT - GAP), "no", (0.08, 0.06))
    _box(axis, 0, -len(QUESTIONS) * (HEIGHT + GAP), LEFT, LAST, "#CFE5EE", "bold")
    with rc_context({"svg.fonttype": "none"}):
        figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


def _box(axis, left, top, width, text, colour, weight):
    shape = FancyBboxPatch(
        (left + 0.03, top - HEIGHT),
        width - 0.06,
        HEIGHT,
        boxstyle="round,pad=0,rounding_size=0.1",
        fc=colour,
        ec="#777777",
    )
    axis.add_patch(shape)
    axis.text(left + width / 2, top - HEIGHT / 2, text, ha="center", va="center", fontsize=9, weight=weight)


def _arrow(axis, start, end, word, shift):
    axis.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": "#555555"})
    middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    is_across = start[1] == end[1]
    place = (middle[0] - 0.12, middle[1] + 0.08) if is_across else (middle[0] + 0.1, middle[1] - 0.04)
    axis.text(*place, word, fontsize=8, color="#555555")


if __name__ == "__main__":
    draw()
