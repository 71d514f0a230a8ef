"""Pure functions from samplers, targets and traces to numbers."""
