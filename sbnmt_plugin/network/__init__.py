"""The model: what it computes, and what a decoder must give the search."""
