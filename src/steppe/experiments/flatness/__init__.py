"""What laws that favour flat modes buy, and what the paper's samplers do not."""

from steppe.experiments.flatness.protocol import run

__all__ = ["run"]
