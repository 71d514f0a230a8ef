"""From an evaluated state, which distribution is proposed?

A proposal is a piece with

- `distribution(landscape, state)`: an object with `sample(keys) → value` and `terms(value)`, a list of
  arrays that sum to the log-probability of the value;
- `move(landscape, state, value) → State`: the evaluated state the value leads to;
- `reverse(old, value)`: the value that leads back from there to `old`;
- `moves`: the fields of the state it changes, and `is_exact`: whether it leaves the law invariant
  without a Metropolis decision.

Metropolis needs nothing else, so one acceptance rule serves all of them.
"""
