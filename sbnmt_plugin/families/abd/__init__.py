"""ABD-NMT: a backward decoder first, a forward one that reads it."""
