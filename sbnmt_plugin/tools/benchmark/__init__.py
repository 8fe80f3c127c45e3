"""Parts of ``sbnmt benchmark``: systems that are timed in turn, and tables."""
