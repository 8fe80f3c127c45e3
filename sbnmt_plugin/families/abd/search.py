"""Search of ABD-NMT: two beams, one after the other.

1. The backward decoder writes R2L, in one search of k hypotheses; its best is ȳ.
2. Its states on ȳ, teacher-forced, in one pass, are what the forward decoder reads.
3. The forward decoder writes L2R, in another search of k hypotheses.  Its best is the
   answer.

k for each, since they do not run side by side: that costs what two Transformers cost.
(The authors' first release hands on a greedy ȳ, their later one the text of another
model; in the SB-NMT paper the backward decoder generates.)  Both searches are those of
:mod:`generator` in one direction, with all options of the run; a forced prefix binds
the second one alone.  An ensemble agrees on one ȳ, of which each model then makes
states of its own.

Departs from the paper where ``--sb-answer r2l`` asks for it: ȳ is the answer then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from sbnmt_plugin.layout import L2R, NAMES, R2L
from sbnmt_plugin.search.generator import Generator
from sbnmt_plugin.search.records import Hypothesis, Record
from sbnmt_plugin.search.registry import Search, register_search
from sbnmt_plugin.search.scorer import Scorer


@register_search("asynchronous")
class AsynchronousGenerator(Search):
    """Two searches over an ensemble; see the module."""

    shares_beam = False
    described = "an abd_transformer, whose directions write one after the other"

    def unsupported(self) -> dict[str, Any]:
        """See :class:`registry.Search`: directions do not meet at every step."""
        return {
            "--sb-pairing best": self.options.pairing.best,
            "--sb-rescore": bool(self.options.rescore),
            "--sb-trace": self.tracer,
        }

    def translate(
        self, sample: dict[str, Any], prefix: Tensor
    ) -> list[list[Hypothesis]]:
        """Search R2L, then L2R.

        Returns:
            The k best hypotheses of each sentence, best first; ``partner_tokens`` is
            the ȳ that was read, in the order in which it was written.
        """
        sources = [
            model.encoder.forward_torchscript(sample["net_input"])
            for model in self.models
        ]
        backward = [
            Scorer(model.backward_decoder, source)
            for model, source in zip(self.models, sources)
        ]
        free = prefix[:, :0]  # ȳ begins as it likes
        asked = {"print_alignment": self.options.print_alignment}
        if self.options.answer == NAMES[R2L]:
            answers = self._search(R2L, **asked).search(backward, sample, free)
            self._record(sample, [{NAMES[R2L]: best} for best, *_ in answers])
            return answers
        best_alone = self._search(R2L, print_alignment=None, nbest=1)
        read = best_alone.search(backward, sample, free)
        shift = len(read) - self.options.pairing.shift
        written = [best["tokens"][:-1].flip(0) for best, *_ in read]
        written = [*written[shift:], *written[:shift]]  # round the batch
        rows = [F.pad(x, (1, 0), value=self.symbols.starts[R2L]) for x in written]
        tokens = pad_sequence(rows, batch_first=True, padding_value=self.symbols.pad)
        tokens = tokens.to(prefix.device)
        forward = [
            Scorer(model.decoder, model.with_reverse(source, tokens))
            for model, source in zip(self.models, sources)
        ]
        answers = self._search(L2R, **asked).search(forward, sample, prefix)
        for hypotheses, text in zip(answers, written):
            for hypothesis in hypotheses:
                hypothesis["partner_tokens"] = text
        self._record(
            sample,
            [
                {NAMES[L2R]: own, NAMES[R2L]: other}
                for (own, *_), (other, *_) in zip(answers, read)
            ],
        )
        return answers

    def _search(self, direction: int, **changed: Any) -> Generator:
        """Make the search of one direction, with these options changed."""
        symbols = replace(self.symbols, starts=(self.symbols.starts[direction],))
        changed |= {"directions": (direction,), "answer": "best"}
        return Generator(self.models, symbols, replace(self.options, **changed))

    def _record(
        self, sample: dict[str, Any], best: list[dict[str, Hypothesis]]
    ) -> None:
        """Tell the recorder who has won, and the text of each direction."""
        winner = NAMES[R2L] if self.options.answer == NAMES[R2L] else NAMES[L2R]
        records: list[Record] = [(winner, found) for found in best]
        if self.recorder is not None:
            self.recorder(sample, records)
