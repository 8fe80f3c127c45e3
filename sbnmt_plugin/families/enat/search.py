"""The search of ENAT: all words of all lengths at once, then the best length.

The beam is over lengths: of k = 2b + 1 hypotheses one has T₀ words, the number that is
expected (see :meth:`enat.model.ENATModel.expected`), and the others one more or less,
two, …, b.  Each place takes its best word; the last is ``</s>``, and no other may be.
With ``--nat-teacher`` the words' log-probabilities are then a teacher's, all candidates
scored in one teacher-forced pass.  Score, as everywhere::

    Σ_t log p(y_t) / lp(T)

Departs from the paper, in which a batch has b of its own beside its beam, and the
teacher's sum is compared as it is or by its mean, which is not said: the mean is
``--sb-length-penalty power``.
"""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch import Tensor

from sbnmt_plugin.layout import L2R, NAMES
from sbnmt_plugin.numerics import DEAD, LOGITS_AT_A_TIME, log_sum_exp, wide
from sbnmt_plugin.search.answers import refuse
from sbnmt_plugin.search.lengths import longest_outputs
from sbnmt_plugin.search.options import SearchOptions, Symbols
from sbnmt_plugin.search.records import Hypothesis, RecordWriter
from sbnmt_plugin.search.registry import refuse_given, register_search
from sbnmt_plugin.search.trace import Tracer

logger = logging.getLogger(__name__)
AT_ONCE = "an enat_transformer, which writes all words at once"


