"""Pseudo targets by CTranslate2, for which a teacher is converted at first."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from sbnmt_plugin.layout import NAMES
from sbnmt_plugin.network.fairseq_decoder import adopt
from sbnmt_plugin.search.options import SearchOptions
from sbnmt_plugin.search.penalties import name_of
from sbnmt_plugin.tools.models.conversion import convert, refuse_unknown
from sbnmt_plugin.tools.models.converted import Converted
from sbnmt_plugin.tools.models.ctranslate2_engine import CTranslate2Engine
from sbnmt_plugin.tools.translator import Translator

HONOURED = (
    *("beam", "directions", "penalty", "rescore", "max_len_a", "max_len_b"),
    *("nbest", "stop"),  # one answer, and an end of its own
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
        model, options, task = self.models[0], self.generator.options, self.task
        refuse_unknown(model)
        kept = SearchOptions(**{name: getattr(options, name) for name in HONOURED})
        narrow = task.cfg.sb_bf16 or task.cfg.sb_int8 or self.cfg.common.fp16
        single = len(self.models) == 1 and not adopt(model.decoder).interacts
        if not single or narrow or options != kept:
            raise ValueError(
                "--engine ctranslate2 takes one model in float32 that has no "
                "interaction, and of the search --beam, --lenpen, --sb-length-penalty, "
                "--sb-rescore, --max-len-a and --max-len-b: leave out all else"
            )
        directions = tuple(NAMES[x] for x in options.directions)
        with tempfile.TemporaryDirectory() as name:
            words = task.source_dictionary, task.target_dictionary
            convert(model, *words, directions, Path(name))
            device = "cuda" if self.cuda else "cpu"
            converted = Converted(Path(name), directions, device)
        search = {name: getattr(options, name) for name in HONOURED}
        search |= {"lenpen": options.penalty.alpha}
        search |= {"length_penalty": name_of(options.penalty)}
        self.engine = CTranslate2Engine(converted, search, 1)
        self.compared = False

    def translate(self, lines: list[str]) -> tuple[dict[int, Any], dict[int, str]]:
        """Translate sentences: see :meth:`translator.Translator.translate`."""
        most = min(self.max_positions[0], self.max_tokens)
        sizes = [len(line.split()) for line in lines]
        usual = [place for place, size in enumerate(sizes) if 0 < size < most]
        answers = self.engine.hypotheses([lines[place] for place in usual])
        found: dict[int, Any] = {}
        skipped: dict[int, str] = {}
        for place, answer in zip(usual, answers):
            if isinstance(answer, str):
                skipped[place] = answer
            else:
                found[place] = {"score": answer[0].score, "text": answer[0].tokens}
        if usual and not self.compared:
            self.compare([(lines[place], found.get(place)) for place in usual[:SAMPLE]])
        others = [place for place in range(len(lines)) if place not in {*usual}]
        if others:  # empty and over-long lines
            odd, reasons = super().translate([lines[place] for place in others])
            found |= {others[i]: answer for i, answer in odd.items()}
            skipped |= {others[i]: reason for i, reason in reasons.items()}
        return found, skipped

    def compare(self, rows: list[tuple[str, Any]]) -> None:
        """Tell how many lines the search of this package translates otherwise.

        Args:
            rows: lines, and what CTranslate2 has found.
        """
        ours, _ = super().translate([line for line, _ in rows])
        texts = [super(ConvertedTranslator, self).text(h) for h in ours.values()]
        theirs = [rows[place][1] for place in ours]
        changed = sum(h is None or h["text"] != text for h, text in zip(theirs, texts))
        share = f"{changed} of the first {len(texts)} lines"
        print(f"{share} are translated otherwise than by fairseq", file=sys.stderr)
        self.compared = True

    def text(self, hypothesis: Any) -> str:
        """Return the tokens of a hypothesis as text, subwords not joined."""
        found: str = hypothesis.get("text") or super().text(hypothesis)
        return found
