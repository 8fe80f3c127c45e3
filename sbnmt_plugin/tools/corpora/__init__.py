"""Corpora made into the text of a recipe: published, raw, or made up."""
