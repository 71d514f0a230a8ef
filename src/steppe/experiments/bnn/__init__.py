"""Networks of binary weights on tables: do entropic samplers generalise better?"""

from steppe.experiments.bnn.protocol import run

__all__ = ["run"]
