"""The summary of a run as a table for a terminal, as plain text and as JSON. Layout only."""

import dataclasses
import io
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from steppe.diagnostics.findings import Diagnosis
from steppe.diagnostics.mixing import LOG_DENSITY, Cost, Mixing
from steppe.diagnostics.quantity import Quantity

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

WIDTH = 100
MAX_CHAINS_SHOWN = 8
UNDEFINED = "–"
LABEL_STYLES = {"mixed": "green", "moving": "green", "constant": "yellow", "stuck": "bold red"}


@dataclasses.dataclass(frozen=True, repr=False)
class Summary:
    """What a run says about itself.

    Show it with `rich.print(summary)` or `print(summary)`; `to_dict()` is ready for JSON.

    Attributes
    ----------
    config
        What was run.
    mixing
        Figures and verdicts.
    cost
        Steps, model evaluations and seconds.
    diagnosis
        What is wrong, in sentences.
    """

    config: Mapping[str, Any]
    mixing: Mixing
    cost: Cost
    diagnosis: Diagnosis

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings; what is undefined or infinite is `None`."""
        mixing, sites, chains = self.mixing, self.mixing.sites, self.mixing.chains
        return {
            "recipe": self.config["recipe"],
            "domain": self.config["domain"],
            "num_chains": len(mixing.chain_means),
            "num_draws": mixing.num_draws,
            "ok": self.diagnosis.ok,
            "findings": list(self.diagnosis.findings),
            "quantities": {one.name: _numbers(one) for one in mixing.quantities},
            "sites": None if sites is None else sites.labels.tolist(),
            "chains": [
                {"verdict": label, "mean_log_density": _finite(mean)}
                for label, mean in zip(chains.labels, mixing.chain_means, strict=True)
            ],
            "acceptance_rate": _finite(mixing.acceptance_rate),
            "flip_rate": _finite(mixing.flip_rate),
            "num_unique": mixing.num_unique,
            "num_nonfinite": mixing.num_nonfinite,
            **self.cost._asdict(),
            "ess_per_evaluation": _ratio(mixing.log_density.ess, self.cost.num_evaluations),
            "ess_per_step": _ratio(mixing.log_density.ess, self.cost.num_steps),
            "ess_per_second": _ratio(mixing.log_density.ess, self.cost.seconds),
        }

    def __rich__(self) -> "Group":
        from rich.console import Group
        from rich.text import Text

        parts = [_title(self), Text(), _quantity_table(self.mixing), Text(), _fact_table(self), Text()]
        if set(self.mixing.chains.labels) != {"moving"}:
            parts += [_chain_table(self.mixing), Text()]
        return Group(*parts, *_finding_lines(self.diagnosis))

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(
            file=io.StringIO(), width=WIDTH, color_system=None, force_jupyter=False, legacy_windows=False
        )
        with console.capture() as captured:
            console.print(self)
        return "\n".join(line.rstrip() for line in captured.get().splitlines())

    __repr__ = __str__  # so that `run.summary()` at a prompt is the table


def _title(summary: Summary) -> "Text":
    from rich.text import Text

    config, mixing = summary.config, summary.mixing
    copies = f" of {mixing.num_copies} copies" if mixing.num_copies > 1 else ""
    thinning = f", every {config['thinning']} steps" if config["thinning"] > 1 else ""
    counts = f"{_count(len(mixing.chain_means), 'chain')} × {mixing.num_draws} draws{copies}{thinning}"
    title = Text(printable(f"{config['recipe']} on {config['domain']}"), style="bold")
    return title.append(f"   {counts}, after {config['num_warmup']} warm-up steps", style="not bold dim")


def _quantity_table(mixing: Mixing) -> "Table":
    table = _table("quantity", "mean", "sd", "MCSE", "ESS", "R-hat", style="bold cyan")
    for one in mixing.quantities:
        label = "U (log-density)" if one.name == LOG_DENSITY else printable(one.name)
        style = "bold red" if one.rhat > mixing.limit else ""
        figures = [_figure(one.mean), _figure(one.sd), _figure(one.mcse, 2), _whole(one.ess)]
        table.add_row(_text(label), *figures, _text(_rhat(one.rhat), style))
    return table


def _fact_table(summary: Summary) -> "Table":
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    for label, value in _facts(summary):
        table.add_row(f" {label}", value)
    return table


def _facts(summary: Summary) -> Iterator[tuple[str, "str | Text"]]:
    mixing = summary.mixing
    if mixing.sites is not None:
        yield "sites", _site_counts(mixing)
    yield "chains", _chain_counts(mixing)
    yield "moves", f"acceptance {mixing.acceptance_rate:.3f} · {mixing.flip_rate:.3g} flips per site and step"
    if mixing.num_unique is not None:
        num_states = len(mixing.chain_means) * mixing.num_draws * mixing.num_copies
        yield "states", f"{mixing.num_unique} different among {num_states}"
    if mixing.num_nonfinite:
        yield "defects", _text(f"{mixing.num_nonfinite} proposals not a number", "bold red")
    yield "ESS of U", " · ".join(_efficiency(summary.cost, mixing.log_density.ess))


def _site_counts(mixing: Mixing) -> "Text":
    from rich.text import Text

    assert mixing.sites is not None
    counts = {label: mixing.sites.count(label) for label in ("mixed", "stuck", "constant")}
    parts = [Text(f"{count} {label}", LABEL_STYLES[label]) for label, count in counts.items() if count]
    return Text(" · ").join(parts).append(f"   of {len(mixing.sites.is_constant)}", style="dim")


def _chain_counts(mixing: Mixing) -> "Text":
    means, num_moving = mixing.chain_means, mixing.chains.labels.count("moving")
    text = _text(f"{num_moving} moving", LABEL_STYLES["moving"] if num_moving == len(means) else "bold red")
    spread = f"E[U] from {_figure(means.min())} to {_figure(means.max())}"
    return text.append(f"   of {len(means)}", style="dim").append(f" · {spread}", style="not bold default")


def _efficiency(cost: Cost, ess: float) -> Iterator[str]:
    if cost.num_evaluations is None:
        yield f"{_figure(ess / cost.num_steps, 3)} per step, whose cost depends on the target"
    else:
        yield f"{_figure(ess / cost.num_evaluations, 3)} per model evaluation"
    if cost.seconds > 0:
        yield f"{_figure(ess / cost.seconds, 3)} per second"
    yield "warm-up counted"


def _chain_table(mixing: Mixing) -> "Table":
    table = _table("chain", "E[U]", "verdict", style="cyan")
    labels = mixing.chains.labels
    # With many chains, those that have something to say come first.
    order = sorted(range(len(labels)), key=lambda chain: labels[chain] == "moving")
    shown = sorted(order[:MAX_CHAINS_SHOWN])
    table.columns[-1].justify = "left"
    for chain in shown:
        verdict = _text(labels[chain], LABEL_STYLES.get(labels[chain], "bold red"))
        table.add_row(str(chain), _figure(mixing.chain_means[chain]), verdict)
    if len(shown) < len(labels):
        table.add_row("…", "", f"{len(labels) - len(shown)} more")
    return table


def _finding_lines(diagnosis: Diagnosis) -> "Iterator[Text | Table]":
    if diagnosis.ok:
        yield _text(" ✓ Nothing is stuck." + (" But:" if diagnosis.findings else ""), "green")
    else:
        yield _text(" ✗ Not to be relied on:", "bold red")
    for finding in diagnosis.findings:
        yield _finding(finding, "yellow" if diagnosis.ok else "red")


def _finding(finding: str, style: str) -> "Table":
    from rich.table import Table

    line = Table.grid()  # so that wrapped lines are indented
    line.add_row(_text(" • ", style), _text(printable(finding)))
    return line


def _table(first: str, *columns: str, style: str) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, header_style=style, pad_edge=True, show_edge=False)
    table.add_column(first)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _text(content: str, style: str = "") -> "Text":
    from rich.text import Text

    return Text(content, style)


def printable(content: str) -> str:
    """Replace control characters, so that a name cannot steer a terminal."""
    return "".join(character if character.isprintable() else "�" for character in content)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _figure(value: float, digits: int = 4) -> str:
    if not math.isfinite(value):
        return UNDEFINED
    has_decimals = 1e3 <= abs(value) < 1e7  # rather than a power of ten
    return (f"{value:.1f}" if has_decimals else f"{value:#.{digits}g}").replace("-", "−")


def _whole(value: float) -> str:
    return f"{value:.0f}" if math.isfinite(value) else UNDEFINED


def _rhat(value: float) -> str:
    if math.isnan(value):
        return UNDEFINED
    return f"{value:.3f}" if math.isfinite(value) else "∞"


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _ratio(value: float, by: float | None) -> float | None:
    return _finite(value / by) if by else None


def _numbers(quantity: Quantity) -> dict[str, float | None]:
    figures = quantity._asdict()
    figures.pop("name")
    return {name: _finite(value) for name, value in figures.items()}
