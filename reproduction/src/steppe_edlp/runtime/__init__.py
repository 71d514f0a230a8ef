"""Time per full update: plain, entropic and Gibbs-like samplers, with model evaluations counted."""
