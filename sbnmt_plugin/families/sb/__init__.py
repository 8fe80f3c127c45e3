"""SB-NMT: two directions at the same time, each reading the other."""

from sbnmt_plugin.families.sb import model

__all__ = ["model"]
