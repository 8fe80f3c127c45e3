"""Batches of two target streams, their loss, and validation."""
