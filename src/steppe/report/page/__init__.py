"""One HTML file that shows results: verdicts, tables, figures, settings. Layout only, no computing."""

from steppe.report.page.write import write_page

__all__ = ["write_page"]
