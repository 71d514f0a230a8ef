"""Blocks: the parts of a step, each of which moves its variables and owns its memory."""
