"""Figures of a run: trace, ranks, autocorrelation, effective sample size, warm-up and sites.

Each panel is drawn by one function of axes and trace, used by the page of a run and by `run.plot()`.
"""

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from steppe.diagnostics.mixing import Mixing
from steppe.diagnostics.quantity import average_replicas, measure
from steppe.diagnostics.sites import SiteVerdicts, as_paths
from steppe.report import style
from steppe.report.present_observables import describe_histograms, draw_histograms, list_drawn
from steppe.report.state_figures import ALTERNATIVES, CAPTIONS, draw_states, name_kind
from steppe.results import Figure
from steppe.target.picture import Picture
from steppe.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

MAX_POINTS = 1000
# More chains than this are shown as a fan of quantiles, for lines of so many colours cannot be told apart.
MAX_LINES = 6
COLORS = ("#0077BB", "#EE7733", "#009988", "#CC3311", "#33BBEE", "#EE3377")
BAND_COLOR, UNCONVERGED_COLOR, MOVING_COLOR, WARMUP_COLOR = "#BBCCEE", "#CC3311", "#0077BB", "#DDDDDD"
NUM_RANK_BINS = 20
MAX_LAG = 100
NUM_GROWTH_POINTS = 10
# Sites of which more are shown by how many of them change how often, instead of one by one.
MAX_SITES_DRAWN = 2000
ENOUGH_ESS = 400


class Drawn(NamedTuple):
    """A figure of a run with what stands below it."""

    figure: "Drawing"
    described: Figure


def draw_run(trace: Trace, mixing: Mixing, picture: Picture | None = None) -> Iterator[Drawn]:
    """Draw every figure that a run has something to say by; states on the picture of their target."""
    if list_drawn(mixing.streams):
        yield Drawn(draw_histograms(mixing.streams), describe_histograms(mixing.streams))
    if not trace.num_rows:  # nothing was kept but what was followed
        return
    means = mixing.chain_means
    yield Drawn(
        draw_trace(trace),
        Figure(
            key="trace",
            title="Log-density of every chain.",
            caption="Chains that overlap and show no trend agree; a chain on a level of its own has not "
            f"converged. Warm-up is shaded. {_explain_fan(len(means))}",
            alternative=f"Log-density against draw for {len(means)} chains, with means from "
            f"{means.min():.4g} to {means.max():.4g}.",
        ),
    )
    if mixing.num_draws > NUM_RANK_BINS:
        yield Drawn(
            draw_mixing(trace),
            Figure(
                key="mixing",
                title="Ranks, autocorrelation and effective draws of the log-density.",
                caption="Ranks among all draws are uniform in every chain that has converged; the band holds "
                "19 of 20 bars of independent draws. Autocorrelation should have died out well before the "
                "longest lag, and the effective sample size should grow in proportion to the draws; "
                f"the dashed line is at {ENOUGH_ESS}.",
                alternative="Histogram of ranks by chain, autocorrelation against lag, and effective sample "
                f"size against draws, {mixing.log_density.ess:.0f} in the end.",
            ),
        )
    if trace.num_warmup_rows > 1:
        yield Drawn(
            draw_warmup(trace),
            Figure(
                key="warmup",
                title="Warm-up.",
                caption="Acceptance rate, and the step size where it is adapted, before the first kept draw. "
                f"Both should have settled at the end. {_explain_fan(len(means))}",
                alternative=f"Acceptance rate over {trace.num_warmup_rows} rows of warm-up.",
            ),
        )
    sites = mixing.sites
    if sites is not None and mixing.num_draws > 1:
        yield Drawn(
            draw_sites(trace, sites),
            Figure(
                key="sites",
                title="How often each site changes.",
                caption="Fraction of consecutive kept draws between which a site changes, over all chains. "
                "Sites that have not converged are marked.",
                alternative=f"Fraction of changes for {len(sites.is_constant)} sites, of which "
                f"{sites.count('not converged')} are not converged and {sites.count('constant')} constant.",
            ),
        )
    kind = name_kind(trace, picture)
    if kind is not None:
        yield Drawn(
            draw_states(trace, picture),
            Figure(key="states", title="States.", caption=CAPTIONS[kind], alternative=ALTERNATIVES[kind]),
        )


def _explain_fan(num_chains: int) -> str:
    if num_chains <= MAX_LINES:
        return ""
    return f"Of {num_chains} chains the line is the median, the bands hold half and nine tenths of them."


def to_svg(figure: "Drawing") -> bytes:
    """Return a figure as the bytes of an SVG file, the same for the same numbers."""
    buffer = io.BytesIO()
    with style.apply():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


