"""How programs are compiled."""

from functools import partial

import jax

# For what runs once or briefly, so that compiling is most of its time: level 1 compiles up to three times as
# fast and runs 0–30 % slower.
quick_jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 1})
