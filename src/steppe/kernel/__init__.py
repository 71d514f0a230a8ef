"""One transition of one chain: contracts, joint density, proposals, blocks, and their composition."""
