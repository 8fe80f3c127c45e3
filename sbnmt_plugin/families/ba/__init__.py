"""RNNsearch and BA-NMT, attention that remembers what it has given."""

from sbnmt_plugin.families.ba import model

__all__ = ["model"]
