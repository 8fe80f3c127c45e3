"""Attempts to make the other steps lose something: kills, floods, garbage."""
