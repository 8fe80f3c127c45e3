"""SB-NMT: two directions at the same time, each reading the other."""
