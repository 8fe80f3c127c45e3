"""Pseudo targets by CTranslate2, for which a teacher is converted at first."""

from __future__ import annotations

import sys
from typing import Any

from sbnmt_plugin.layout import NAMES
from sbnmt_plugin.network.fairseq_decoder import adopt
from sbnmt_plugin.search.options import SearchOptions
from sbnmt_plugin.tools.models.conversion import ConvertedSearch, refuse_unknown
from sbnmt_plugin.tools.translator import Translator

HONOURED = (
    *("beam", "directions", "penalty", "rescore", "max_len_a", "max_len_b"),
    "nbest",  # always 1
)
SAMPLE = 200  # lines that this package's own search translates too


class ConvertedTranslator(Translator):
    """A model converted for CTranslate2, which translates lists of sentences.

    The share of lines that this package's own search would translate otherwise is
    measured on the first lines, and told on standard error.

    Args:
        arguments: fairseq-generate's command line.

    Raises:
        ValueError: CTranslate2 does not know the model, or an option of the search.
    """

    def __init__(self, arguments: list[str]) -> None:
        super().__init__(arguments)
        self.own: Any = self.generator
        model, options, cfg = self.models[0], self.own.options, self.task.cfg
        refuse_unknown(model)
        kept = {name: getattr(options, name) for name in HONOURED}
        narrow = cfg.sb_bf16 or cfg.sb_int8 or self.cfg.common.fp16
        single = len(self.models) == 1 and not adopt(model.decoder).interacts
        if not single or narrow or options != SearchOptions(**kept):
            raise ValueError(
                "--engine ctranslate2 takes one model in float32 that has no "
                "interaction, and of the search --beam, --lenpen, --sb-length-penalty, "
                "--sb-rescore, --max-len-a and --max-len-b: leave out all else"
            )
        kept |= {"lenpen": options.penalty.alpha, "max_positions": 0}
        kept["length_penalty"] = options.penalty.name
        directions = tuple(NAMES[x] for x in options.directions)
        device = "cuda" if self.cuda else "cpu"
        self.generator = ConvertedSearch(model, directions, kept, device)

    def translate(self, lines: list[str]) -> tuple[dict[int, Any], dict[int, str]]:
        """Translate sentences: see :meth:`translator.Translator.translate`."""
        found, skipped = super().translate(lines)
        if self.own is not None:
            converted, self.generator, self.own = self.generator, self.own, None
            ours, _ = super().translate(lines[:SAMPLE])
            self.generator = converted
            both = ours.keys() & found.keys()
            pairs = [(self.text(ours[i]), self.text(found[i])) for i in both]
            share = f"{sum(a != b for a, b in pairs)} of the first {len(pairs)} lines"
            print(f"{share} are translated otherwise than by fairseq", file=sys.stderr)
        return found, skipped
