"""The report of ``sbnmt report``: pure functions for its numbers, figures, page."""
