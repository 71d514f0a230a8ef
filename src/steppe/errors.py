"""Every exception and warning `steppe` raises on purpose.

One tree, so that ``except steppe.errors.SteppeError`` catches all of it. Each message names what was
given, what was expected and what to do about it.
"""


class SteppeError(Exception):
    """Base of every error raised by `steppe`."""


class DomainError(SteppeError, ValueError):
    """A domain was described wrongly, or asked for something it cannot do."""


class TargetError(SteppeError, ValueError):
    """A log-density, or a function that goes with it, does not fit its domain."""


class RecipeError(SteppeError, ValueError):
    """A sampler was given a number or an option outside its range."""


class CompositionError(RecipeError):
    """Components were combined that cannot form a sampler."""


class StationaryDistributionError(SteppeError, ValueError):
    """A distribution was asked for that a recipe does not have, or not in closed form."""


class StartError(SteppeError, ValueError):
    """A chain cannot start where it was told to."""


class GradientError(SteppeError, ValueError):
    """The gradient of a log-density says nothing about its one-site differences."""


class RunError(SteppeError, ValueError):
    """A run was asked for in a way that cannot be carried out."""


class CallbackError(SteppeError, RuntimeError):
    """A function that the user gave raised an exception, which is the cause of this one."""


class PeerError(RunError):
    """Another process of a distributed run has stopped."""


class StorageError(SteppeError, OSError):
    """A run directory cannot be written, read or continued."""


class DamagedRunError(StorageError):
    """A run directory holds nothing that verifies."""


class RunMismatchError(StorageError):
    """A run directory belongs to another target, sampler, precision or version."""


class DataError(SteppeError, ValueError):
    """A data file holds something other than what its format promises."""


class MissingDataError(DataError):
    """A data set is neither in the data directory nor in the cache, and was not downloaded."""


class DownloadError(DataError):
    """A download failed, or brought something other than the file it was meant to bring."""


class MissingPackageError(SteppeError, ImportError):
    """An optional package is not installed."""


class SteppeWarning(UserWarning):
    """Base of every warning issued by `steppe`."""


class GradientWarning(SteppeWarning):
    """The gradient is a poor guide to the one-site differences of the log-density."""


class PrecisionWarning(SteppeWarning):
    """The log-density is too large for differences to be resolved in the current precision."""


class DamagedRunWarning(SteppeWarning):
    """A run directory gives fewer rows than were committed to it, or draws some of them again."""
