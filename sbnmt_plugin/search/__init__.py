"""The synchronous bidirectional beam search (paper, section 3.1)."""
