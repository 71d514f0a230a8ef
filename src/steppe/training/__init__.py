"""Fitting models to data with samplers."""

from steppe.training.likelihood import LogLikelihood, log_likelihood
from steppe.training.rbm import TrainedRbm, train_rbm

__all__ = ["LogLikelihood", "TrainedRbm", "log_likelihood", "train_rbm"]
