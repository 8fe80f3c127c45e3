"""ENAT: all words at once, from an enhanced decoder input."""