@register_search("parallel")
class ParallelGenerator:
    """One pass of a decoder that writes all words at once; see the module.

    Args:
        models: one :class:`enat.model.ENATModel`.
        symbols, options, recorder: as of :class:`generator.Generator`; ``teacher`` of
            the options scores what is written.
        tracer: None.

    Attributes:
        shares_beam, has_bound: see :class:`registry.Search`.
        around: b.

    Raises:
        ValueError: an option that needs words which come one after the other.
    """

    shares_beam = False
    has_bound = False

    def __init__(
        self,
        models: list[Any],
        symbols: Symbols,
        options: SearchOptions,
        recorder: RecordWriter | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        refused = {
            "an ensemble": len(models) > 1,
            "--no-repeat-ngram-size": bool(options.no_repeat_ngram_size),
            "--sb-stop first": options.stop != "bound",
            "--print-alignment": options.print_alignment is not None,
            "--sb-trace": tracer is not None,
        }
        refuse_given(refused, AT_ONCE)
        (self.model,) = models
        self.symbols = symbols
        self.options = options
        self.recorder = recorder
        self.around = (options.beam - 1) // 2
        if options.beam % 2 == 0:
            logger.warning(
                "--beam %d is even; searching among %d lengths",
                options.beam,
                2 * self.around + 1,
            )
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
        """Translate a batch.

        Args:
            models: ignored in favour of the constructor's, as in fairseq.
            sample: fairseq's batch; ``net_input`` with ``src_tokens`` (B, S) is read,
                and ``lookup_tokens`` (B, Z) where the model wants them.

        Returns:
            A hypothesis for each length of every sentence, best first.

        Raises:
            ValueError: constraints or prefixes; lengths that nothing can have.
            FloatingPointError: a sentence for which no hypothesis has a score.
        """
        given = {"--constraints": constraints, "--prefix-size": prefix_tokens}
        there = {k: x is not None and x.numel() > 0 for k, x in given.items()}
        refuse_given(there, AT_ONCE)
        self.model.eval()
        net_input = sample["net_input"]
        source = net_input["src_tokens"]
        reading = self.model.read(source, net_input.get("lookup_tokens"))
        lengths, new = self.lengths(source, self.model.expected(reading.real))
        rows = torch.arange(len(source), device=source.device)
        rows = rows.repeat_interleave(lengths.size(1))
        tokens, gained = self.write(reading.select(rows), lengths.flatten())
        if self.options.teacher is not None:
            gained = self.options.teacher(net_input, tokens, self.options.temperature)
            unknown = tokens.eq(self.symbols.unk)  # inf times 0 is no number
            gained = gained.where(~unknown, gained - self.options.unkpen)
        answers = self.answers(tokens, gained, lengths, new)
        if self.recorder is not None:
            name = NAMES[L2R]
            self.recorder(sample, [(name, {name: best}) for best, *_ in answers])
        return answers

    def lengths(self, source: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
        """The candidates' lengths with ``</s>``, and which are no doubles, (B, k).

        Args:
            source: (B, S).
            expected: T₀, (B,).
        """
        longest = longest_outputs([self.model], source, self.symbols, self.options) + 1
        near = torch.arange(-self.around, self.around + 1, device=source.device)
        least = max(2, self.options.min_len + 1)
        found = (expected[:, None] + near).clamp(min=least)
        found = torch.minimum(found, longest[:, None])  # ascending
        new = torch.ones_like(found, dtype=torch.bool)
        new[:, 1:] = found[:, 1:] != found[:, :-1]
        return found, new

    def write(self, reading: Any, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The best word of every place, and its log-probability.

        Args:
            reading: of N rows: see :class:`enat.decoder.Reading`.
            lengths: (N,).

        Returns:
            (N, T) each; padding, and 0, behind the text.
        """
        places = torch.arange(int(lengths.max()), device=lengths.device)
        written = places < lengths[:, None]
        last = places == lengths[:, None] - 1
        decoder, eos = self.model.decoder, self.symbols.eos
        features = decoder.extract_features(reading, written)[written]
        ends = last[written]
        banned = torch.tensor([*self.symbols.never, eos], device=ends.device)
        words, values = [], []
        size = max(1, LOGITS_AT_A_TIME // len(decoder.dictionary))
        for part, end in zip(features.split(size), ends.split(size)):
            logits = decoder.output_layer(part)
            logits = logits.to(wide(logits.dtype)) / self.options.temperature
            norm, ending = log_sum_exp(logits), logits[:, eos].clone()
            logits[:, banned] = DEAD
            logits[:, self.symbols.unk] -= self.options.unkpen
            best, word = logits.max(-1)
            words.append(word.masked_fill(end, eos))
            values.append(torch.where(end, ending, best) - norm)
        tokens = torch.full_like(written, self.symbols.pad, dtype=torch.long)
        tokens[written] = torch.cat(words)
        gained = torch.zeros(written.shape, dtype=values[0].dtype, device=ends.device)
        gained[written] = torch.cat(values)
        return tokens, gained

    def answers(
        self, tokens: Tensor, gained: Tensor, lengths: Tensor, new: Tensor
    ) -> list[list[Hypothesis]]:
        """fairseq's dict of every candidate, best first, of equals the shorter.

        Args:
            tokens, gained: (N, T).
            lengths, new: (B, k), N = B k.
        """
        total = gained.to(torch.float64).sum(1).view_as(lengths)
        penalty = self.options.penalty
        score = penalty.score(total, penalty.worth(lengths))
        score = score.masked_fill(~(new & score.isfinite()), DEAD)
        score, order = score.sort(stable=True, dim=1, descending=True)
        total = total.gather(1, order)
        many = lengths.size(1)
        found: list[list[Hypothesis]] = []
        sizes, places = lengths.tolist(), order.tolist()
        alive = (score > DEAD).sum(1).tolist()
        for b, count in enumerate(alive):
            if not count:
                refuse(broken=True)
            found.append([])
            for i, place in enumerate(places[b][:count]):
                row, size = b * many + place, sizes[b][place]
                found[-1].append(
                    {
                        "tokens": tokens[row, :size],
                        "score": score[b, i],
                        "total": total[b, i],
                        "attention": None,
                        "alignment": torch.empty(0),
                        "positional_scores": gained[row, :size],
                        "direction": NAMES[L2R],
                        "partner_tokens": None,
                    }
                )
        return found
