"""The travelling salesman: the paper's eight cities, and instances of TSPLIB."""

from steppe.experiments.tsp.protocol import run

__all__ = ["run"]
