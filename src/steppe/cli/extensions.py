"""Plug-ins: commands, samplers and targets that other packages add to `steppe`, found by their entry points.

Three groups: `steppe.commands` (a verb and the function that handles it, for example
`reproduce = "steppe_edlp.command:reproduce"`; the summary of its distribution is the verb's line in
`steppe --help`), `steppe.samplers` (a name and the function that makes the recipe) and `steppe.targets` (a
name and the function that makes the target). Nothing of a package is imported before its name is asked for.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, NoReturn

from cyclopts import App, Parameter

from steppe.errors import MissingPackageError

COMMANDS, SAMPLERS, TARGETS = "steppe.commands", "steppe.samplers", "steppe.targets"
# Verbs of packages that belong to `steppe` and are installed apart.
PACKAGES = {"bench": "steppe-bench", "reproduce": "steppe-edlp"}

Extensions = Mapping[str, list[EntryPoint]]
Words = Annotated[str, Parameter(allow_leading_hyphen=True)]


def find_extensions(group: str = COMMANDS) -> dict[str, list[EntryPoint]]:
    """Entry points of all installed packages by name; several of one name if several packages give it."""
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=group):
        found.setdefault(point.name, []).append(point)
    return found


def add_commands(app: App, extensions: Extensions) -> Extensions:
    """Register the verbs of other packages without importing them; return those that were free.

    Parameters
    ----------
    app
        The command line with its own verbs, which no package replaces.
    extensions
        Entry points by verb.
    """
    added = {verb: points for verb, points in extensions.items() if verb not in app}
    for verb, points in added.items():
        app.command(points[0].value, name=verb, help=_summarize(points[0]))
    for verb, package in PACKAGES.items():
        if verb not in app:
            _add_missing(app, verb, package)
    return added


def load_command(app: App, extensions: Extensions, verb: str) -> None:
    """Import the function behind a verb, with which its arguments and its own help are known.

    Parameters
    ----------
    app, extensions
        The command line, and what `add_commands` returned.
    verb
        What was typed; nothing happens if no package gives it.

    Raises
    ------
    MissingPackageError
        If the function cannot be imported, or several packages give the verb.
    """
    points = extensions.get(verb, [])
    if not points:
        return
    function = load_function(points, f"`steppe {verb}`")
    del app[verb]
    app.command(function, name=verb)


def load_function(points: list[EntryPoint], what: str) -> Callable[..., object]:
    """Import the function that an entry point names.

    Parameters
    ----------
    points
        The entry points of one name.
    what
        What they give, as the beginning of a sentence.

    Raises
    ------
    MissingPackageError
        If the function cannot be imported or called, or several packages give one of that name.
    """
    if len({point.value for point in points}) > 1:
        raise MissingPackageError(
            f"{what} is given by {' and by '.join(map(describe_point, points))}; uninstall all but one."
        )
    try:
        function = points[0].load()
    except Exception as error:
        raise MissingPackageError(
            f"{what} is given by {describe_point(points[0])}, which cannot be imported "
            f"({type(error).__name__}: {error}); install a version that goes with this steppe."
        ) from error
    if not callable(function):
        raise MissingPackageError(
            f"{what} is given by {describe_point(points[0])}, which is not a function but "
            f"{type(function).__name__}; the package must be mended."
        )
    return function


def _add_missing(app: App, verb: str, package: str) -> None:
    """Register a verb that says which line installs it."""

    def refuse(*_: Words) -> NoReturn:
        raise MissingPackageError(
            f"`steppe {verb}` needs `{package}`, which is not installed; `pip install {package}` adds it."
        )

    app.command(refuse, name=verb, help=f"Not installed; `pip install {package}` adds it.", help_flags=[])


def _summarize(point: EntryPoint) -> str:
    return "" if point.dist is None else point.dist.metadata["Summary"] or ""


def describe_point(point: EntryPoint) -> str:
    """Name the package of an entry point, and the function it leads to."""
    return f"`{point.value}`" if point.dist is None else f"`{point.dist.name}` ({point.value})"
