"""Alternatives under a budget: how many good solutions the entropic samplers find, and which."""
