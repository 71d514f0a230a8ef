"""Optional packages: imported where they are needed, missed with one sentence."""

import importlib
from types import ModuleType

from steppe.errors import MissingPackageError

EXTRAS = ("blackjax", "data", "graphs", "networks", "numpyro", "plots", "pymc", "report", "torch")


def require(package: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional package, or say in one sentence how to get it.

    Parameters
    ----------
    package
        What to import, for example `"sklearn.datasets"`.
    extra
        The extra of `steppe` that brings it, or the name of the package itself.
    purpose
        What it is needed for, as the beginning of a sentence.
    """
    name = package.split(".", maxsplit=1)[0]
    line = f'pip install "steppe[{extra}]"' if extra in EXTRAS else f"pip install {extra}"
    try:
        importlib.import_module(name)
        return importlib.import_module(package)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            raise MissingPackageError(
                f"{purpose} needs `{name}`, which is not installed; `{line}` adds it."
            ) from error
        # There, but too old to have this part of it, or at odds with another package.
        raise MissingPackageError(
            f"{purpose} needs `{package}`, which the installed `{name}` does not give: {error}. "
            f"`{line} --upgrade` brings one that does."
        ) from error
