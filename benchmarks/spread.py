"""Mean and standard error over seeds, for every table of the benchmarks."""

import numpy as np


def mean_and_error(values):
    """Mean over the first axis and its standard error, 0 where there is one value only."""
    array = np.asarray(values, float)
    mean = array.mean(axis=0)
    error = array.std(axis=0, ddof=1) / np.sqrt(len(array)) if len(array) > 1 else np.zeros_like(mean)
    return (mean, error) if array.ndim > 1 else (float(mean), float(error))
