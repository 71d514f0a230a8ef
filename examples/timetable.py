"""An exam timetable without clashes: how few slots are enough?

    python examples/timetable.py

Two exams clash if a student takes both. A timetable is a colouring of the graph of clashes, one colour per
slot. Annealing with fewer and fewer slots finds the smallest number without a clash; one slot less says what
it would cost. Writes out/examples/timetable.png.

Result: 10 slots are enough for 40 exams; the best found with 9 leaves 2 of 422 pairs in a clash.
"""

from pathlib import Path

import jax
import numpy as np

import steppe
from steppe.report import style
from steppe.targets import coloring

OUT = Path("out/examples/timetable")
NUM_EXAMS, NUM_STUDENTS, EXAMS_EACH = 40, 150, 4


def draw_clashes(rng):
    """Pairs of exams that share a student: students choose within a subject, and one exam outside."""
    pairs = set()
    for _ in range(NUM_STUDENTS):
        subject = rng.integers(4)
        inside = 10 * subject + rng.choice(10, EXAMS_EACH - 1, replace=False)
        chosen = {*inside.tolist(), int(rng.integers(NUM_EXAMS))}
        pairs |= {(i, j) for i in chosen for j in chosen if i < j}
    return np.asarray(sorted(pairs))


def main():
    clashes = draw_clashes(np.random.default_rng(0))
    timetables, counts = {}, {}
    for num_slots in range(11, 8, -1):
        target = coloring(clashes, num_slots, num_nodes=NUM_EXAMS)
        found = steppe.anneal(
            target, key=jax.random.key(num_slots), num_steps=2000, until=steppe.until(value=0.0)
        )
        timetables[num_slots] = np.argmax(np.asarray(found.best), axis=1)
        counts[num_slots] = int(target.count_conflicts(found.best))
        print(f"{num_slots} slots: {counts[num_slots]} of {len(clashes)} pairs clash")
        if counts[num_slots]:
            break
    fewest = min(slots for slots, clashing in counts.items() if not clashing)
    print(f"{fewest} slots are enough for {NUM_EXAMS} exams and {NUM_STUDENTS} students.")
    draw(clashes, timetables[fewest], fewest, counts)


@style.apply()
def draw(clashes, slots, fewest, counts):
    figure, _ = style.make_row(1, 9.0, 3.6)
    figure.clear()
    axes = figure.subplots(1, 2)
    order = np.lexsort((np.arange(NUM_EXAMS), slots))
    place = np.argsort(order)
    matrix = np.zeros((NUM_EXAMS, NUM_EXAMS))
    matrix[place[clashes[:, 0]], place[clashes[:, 1]]] = matrix[
        place[clashes[:, 1]], place[clashes[:, 0]]
    ] = 1
    axes[0].imshow(matrix, cmap="Greys")
    axes[0].grid(visible=False)
    for edge in np.flatnonzero(np.diff(slots[order])) + 0.5:
        axes[0].axhline(edge, color=style.FLAT_COLOR, lw=0.8)
        axes[0].axvline(edge, color=style.FLAT_COLOR, lw=0.8)
    axes[0].set(
        title=f"{fewest} slots: no clash inside a slot", xlabel="exam, by slot", ylabel="exam, by slot"
    )
    axes[1].bar([str(slots) for slots in counts], list(counts.values()), color=style.SHARP_COLOR)
    axes[1].set(title="what fewer slots cost", xlabel="slots", ylabel="pairs that clash")
    print(*style.save(figure, OUT), sep="\n")


if __name__ == "__main__":
    main()
