"""Images from a restricted Boltzmann machine: do entropic samplers give better ones?"""

from steppe.experiments.rbm.protocol import run

__all__ = ["run"]
