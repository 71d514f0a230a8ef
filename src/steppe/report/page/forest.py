"""The forest plot: effect and interval of every claim in units of the smallest difference that counts."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from steppe.results import Outcome, Verdict

WIDTH, PADDING, LINE, STRIP = 480, 12, 15, 16
LETTERS, HEAD_LETTERS = 70, 58  # of a line, and of a line of a heading
LARGEST = 30.0  # margins at which an interval is cut off
TICKS = (-10, -3, -1, 0, 1, 3, 10)
CLASSES: dict[Outcome, str] = {
    "shown": "shown",
    "there, maybe negligible": "slight",
    "negligible": "none",
    "opposite": "fails",
    "undecided": "open",
    "holds": "shown",
    "does not hold": "fails",
    "not distinguishable": "open",
}
STYLE = """\
.forest text { font: 12px system-ui, sans-serif; fill: #222 }
.forest .group { font-weight: 600; font-size: 13px }
.forest .quiet { fill: #666; font-size: 11px }
.forest .axis { stroke: #999; stroke-width: 1 }
.forest .margin { fill: #8884 }
.forest .shown { stroke: #1a7f37; fill: #1a7f37 }
.forest .slight { stroke: #0a7a8f; fill: #0a7a8f }
.forest .none { stroke: #57606a; fill: #57606a }
.forest .fails { stroke: #cf222e; fill: #cf222e }
.forest .open { stroke: #9a6700; fill: #9a6700 }"""


def draw_forest(groups: Sequence[tuple[str, Sequence[Verdict]]], *, is_alone: bool = False) -> str:
    """Return the drawing as SVG, narrow enough for a phone.

    The grey band is where differences do not count, one margin to each side of none. Distances are to scale
    near it and logarithmic beyond. A claim without a margin has a word and no interval.

    Parameters
    ----------
    groups
        Verdicts by title.
    is_alone
        Whether it is a file of its own and brings its style, for a light ground; a page has it among its own.
    """
    top, parts = 30, [_draw_axis()]
    for title, verdicts in groups:
        top += 8
        for line in textwrap.wrap(title, HEAD_LETTERS):
            top += 18
            parts.append(f'<text class="group" x="{PADDING}" y="{top - 6}">{escape(line)}</text>')
        for verdict in verdicts:
            lines = textwrap.wrap(f"{verdict.claim[:-1]}: {verdict.outcome}", LETTERS)
            parts += [
                f'<text x="{PADDING}" y="{top + LINE * number + 11}">{escape(line)}</text>'
                for number, line in enumerate(lines)
            ]
            top += LINE * len(lines)
            if verdict.margin and verdict.estimate is not None:
                parts += _draw_row(verdict, verdict.margin, top)
                top += STRIP
            top += 6
    style = f"<style>{STYLE}</style>" if is_alone else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="forest" viewBox="0 0 {WIDTH} {top + PADDING}" '
        f'width="{WIDTH}" role="img" aria-label="Effect and interval of every claim in units of its margin">'
        f"{style}{''.join(parts)}</svg>"
    )


def _draw_axis() -> str:
    ticks = "".join(
        f'<text class="quiet" text-anchor="middle" x="{place(tick):.1f}" y="28">'
        f"{str(tick).replace('-', '−')}</text>"
        for tick in TICKS
    )
    words = "difference, in units of the smallest that counts"
    return f'<text class="quiet" x="{PADDING}" y="12">{words}</text>{ticks}'


def _draw_row(verdict: Verdict, margin: float, top: float) -> Iterator[str]:
    assert verdict.estimate is not None
    value, low, high = verdict.estimate.value, verdict.estimate.low, verdict.estimate.high
    middle, kind = top + STRIP / 2, CLASSES[verdict.outcome]
    first, last = place(-1), place(1)
    yield f'<rect class="margin" x="{first:.1f}" y="{top}" width="{last - first:.1f}" height="{STRIP}"/>'
    yield f'<line class="axis" x1="{place(0):.1f}" x2="{place(0):.1f}" y1="{top}" y2="{top + STRIP}"/>'
    if low is not None and high is not None:
        ends = f'x1="{place(low / margin):.1f}" x2="{place(high / margin):.1f}"'
        yield f'<line class="{kind}" {ends} y1="{middle}" y2="{middle}" stroke-width="3"/>'
    yield f'<circle class="{kind}" cx="{place(value / margin):.1f}" cy="{middle}" r="4"/>'


def place(margins: float) -> float:
    """Where so many margins are: to scale near none, logarithmic far away."""
    cut = min(max(margins, -LARGEST), LARGEST)
    reach = math.asinh(cut) / math.asinh(LARGEST)
    return WIDTH / 2 + reach * (WIDTH / 2 - PADDING)
