"""What ``sbnmt benchmark`` is made of: systems that are timed in turn, and tables."""
