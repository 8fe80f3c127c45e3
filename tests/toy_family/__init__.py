"""A sixth family, outside of the package: ``--user-dir tests/toy_family``.

fairseq imports this folder as it imports the plugin's own, which it imports first.
"""

from sbnmt_plugin.register import register
from toy_family import model, search

__all__ = ["model", "search"]

register()  # the task once more, with the family's options
