"""Corpora made the text of a recipe: as published, raw, or made up."""
