"""What the steps of ``sbnmt`` are made of; the steps are in :mod:`commands`."""
