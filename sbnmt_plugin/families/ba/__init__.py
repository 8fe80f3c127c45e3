"""RNNsearch and BA-NMT, attention that remembers what it has given."""
