"""What the coupling variance η does: to the center, to acceptance, and to a network's predictions."""
