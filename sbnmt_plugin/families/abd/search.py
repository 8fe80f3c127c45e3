"""The search of ABD-NMT: two beams, one after the other.

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

from argparse import Namespace
from dataclasses import replace
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from sbnmt_plugin.layout import L2R, NAMES, R2L
from sbnmt_plugin.search.generator import Generator
from sbnmt_plugin.search.options import SearchOptions, Symbols
from sbnmt_plugin.search.records import Hypothesis, Record, RecordWriter
from sbnmt_plugin.search.registry import refuse_given, register_search
from sbnmt_plugin.search.trace import Tracer


class Asynchronous(Protocol):
    """What a model has that wants this search, beside what every model has.

    Attributes:
        decoder: writes L2R; see :class:`protocol.Decoder`.
        backward_decoder: writes R2L.
    """

    decoder: Any
    backward_decoder: Any

    def with_reverse(self, encoder_out: Any, tokens: Tensor) -> Any:
        """What the forward decoder's ``start`` reads: see
        :meth:`abd.model.ABDTransformerModel.with_reverse`."""


class Half:
    """A decoder and what it reads, in the shape in which the search takes a model.

    Args:
        model: whose decoder it is.
        decoder: one of its two.
        encoder_out: what the decoder reads.
    """

    def __init__(self, model: Any, decoder: Any, encoder_out: Any) -> None:
        self.decoder = decoder
        self.encoder = Namespace(forward_torchscript=lambda net_input: encoder_out)
        self.max_decoder_positions = model.max_decoder_positions
        self.parameters = model.parameters
        self.eval = model.eval


@register_search("asynchronous")
class AsynchronousGenerator:
    """Two searches over an ensemble; see the module.

    Args:
        models, symbols, options, recorder: as of :class:`generator.Generator`.
        tracer: None.

    Attributes:
        shares_beam, has_bound: see :class:`registry.Search`.

    Raises:
        ValueError: an option that needs directions which meet at every step.
    """

    shares_beam = False
    has_bound = True

    def __init__(
        self,
        models: list[Any],
        symbols: Symbols,
        options: SearchOptions,
        recorder: RecordWriter | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        refused = {
            "--sb-pairing best": options.pairing.best,
            "--sb-rescore": bool(options.rescore),
            "--sb-trace": tracer is not None,
        }
        refuse_given(
            refused, "an abd_transformer, whose directions write one after the other"
        )
        self.models = models
        self.symbols = symbols
        self.options = options
        self.recorder = recorder
        # what fairseq-generate leaves out of the text that it prints
        self.symbols_to_strip_from_output = {symbols.eos, *symbols.never}

    @torch.no_grad()
    def generate(
        self,
        models: list[Any],
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
    ) -> list[list[Hypothesis]]:
        """Translate a batch: see :meth:`generator.Generator.generate`.

        Returns:
            The k best hypotheses of each sentence, best first; ``partner_tokens`` is
            the ȳ that was read, in the order in which it was written.
        """
        for model in self.models:
            model.eval()
        sources = [
            model.encoder.forward_torchscript(sample["net_input"])
            for model in self.models
        ]
        backward = [
            Half(model, model.backward_decoder, source)
            for model, source in zip(self.models, sources)
        ]
        if self.options.answer == NAMES[R2L]:
            search = self._search(R2L, backward, self.options.print_alignment)
            answers = search.generate(models, sample, prefix_tokens, constraints)
            self._record(sample, [{NAMES[R2L]: best} for best, *_ in answers])
            return answers
        search = self._search(R2L, backward, answers=1)
        read = search.generate(models, sample, None, constraints)
        shift = len(read) - self.options.pairing.shift
        written = [best["tokens"][:-1].flip(0) for best, *_ in read]
        written = [*written[shift:], *written[:shift]]  # round the batch
        tokens = self._inputs(written)
        forward = [
            Half(model, model.decoder, model.with_reverse(source, tokens))
            for model, source in zip(self.models, sources)
        ]
        search = self._search(L2R, forward, self.options.print_alignment)
        answers = search.generate(models, sample, prefix_tokens)
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

    def _search(
        self,
        direction: int,
        halves: list[Half],
        print_alignment: str | None = None,
        answers: int | None = None,
    ) -> Generator:
        """The search of one direction; ``answers`` where not as many as asked for."""
        symbols = replace(self.symbols, starts=(self.symbols.starts[direction],))
        options = replace(
            self.options,
            directions=(direction,),
            answer="best",
            print_alignment=print_alignment,
            answers=answers or self.options.answers,
        )
        return Generator(halves, symbols, options)

    def _inputs(self, written: list[Tensor]) -> Tensor:
        """Decoder input (B, T) of R2L texts, (L,) each, as they were written."""
        rows = [F.pad(x, (1, 0), value=self.symbols.starts[R2L]) for x in written]
        return pad_sequence(rows, batch_first=True, padding_value=self.symbols.pad)

    def _record(
        self, sample: dict[str, Any], best: list[dict[str, Hypothesis]]
    ) -> None:
        """Tell the recorder who has won, and the text of each direction."""
        winner = NAMES[R2L] if self.options.answer == NAMES[R2L] else NAMES[L2R]
        records: list[Record] = [(winner, found) for found in best]
        if self.recorder is not None:
            self.recorder(sample, records)
