"""Images from a restricted Boltzmann machine: do entropic samplers give better ones?"""
