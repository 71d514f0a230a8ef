"""Importing the package pins the process: it must happen before jax or torch start."""

from speed.harness import pin

pin()
