"""Results of work folders: tables, comparisons, sweeps."""
