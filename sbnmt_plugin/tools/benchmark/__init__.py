"""Parts of benchmark.py: systems that are timed in turn, tables, plots."""
