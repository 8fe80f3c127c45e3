"""Symbols with a meaning of their own, and names of the directions.

No torch: tools that read text need them too.

No text may hold one as a token.  fairseq's ``<unk>`` may stand there: a teacher writes
it for a word that it does not know, and it is binarised as what it is.
"""

from __future__ import annotations

NAMES = ("l2r", "r2l")  # of the directions
TAGS = ("<l2r>", "<r2l>")  # the first input of a stream, by direction
SPECIALS = ("<s>", "<pad>", "</s>")  # fairseq's, of every dictionary
UNKNOWN = "<unk>"
RESERVED = (*TAGS, *SPECIALS)
