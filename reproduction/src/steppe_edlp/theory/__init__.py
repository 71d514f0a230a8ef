"""The paper's bounds as printed, and true ones in their place, against exact numbers on small targets."""
