"""Random numbers: Threefry words, and draws that are fine enough to enter a Metropolis ratio."""
