"""The report of scripts/report.py: pure functions for its numbers, figures, page."""
