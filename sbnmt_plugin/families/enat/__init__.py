"""ENAT: all words at once, from an enhanced decoder input."""

from sbnmt_plugin.families.enat import criterion, model, options, search

__all__ = ["criterion", "model", "options", "search"]
