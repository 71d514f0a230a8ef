"""Numbers → tables and figures. Layout only: no sampling, no statistics."""
