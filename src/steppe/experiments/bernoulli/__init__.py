"""The paper's four bits: who spends more time in flat modes, when every law is known exactly."""

from steppe.experiments.bernoulli.protocol import run

__all__ = ["run"]
