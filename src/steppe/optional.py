"""Imports that wait: packages that may be missing, and names of a package that stand for a function."""

import importlib
from types import ModuleType

from steppe.errors import MissingPackageError

EXTRAS = ("blackjax", "data", "graphs", "networks", "numpyro", "plots", "pymc", "report")
# Packages whose build depends on the computer, so that no one line fits all.
BUILT_FOR_COMPUTERS = {"torch": "install PyTorch as its own page says for this computer; a CPU build will do"}


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
    adds = BUILT_FOR_COMPUTERS.get(name, f"`{line}` adds it")
    try:
        importlib.import_module(name)
        return importlib.import_module(package)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            raise MissingPackageError(f"{purpose} needs `{name}`, which is not installed; {adds}.") from error
        # There, but too old to have this part of it, or at odds with another package.
        raise MissingPackageError(
            f"{purpose} needs `{package}`, which the installed `{name}` does not give: {error}. "
            f"`{line} --upgrade` brings one that does."
        ) from error


class PackageOfFunctions(ModuleType):
    """A package in which a module stands for the function of its name in it: `steppe.tune(...)`.

    Python makes a module an attribute of its package whenever it is imported, and functions are looked up
    there only once they are asked for.
    """

    def __setattr__(self, name: str, value: object) -> None:
        """Set the function, where a module has one of its own name."""
        function = getattr(value, name, None) if isinstance(value, ModuleType) else None
        super().__setattr__(name, function if callable(function) else value)
