"""The systems of the papers, a folder each."""
