"""Ready-made targets: what the paper samples from, and the problems its users have."""

from steppe.targets.bernoulli import bernoulli_table, paper_bernoulli

__all__ = ["bernoulli_table", "paper_bernoulli"]
