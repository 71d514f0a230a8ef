"""What can be presented: an object with results shows itself on a terminal, in a notebook and as text."""

import abc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Group

    from steppe.results import Results


class Presented(abc.ABC):
    """Base of what a call returns to be looked at: `print` it, `rich.print` it, or show it in a notebook."""

    @abc.abstractmethod
    def present(self) -> "Results":
        """Return everything as results, which `save(directory)` writes for `steppe report`."""

    def __rich__(self) -> "Group":
        from steppe.report.terminal import render

        return render(self.present())

    def __str__(self) -> str:
        from steppe.report.terminal import to_text

        return to_text(self.present())

    def _repr_html_(self) -> str | None:
        from steppe.report.page.render import render_fragment

        return render_fragment(self.present())
