"""Libraries of the steps of ``sbnmt``; the steps are in :mod:`commands`."""