# ---- figures -----------------------------------------------------------------------------------------------


@style.apply()
def draw_trace(trace: Trace) -> "Drawing":
    """Log-density against row, warm-up shaded."""
    figure, (axes,) = style.make_row(1, 8.0, 3.2)
    _draw_trace(axes, trace)
    return figure


@style.apply()
def draw_mixing(trace: Trace) -> "Drawing":
    """Ranks, autocorrelation and growth of the effective sample size of the log-density."""
    figure, panels = _make_panels(3, 9.6, 2.9)
    _draw_ranks(panels[0], trace)
    _draw_autocorrelation(panels[1], trace)
    _draw_growth(panels[2], trace)
    return figure


@style.apply()
def draw_warmup(trace: Trace) -> "Drawing":
    """Acceptance rate and step size before the first kept draw."""
    has_step = trace.has("step_size")
    figure, panels = _make_panels(1 + has_step, 8.0, 2.6)
    rows = np.arange(trace.num_warmup_rows)
    _draw_chains(panels[0], rows, average_replicas(trace.statistic("acceptance_rate", warmup=True)))
    panels[0].set_ylim(0, 1.02)
    panels[0].set_ylabel("acceptance rate")
    if has_step:
        _draw_chains(panels[1], rows, average_replicas(trace.statistic("step_size", warmup=True)))
        panels[1].set_yscale("log")
        panels[1].set_ylabel("step size")
    for axes in panels:
        axes.set_xlabel("row of warm-up")
    return figure


@style.apply()
def draw_overview(trace: Trace) -> "Drawing":
    """Trace, ranks, autocorrelation and growth of the effective sample size in one figure."""
    from matplotlib.figure import Figure as Empty

    figure = Empty(figsize=(9.6, 6.4), layout="constrained")
    panels = figure.subplot_mosaic([["trace"] * 3, ["ranks", "autocorrelation", "growth"]])
    _draw_trace(panels["trace"], trace)
    if trace.num_rows - trace.num_warmup_rows > NUM_RANK_BINS:
        _draw_ranks(panels["ranks"], trace)
        _draw_autocorrelation(panels["autocorrelation"], trace)
        _draw_growth(panels["growth"], trace)
    figure.supxlabel(
        "Log-density U. Chains agree where they overlap, ranks are uniform, and the effective sample size "
        "grows with the draws.",
        fontsize=9,
    )
    return figure


@style.apply()
def draw_sites(trace: Trace, sites: SiteVerdicts) -> "Drawing":
    """Fraction of consecutive draws between which each site changes; sites not converged in red."""
    paths = as_paths(trace.levels())
    fraction = (paths[:, 1:] != paths[:, :-1]).mean(axis=(0, 1))
    groups = (
        (~sites.is_unconverged, MOVING_COLOR, "o", "mixed or constant"),
        (sites.is_unconverged, UNCONVERGED_COLOR, "X", "not converged"),
    )
    figure, (axes,) = style.make_row(1, 8.0, 2.8)
    top = max(1.1 * float(fraction.max()), 1e-3)
    if len(fraction) > MAX_SITES_DRAWN:
        bins = np.linspace(0, top, 41)
        values, colors = [fraction[is_in] for is_in, *_ in groups], [color for _, color, *_ in groups]
        axes.hist(values, bins.tolist(), color=colors, stacked=True, label=[label for *_, label in groups])
        axes.set_xlabel("fraction of draws that change a site")
        axes.set_ylabel("sites")
    else:
        for is_in, color, marker, label in groups:
            places = np.flatnonzero(is_in)
            if len(places):
                axes.plot(places, fraction[places], marker, ms=4, color=color, label=label)
        axes.set_ylim(0, top)
        axes.set_xlabel("site")
        axes.set_ylabel("fraction of draws\nthat change it")
        axes.locator_params(axis="x", integer=True)
    if sites.is_unconverged.any():
        axes.legend()
    return figure


# ---- panels ------------------------------------------------------------------------------------------------


def _make_panels(num_columns: int, width: float, height: float) -> "tuple[Drawing, list[Axes]]":
    """Figure with a row of axes, each with its own scales."""
    from matplotlib.figure import Figure as Empty

    figure = Empty(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(1, num_columns, squeeze=False)[0])


