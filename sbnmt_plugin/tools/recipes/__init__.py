"""Recipes: rows of a results table, the steps that make them, and their runs."""
