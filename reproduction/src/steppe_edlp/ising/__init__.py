"""The Ising model of the authors' code: 25 spins, whose distribution is known exactly."""
