"""Trained models as folders, which translate raw text."""
