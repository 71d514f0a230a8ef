"""Every exception and warning `steppe` raises on purpose.

One tree, so that ``except steppe.errors.SteppeError`` catches all of it. Each message names what was
given, what was expected and what to do about it.
"""


class SteppeError(Exception):
    """Base of every error raised by `steppe`.

    Examples
    --------
    >>> import steppe
    >>> try:
    ...     steppe.dmala(step_size=-1.0)
    ... except steppe.errors.SteppeError as error:  # whatever steppe refuses
    ...     print(type(error).__name__)
    RecipeError
    """


class DomainError(SteppeError, ValueError):
    """A domain was described wrongly, or asked for something it cannot do.

    Examples
    --------
    >>> import steppe
    >>> steppe.Binary(0)
    Traceback (most recent call last):
        ...
    steppe.errors.DomainError: `num_sites` must be an integer of at least 1; got 0.
    """


class TargetError(SteppeError, ValueError):
    """A log-density, or a function that goes with it, does not fit its domain.

    Examples
    --------
    >>> import steppe
    >>> steppe.Target(lambda x: x, steppe.Binary(3))
    Traceback (most recent call last):
        ...
    steppe.errors.TargetError: `log_density` must return one real number (a scalar) of shape () and ...
    """


class RecipeError(SteppeError, ValueError):
    """A sampler was given a number or an option outside its range.

    Examples
    --------
    >>> import steppe
    >>> steppe.dmala(step_size=-1.0)
    Traceback (most recent call last):
        ...
    steppe.errors.RecipeError: `dmala(step_size=...)` must be a positive number; got -1.0. Leave it ...
    """


class CompositionError(RecipeError):
    """Components were combined that cannot form a sampler.

    Examples
    --------
    >>> import steppe
    >>> steppe.mixed(steppe.dula())
    Traceback (most recent call last):
        ...
    steppe.errors.CompositionError: `mixed(base)` needs an adjusted recipe of one block without ...
    """


class StationaryDistributionError(SteppeError, ValueError):
    """A distribution was asked for that a recipe does not have, or not in closed form.

    Examples
    --------
    >>> import jax.numpy as jnp, steppe
    >>> steppe.dula().stationary(steppe.targets.paper_bernoulli()).log_prob(jnp.zeros(4))
    Traceback (most recent call last):
        ...
    steppe.errors.StationaryDistributionError: `dula` has no distribution in closed form: biased, ...
    """


class StartError(SteppeError, ValueError):
    """A chain cannot start where it was told to.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, steppe
    >>> target = steppe.targets.paper_bernoulli()
    >>> steppe.sample(target, key=jax.random.key(0), initial=jnp.full((4, 4), 0.5))
    Traceback (most recent call last):
        ...
    steppe.errors.StartError: Chain 0 starts at 0.5 on site 0, which is not a level of Binary(4). ...
    """


class GradientError(SteppeError, ValueError):
    """The gradient of a log-density says nothing about its one-site differences.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, steppe
    >>> target = steppe.Target(lambda x: jnp.sum(jnp.round(x)), steppe.Binary(4))  # the gradient is zero
    >>> steppe.audit_gradient(target, jax.random.key(0))
    Traceback (most recent call last):
        ...
    steppe.errors.GradientError: The gradient of the log-density is exactly zero at every random ...
    """


class RunError(SteppeError, ValueError):
    """A run was asked for in a way that cannot be carried out.

    Examples
    --------
    >>> import jax, steppe
    >>> steppe.sample(steppe.targets.paper_bernoulli(), key=jax.random.key(0), num_draws=0)
    Traceback (most recent call last):
        ...
    steppe.errors.RunError: `sample(num_draws=...)` must be an integer of at least 1; got 0. Leave ...
    """


class CallbackError(SteppeError, RuntimeError):
    """A function that the user gave raised an exception, which is the cause of this one.

    Examples
    --------
    >>> import jax, steppe
    >>> def stop(progress):
    ...     raise OSError("disk full")
    >>> steppe.sample(steppe.targets.paper_bernoulli(), key=jax.random.key(0), on_chunk=stop)
    Traceback (most recent call last):
        ...
    steppe.errors.CallbackError: `sample(on_chunk=...)` raised OSError: 'disk full'.
    """


class PeerError(RunError):
    """Another process of a distributed run has stopped.

    Examples
    --------
    >>> import steppe
    >>> issubclass(steppe.errors.PeerError, steppe.errors.RunError)
    True
    """


