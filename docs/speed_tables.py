"""Tables of the page on performance, from what `make bench` recorded in docs/results."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
# Cells and columns of the table in the README.
BESIDE = (
    "Ising 32², T = 3.0",
    "Ising 32², T = 2.3",
    "EA glass 8³, T = 1.5",
    "Potts 32², q = 3",
    "SK, 512 spins",
)
PEERS = ("THRML", "D-Wave", "NumPyro", "PyMC", "numba")


def speed_tables() -> dict[str, str]:
    """Every table of the page by the name of its place there."""
    return {
        "steps": steps(),
        "growth": growth(),
        "peers": peers(),
        "lattices": lattices(),
        "selection": selection(),
        "blocks": blocks(),
        "small": small(),
        "processes": processes(),
    }


def steps() -> str:
    """Cells and samplers with their ratios."""
    rows = [
        (
            row["cell"],
            row["name"].split(":")[0],
            duration(row["median"]),
            duration(row["low"], row["high"]),
            ratio(row["times_floor"]),
            ratio(row["textbook_over_ours"]),
        )
        for row in recorded("speed")
        if not row["name"].startswith(("textbook", "shifts"))
    ]
    return table(("cell", "sampler", "step, µs", "quartiles", "× floor", "textbook"), rows)


def growth() -> str:
    """Cost per unit of size, and the fitted exponents."""
    found = recorded("speed_growth")
    units = {"sites": "ns per chain and site", "chains": "µs per chain"}
    rows = [
        (row["cell"], plain(row["us"]), f"{row['unit']:.3g} {units[row['grows']]}") for row in found["cells"]
    ]
    fitted = [
        f"{slope['sampler']} in {slope['grows']} {slope['exponent']:.3f}" for slope in found["exponents"]
    ]
    return table(("cell", "µs per step", "cost"), rows) + f"\n\nFitted exponents: {', '.join(fitted)}."


def peers() -> str:
    """Effective draws per second beside other packages, and ours over theirs."""
    found = recorded("speed_peers")
    names = ("effective_per_second", "effective_squares_per_second")
    ours: dict[str, dict[str, Any]] = {}
    rows = []
    for row in found:
        first = ours.setdefault(row["cell"], row)
        ratios = [
            "" if row is first or None in (row[name], first[name]) else f"{first[name] / row[name]:.3g}"
            for name in names
        ]
        figures = ["" if row[name] is None else plain(row[name]) for name in names]
        mean = f"{row['mean']:.2f} ± {row['standard_error']:.2f}"
        rows.append((row["cell"], row["name"], *figures, *ratios, mean))
    heads = (
        "target",
        "sampler",
        "effective U per s",
        "M² per s",
        "ours over it, U",
        "M²",
        "mean log-density",
    )
    return table(heads, rows)


def beside() -> str:
    """Ratios of the README: ours over each peer, in effective draws of U per second of processor time."""
    found: dict[str, dict[str, float]] = {}
    for row in recorded("speed_peers"):
        found.setdefault(row["cell"], {})[row["name"]] = row["effective_per_second"]
    ratios = {cell: _compare_with_peers(found[cell]) for cell in BESIDE}
    for row in recorded("variable_selection"):
        if "ours_over_it" in row:
            cell = f"variable selection, {row['columns']} columns"
            ratios.setdefault(cell, {})[row["name"].split()[0].strip(",")] = row["ours_over_it"]
    shown = [peer for peer in PEERS if any(peer in known for known in ratios.values())]
    rows = [(cell, *(times(known.get(peer)) for peer in shown)) for cell, known in ratios.items()]
    return table(("target", *shown), rows)


def times(value: float | None) -> str:
    """A ratio in two digits; a dash where there is none."""
    return "–" if value is None else f"{float(f'{value:.2g}'):,g} ×"


def _compare_with_peers(found: dict[str, float]) -> dict[str, float]:
    """Ours over each peer, by the first word of its name."""
    ours = next(value for name, value in found.items() if name.startswith("steppe"))
    return {name.split()[0]: ours / value for name, value in found.items() if not name.startswith("steppe")}


def judge() -> str:
    """The recommended recipe beside the best of all that move a target."""
    found = recorded("recommend_judge")
    rows = []
    for name, row in found.items():
        recommended, best = row["recommended"], row["best"]
        rows.append(
            (
                name,
                recommended.removeprefix("recommended "),
                plain(row["figures"][recommended]),
                best.removeprefix("recommended "),
                plain(row["figures"][best]),
                f"{row['ratio']:.2f}",
            )
        )
    close = sum(row["ratio"] <= 1.5 for row in found.values())
    heads = ("target", "recommended", "effective per s", "best", "effective per s", "best over recommended")
    return table(heads, rows) + f"\n\nWithin 1.5 of the best on {close} of {len(found)} targets."


def lattices() -> str:
    """Clusters and colours near the critical point, and energies beside the exact ones."""
    rows = [
        (
            f"{row['length']}²",
            row["sampler"],
            plain(row["effective_squares_per_second"]),
            plain(row["effective_squares"]),
            f"{row['energy']:.1f}",
            f"{row['exact_energy']:.1f}",
            f"{row['standard_errors_away']:.1f}",
            f"{100 * row['relative_error']:.2g} %",
        )
        for row in sorted(recorded("lattice_energies"), key=lambda row: (row["length"], row["sampler"]))
    ]
    heads = (
        "target",
        "sampler",
        "M² per s",
        "effective M²",
        "energy",
        "exact",
        "standard errors away",
        "one of them",
    )
    return table(heads, rows)


def blocks() -> str:
    """The block of chains that is chosen beside the best of others."""
    rows = []
    for row in recorded("speed_blocks"):
        times = row["times"]
        best = min(times, key=times.__getitem__)
        chosen = str(row["chosen"])
        cells = (chosen, plain(times[chosen]), best, plain(times[best]), f"{row['ratio']:.2f}")
        rows.append((row["cell"], str(row["num_chains"]), *cells))
    heads = ("cell", "chains", "block", "µs per step", "best block", "µs per step", "ratio")
    return table(heads, rows)


def selection() -> str:
    """Variable selection beside packages of probabilistic programs."""
    rows = [
        (
            f"{row['columns']} columns",
            row["name"],
            plain(row["effective_per_second"]),
            plain(row["effective"]),
            f"{row['mean']:.2f}",
            ratio(row.get("ours_over_it")),
        )
        for row in recorded("variable_selection")
    ]
    heads = ("target", "sampler", "effective U per s", "effective draws", "mean log-density", "ours over it")
    return table(heads, rows)


def small() -> str:
    """Single figures beside what is asked of them."""
    rows = [
        (name, plain(row["measured"]), "" if row["asked"] is None else plain(row["asked"]))
        for name, row in recorded("speed_small").items()
    ]
    return table(("figure", "measured", "asked"), rows)


def processes() -> str:
    """Figures that need a process of their own."""
    return table(
        ("figure", "measured"), [(name, plain(value)) for name, value in recorded("speed_processes").items()]
    )


def recorded(name: str) -> Any:
    """What a benchmark wrote."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def duration(*microseconds: float) -> str:
    """A time, or the ends of an interval, in microseconds; in milliseconds where it is long."""
    if microseconds[0] < 10_000:
        return "–".join(map(plain, microseconds))
    return "–".join(f"{time / 1000:.3g}" for time in microseconds) + " ms"


def plain(value: float) -> str:
    """A number of three digits, or all digits before the point."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def ratio(value: float | None) -> str:
    """A ratio, or nothing."""
    return "" if value is None else f"{value:.3g}"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown, with names to the left and numbers to the right."""
    head = tuple(head)
    marks = [
        "---" if column in ("cell", "sampler", "target", "figure", "recommended", "best") else "---:"
        for column in head
    ]
    lines = [head, marks, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
