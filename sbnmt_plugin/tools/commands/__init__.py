"""The steps of the command ``sbnmt``, a module each; no library imports one."""
