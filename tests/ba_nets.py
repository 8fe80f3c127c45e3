"""BA-NMT's forward pass, and its variants by what the decoder attends to."""

import pytest
from helpers import source

from sbnmt_plugin.families.ba.attention import HISTORIES

VARIANTS = pytest.mark.parametrize("history", HISTORIES)


def forward(model, prev, net_input=None):
    """Return (B, T, V) logits and (B, T, S) attention weights α."""
    logits, extra = model(**(net_input or source(model)), prev_output_tokens=prev)
    return logits, extra["attn"][0]
