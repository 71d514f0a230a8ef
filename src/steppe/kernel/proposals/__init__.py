"""Proposals: from an evaluated state to a distribution of values, and from a value to the next state."""
