"""The published experiments: protocols, and what is needed to judge their results."""
