"""Rough translations of a batch's sources, looked up in a phrase table."""

from __future__ import annotations

from typing import Any

from torch.nn.utils.rnn import pad_sequence

from sbnmt_plugin.training.phrase_table import PhraseTable


class Lookup:
    """Adds ``lookup_tokens`` (B, Z) to a batch: ``</s>`` last, padded on the right.

    Args:
        path: of the phrase table.
        source: dictionary, whose ``</s>`` and padding are the target's, too.
        target: dictionary.
    """

    def __init__(self, path: str, source: Any, target: Any) -> None:
        words = PhraseTable.load(path)
        indices = source.index, target.index
        self.table = words.with_ids(*indices, source.unk(), target.unk())
        self.pad, self.eos = source.pad(), source.eos()

    def __call__(self, net_input: dict[str, Any]) -> dict[str, Any]:
        """Complete fairseq's ``net_input``, which has ``src_tokens`` (B, S)."""
        if "lookup_tokens" in net_input:
            return net_input
        tokens, skipped = net_input["src_tokens"], (self.pad, self.eos)
        texts = [[x for x in row if x not in skipped] for row in tokens.tolist()]
        found = [tokens.new_tensor([*self.table.lookup(x), self.eos]) for x in texts]
        return {**net_input, "lookup_tokens": pad_sequence(found, True, self.pad)}
