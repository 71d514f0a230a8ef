"""Optional packages: imported where they are needed, missed with one sentence."""

import importlib
from types import ModuleType

from steppe.errors import MissingPackageError

EXTRAS = ("blackjax", "data", "graphs", "networks", "numpyro", "plots", "pymc", "report", "torch")


def needed(package: str, extra: str, purpose: str) -> ModuleType:
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
    try:
        return importlib.import_module(package)
    except ImportError as error:
        name = package.split(".", maxsplit=1)[0]
        line = f'pip install "steppe[{extra}]"' if extra in EXTRAS else f"pip install {extra}"
        raise MissingPackageError(
            f"{purpose} needs `{name}`, which is not installed; `{line}` adds it."
        ) from error
