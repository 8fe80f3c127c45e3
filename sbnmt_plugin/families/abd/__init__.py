"""ABD-NMT: a backward decoder first, a forward one that reads it."""

from sbnmt_plugin.families.abd import model, search

__all__ = ["model", "search"]