class StorageError(SteppeError, OSError):
    """A run directory cannot be written, read or continued.

    Examples
    --------
    >>> import jax, steppe
    >>> steppe.sample(
    ...     steppe.targets.paper_bernoulli(), steppe.gibbs(), key=jax.random.key(0), out="/dev/null/run"
    ... )
    Traceback (most recent call last):
        ...
    steppe.errors.StorageError: Could not start a run in /dev/null/run: Not a directory. Choose a ...
    """


class DamagedRunError(StorageError):
    """A run directory holds nothing that verifies.

    Examples
    --------
    >>> import jax, pathlib, steppe, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "run")
    >>> target = steppe.targets.paper_bernoulli()
    >>> _ = steppe.sample(target, steppe.gibbs(), key=jax.random.key(0), num_draws=20, out=path)
    >>> _ = (path / "run.json").write_text("{}")
    >>> steppe.open_run(path)
    Traceback (most recent call last):
        ...
    steppe.errors.DamagedRunError: run.json is no document of a run: it carries no digest of itself.
    """


class RunMismatchError(StorageError):
    """A run directory belongs to another target, sampler, precision or version.

    Examples
    --------
    >>> import jax, pathlib, steppe, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "run")
    >>> target = steppe.targets.paper_bernoulli()
    >>> _ = steppe.sample(target, steppe.gibbs(), key=jax.random.key(0), num_draws=20, out=path)
    >>> steppe.sample(target, steppe.gwg(), key=jax.random.key(0), num_draws=20, out=path, resume=True)
    Traceback (most recent call last):
        ...
    steppe.errors.RunMismatchError: The run on disk has recipe 'gibbs', this one has 'gwg'. ...
    """


class DataError(SteppeError, ValueError):
    r"""A data file holds something other than what its format promises.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from steppe.datasets import DataError, read_cnf
    >>> file = pathlib.Path(tempfile.mkdtemp(), "broken.cnf")
    >>> _ = file.write_text("p cnf 2 1\n1 7 0\n")
    >>> try:
    ...     read_cnf(file)
    ... except DataError as error:
    ...     print(str(error).removeprefix(str(file)))
    , line 2: the literal 7 is outside ±1 … ±2.
    """


class MissingDataError(DataError):
    """A data set is neither in the data directory nor in the cache, and was not downloaded.

    Examples
    --------
    >>> import tempfile
    >>> from steppe.datasets import MissingDataError, load
    >>> try:
    ...     load("compas", data=tempfile.mkdtemp(), download=False)
    ... except MissingDataError as error:
    ...     print("compas" in str(error))
    True
    """


class DownloadError(DataError):
    """A download failed, or brought something other than the file it was meant to bring.

    Examples
    --------
    >>> from steppe.datasets import DataError, DownloadError
    >>> issubclass(DownloadError, DataError)  # catching the one catches the other
    True
    """


class MissingPackageError(SteppeError, ImportError):
    """An optional package is not installed.

    Examples
    --------
    >>> from steppe.datasets import MissingPackageError
    >>> issubclass(MissingPackageError, ImportError)  # so that `except ImportError` catches it
    True
    """


class SteppeWarning(UserWarning):
    """Base of every warning issued by `steppe`.

    Examples
    --------
    >>> import steppe, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", steppe.errors.SteppeWarning)  # all of them
    """


class GradientWarning(SteppeWarning):
    """The gradient is a poor guide to the one-site differences of the log-density.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, steppe, warnings
    >>> parity = steppe.Target(lambda x: jnp.prod(2 * jnp.round(x) - 1) + 0.01 * jnp.sum(x), steppe.Binary(4))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     audit = steppe.audit_gradient(parity, jax.random.key(0))
    >>> [warning.category.__name__ for warning in caught]
    ['GradientWarning']
    """


class PrecisionWarning(SteppeWarning):
    """The log-density is too large for differences to be resolved in the current precision.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, steppe, warnings
    >>> target = steppe.Target(lambda x: 1e7 + jnp.sum(x), steppe.Binary(4))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     audit = steppe.audit_gradient(target, jax.random.key(0))
    >>> [warning.category.__name__ for warning in caught]
    ['PrecisionWarning']
    """


class SlowSamplerWarning(SteppeWarning):
    """A recipe can sample the target, and another one does the same in less time.

    Examples
    --------
    >>> import steppe, warnings
    >>> everyone = steppe.targets.ising([[0.1 * (i != j) for i in range(10)] for j in range(10)])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     sampler = steppe.chromatic_gibbs().build(everyone)
    >>> [warning.category.__name__ for warning in caught]
    ['SlowSamplerWarning']
    """


class DamagedRunWarning(SteppeWarning):
    """A run directory gives fewer rows than were committed to it, or draws some of them again.

    Examples
    --------
    >>> import steppe
    >>> issubclass(steppe.errors.DamagedRunWarning, steppe.errors.SteppeWarning)
    True
    """
