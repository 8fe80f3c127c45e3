"""The paper's comparison: its systems, what they cost, and how they score."""