def _draw_trace(axes: "Axes", trace: Trace) -> None:
    values = average_replicas(trace.arrays["log_density"])
    rows = np.unique(np.linspace(0, values.shape[1] - 1, MAX_POINTS).astype(int))
    if trace.num_warmup_rows:
        axes.axvspan(0, trace.num_warmup_rows, color=WARMUP_COLOR, alpha=0.5, zorder=0, lw=0)
    _draw_chains(axes, rows, values[:, rows])
    axes.set_xlabel("kept row, warm-up first")
    axes.set_ylabel("log-density U")
    axes.margins(x=0)


def _draw_chains(axes: "Axes", rows: np.ndarray, values: np.ndarray) -> None:
    """Draw one line for each of a few chains, and quantiles over many."""
    finite = np.where(np.isfinite(values), values, np.nan)
    if len(finite) <= MAX_LINES:
        for color, line in zip(COLORS, finite, strict=False):
            axes.plot(rows, line, lw=0.8, alpha=0.85, color=color)
        return
    is_known = np.isfinite(finite).any(axis=0)
    rows, finite = rows[is_known], finite[:, is_known]
    for low, high, alpha in ((0.05, 0.95, 0.5), (0.25, 0.75, 1.0)):
        ends = np.nanquantile(finite, (low, high), axis=0)
        axes.fill_between(rows, *ends, color=BAND_COLOR, alpha=alpha, lw=0)
    axes.plot(rows, np.nanmedian(finite, axis=0), lw=1.0, color=MOVING_COLOR)


def _draw_ranks(axes: "Axes", trace: Trace) -> None:
    """Histogram of the ranks of U among all draws, by chain, relative to uniform."""
    values = average_replicas(trace.statistic("log_density"))
    num_chains, num_draws = values.shape
    ranks = _rank(values)
    bins = np.linspace(0, values.size, NUM_RANK_BINS + 1)
    heights = np.array([np.histogram(chain, bins)[0] for chain in ranks]) * NUM_RANK_BINS / num_draws
    reach = 1.96 * np.sqrt((NUM_RANK_BINS - 1) / num_draws)
    axes.axhspan(1 - reach, 1 + reach, color=BAND_COLOR, alpha=0.5, lw=0)
    middles = (bins[1:] + bins[:-1]) / 2 / values.size
    if num_chains <= MAX_LINES:
        for color, chain in zip(COLORS, heights, strict=False):
            axes.step(middles, chain, where="mid", lw=1.0, color=color)
    else:
        for low, high in ((0.0, 1.0), (0.25, 0.75)):
            axes.fill_between(
                middles, *np.quantile(heights, (low, high), axis=0), color=MOVING_COLOR, alpha=0.3, lw=0
            )
    axes.set_ylim(0, max(2.0, 1.1 * float(heights.max())))
    axes.set_xlabel("rank among all draws")
    axes.set_ylabel("density by chain")


def _rank(values: np.ndarray) -> np.ndarray:
    """Rank all numbers together; equal ones share out their ranks in a fixed random order."""
    shuffled = np.random.default_rng(0).permutation(values.size)
    order = np.lexsort((shuffled, values.ravel()))
    ranks = np.empty(values.size)
    ranks[order] = np.arange(values.size) + 0.5
    return ranks.reshape(values.shape)


def _draw_autocorrelation(axes: "Axes", trace: Trace) -> None:
    values = average_replicas(trace.statistic("log_density"))
    lags = min(MAX_LAG, values.shape[1] // 2)
    found = np.array([_autocorrelate(chain)[: lags + 1] for chain in values])
    _draw_chains(axes, np.arange(lags + 1), found)
    axes.axhline(0, color="#888888", lw=0.8)
    axes.set_xlabel("lag in draws")
    axes.set_ylabel("autocorrelation of U")


def _autocorrelate(values: np.ndarray) -> np.ndarray:
    centered = values - values.mean()
    power = np.abs(np.fft.rfft(centered, 2 * len(values))) ** 2
    covariance = np.fft.irfft(power)[: len(values)]
    return covariance / covariance[0] if covariance[0] > 0 else np.full(len(values), np.nan)


def _draw_growth(axes: "Axes", trace: Trace) -> None:
    values = average_replicas(trace.statistic("log_density"))
    counts = np.unique(np.linspace(NUM_RANK_BINS, values.shape[1], NUM_GROWTH_POINTS).astype(int))
    sizes = [measure("U", values[:, :count]).ess for count in counts]
    axes.plot(counts * len(values), sizes, "o-", ms=4, lw=1.2, color=MOVING_COLOR)
    axes.axhline(ENOUGH_ESS, color="#888888", lw=0.8, ls="--")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("draws, all chains")
    axes.set_ylabel("effective sample size of U")
