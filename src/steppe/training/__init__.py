"""Fitting models to data with samplers."""

from steppe.training.fit import TrainedRbm, train_rbm
from steppe.training.likelihood import LogLikelihood, log_likelihood

__all__ = ["LogLikelihood", "TrainedRbm", "log_likelihood", "train_rbm"]
