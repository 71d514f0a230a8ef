"""Sentences about networks of binary weights."""

from collections.abc import Sequence

from steppe.results import Figure
from steppe_edlp.bnn.published import PAPER
from steppe_edlp.bnn.tables import Rows
from steppe_edlp.request import Request


def figures(request: Request) -> list[Figure]:
    """What is drawn."""
    return [
        Figure(
            key="rmse",
            title="Test error of every sampler beside simple predictors",
            caption="Test RMSE with intervals; lines: a constant (dashed) and least squares (dotted). "
            "Circles: the paper's network; squares: the well-posed one; diamonds: the paper's numbers. "
            "What the network is matters far more than which sampler draws it.",
            alternative="One dot plot per table of data with test error by sampler.",
        ),
        Figure(
            key="series",
            title="Along the run",
            caption="Test RMSE and training log-likelihood at every log point of the paper's network"
            + (", mean over seeds." if request.is_sound else ".")
            + " The paper averages over the whole curve, its beginning included.",
            alternative="Two curves per sampler against the number of steps.",
        ),
    ]


def notes(request: Request, tables: Sequence[Rows]) -> list[str]:
    """What a reader must know beside the tables."""
    lines = [
        *(_rows_left_out(rows) for rows in tables if not rows.is_whole),
        *_why_not_the_papers(request, tables),
        (
            "The paper states 500 hidden units and U = −Σ (f − y)²; its numbers come out of its code with "
            "100 units and U = −100 · mean (f − y)², which is what is run here at full scale."
        ),
        (
            "Its ± is the spread along one run, mostly burn-in, and says nothing about other seeds: "
            "differences of 0.001 between samplers cannot be read from it."
        ),
        (
            "On News and Blog the paper's networks predict worse than the mean of the training rows; a "
            "constant has RMSE 0.068 and 0.189 there."
        ),
    ]
    if request.is_sound:
        lines.append(
            "In the well-posed network the inputs of every unit stay of order one, and all samplers get "
            "the same number of evaluations: a step of Gibbs there resamples as many sites as there are "
            "hidden units."
        )
    return lines


def _rows_left_out(rows: Rows) -> str:
    train, test = rows.num_published
    return (
        f"Only the first {len(rows.train)} of {train} training rows of {rows.name} and {len(rows.test)} of "
        f"{test} test rows are used. All rows: `steppe reproduce bnn --scale full --instance {rows.name} "
        "--data DIR`."
    )


def _why_not_the_papers(request: Request, tables: Sequence[Rows]) -> list[str]:
    """Why the paper's numbers cannot come out, as far as that is known beforehand."""
    lines = []
    if any(rows.name in PAPER and not rows.is_whole for rows in tables):
        lines.append("The paper's numbers are from all rows, and cannot come out from fewer.")
    if any(rows.name not in PAPER for rows in tables):
        lines.append(
            "The table that ships with scikit-learn is not one of the paper's, so none of its numbers can "
            "come out; use --data DIR for those."
        )
    if request.is_quick:
        lines.append(
            "At quick scale there are fewer and smaller networks and fewer steps than in the paper, so its "
            "numbers cannot come out on its own tables either; use --scale full."
        )
    if not request.is_sound:
        lines.append(
            "The random numbers come from another generator than the authors', so that a single run cannot "
            "show the paper's digits."
        )
    return lines
