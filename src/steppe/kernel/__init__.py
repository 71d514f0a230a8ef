"""One transition of one chain: coupling, proposal, acceptance, sweep, composed into a sampler."""
