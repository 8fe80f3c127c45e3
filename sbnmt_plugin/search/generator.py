"""The decoding loop: encode, step, expand, re-pair, stop, un-reverse.

The result has the shape of fairseq's ``SequenceGenerator``: per sentence a list
of hypotheses, best first, each a dict with ``tokens``, ``score``, ``attention``,
``alignment`` and ``positional_scores``, all in natural left-to-right order
whichever direction wrote them, and with ``total``, the sum before the length penalty,
``direction`` and ``partner_tokens``, the partner's live prefix at the end, in the order
in which the partner wrote it.

Score of a hypothesis, natural logarithm (fairseq prints base 2)::

    score = Σ_j log p(y_j | y_<j, partner's y_<j, x) / lp(L)

L counts ``</s>``; lp is one of :mod:`penalties`; every ``<unk>`` costs ``--unkpen``
more; padding and tags are left out of the choice, not out of the sum that normalises p.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sbnmt_plugin.layout import R2L
from sbnmt_plugin.numerics import DEAD, wide
from sbnmt_plugin.search.answers import answers_of
from sbnmt_plugin.search.backpointers import BackPointers, Step
from sbnmt_plugin.search.beam import Batch, Candidates, expand, survivors
from sbnmt_plugin.search.logits_processing import (
    lacks_prefix,
    longest_outputs,
    restrict,
)
from sbnmt_plugin.search.pool import Pool, best_scores, finished, within_horizon
from sbnmt_plugin.search.records import Hypothesis
from sbnmt_plugin.search.registry import DEFAULT, Search, register_search
from sbnmt_plugin.search.rescoring import rank_anew
from sbnmt_plugin.search.scorer import Scorer, ensemble_step

LEAVING = 16  # sentences leave a batch once one in so many of it is done


@register_search(DEFAULT)
class Generator(Search):
    """Synchronous bidirectional beam search over an ensemble.

    With one direction it is ordinary beam search, for teachers.  Arguments are those
    of :class:`registry.Search`.

    Attributes:
        stop_rank: see :attr:`options.SearchOptions.stop_rank`; where a recorder or a
            tracer sees more than the answers, all k hypotheses are to be final.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.layout = self.options.layout
        watched = self.recorder is not None or self.tracer is not None
        self.stop_rank = self.options.beam if watched else self.options.stop_rank

    def translate(
        self, sample: dict[str, Any], prefix: Tensor
    ) -> list[list[Hypothesis]]:
        """Let the encoders read a batch, and search.

        Returns:
            The k best hypotheses of each sentence, best first, or those that are
            rescored.  Where fewer are asked for
            (:attr:`options.SearchOptions.stop_rank`), those come first and the rest
            is what had finished by then.
        """
        scorers = [Scorer.encode(x, sample["net_input"]) for x in self.models]
        return self.search(scorers, sample, prefix)

    def search(
        self, scorers: list[Scorer], sample: dict[str, Any], prefix: Tensor
    ) -> list[list[Hypothesis]]:
        """Translate a batch that the encoders have read.

        Args:
            scorers: a decoder of every model, and what it reads.
            sample, prefix: as for :meth:`registry.Search.translate`.
        """
        sources = sample["net_input"]["src_tokens"]
        for scorer in scorers:
            scorer.start(self.layout, self.options.print_alignment is not None)
        pool, steps = self._translate(scorers, sources, prefix)
        pointers = BackPointers(steps, len(sources))
        results, records = answers_of(
            pool, pointers, sample, self.symbols, self.options
        )
        if self.recorder is None:
            records = []
        if self.options.rescore:
            rank_anew(scorers, results, records, sample, self.symbols, self.options)
        if self.recorder is not None:
            self.recorder(sample, records)
        if self.tracer is not None:
            self.tracer.close(sample, results, pointers)
        return results

    @torch.inference_mode()  # views and small operations cost less
    def _translate(
        self, scorers: list[Scorer], source: Tensor, prefix: Tensor
    ) -> tuple[Pool, list[Step]]:
        """Run the loop: return each sentence's finished hypotheses, and every step.

        A step asks the device once: how many are done.
        """
        batch = self._open(source, prefix)
        left: list[tuple[Tensor, Pool]] = []
        steps: list[Step] = []
        while batch.index.numel():
            parents = self._step(batch, scorers, steps)
            batch.done = batch.done | self._done(batch, len(steps))
            if self.tracer is not None:
                self.tracer.step(batch, parents, len(steps))
            leaving = self._leaving(batch.done)
            if leaving:
                order = batch.done.sort(stable=True).indices
                alive, gone = order[:-leaving], order[-leaving:]
                left.append((batch.index[gone], batch.pool.select(gone)))
                rows = self.layout.rows_of(alive)
                batch = batch.select(alive, rows)
                parents = parents[rows]
            if batch.index.numel():
                for scorer in scorers:
                    scorer.state.select(parents)
        return Pool.of_parts(left), steps

    def _open(self, source: Tensor, prefix: Tensor) -> Batch:
        """Start with one real hypothesis per direction and K - 1 at -inf."""
        layout, symbols, options = self.layout, self.symbols, self.options
        count, device = source.size(0), source.device
        if layout.pairing.shift and count < 2:
            raise ValueError(
                "partners are another sentence's of the batch, but one has a single "
                "sentence: raise --batch-size or --max-tokens, or give more lines"
            )
        max_len = longest_outputs(self.models, source, symbols, options)
        first_end, last_end = map(int, torch.stack(max_len.aminmax()).tolist())
        lengths = torch.arange(last_end + 3, device=device)
        worth = options.penalty.worth(lengths)
        dtype = wide(next(self.models[0].parameters()).dtype)
        shape = count, layout.directions, layout.beam
        scores = torch.zeros(shape, device=device, dtype=dtype)
        scores[..., 1:].fill_(DEAD)
        rows = torch.arange(scores.numel(), device=device)
        starts = torch.tensor(symbols.starts, device=device)
        return Batch(
            index=torch.arange(count, device=device),
            max_len=max_len,
            first_end=first_end,
            worth=worth,
            limit=max_len + 1,
            prefix=prefix,
            never=torch.tensor(symbols.never, device=device),
            scores=scores,
            first_rows=rows.view(shape)[..., :1],
            tokens=starts.repeat_interleave(layout.beam).repeat(count)[:, None],
            pool=Pool.empty(scores, options.beam),
            done=torch.zeros(count, dtype=torch.bool, device=device),
        )

    def _step(self, batch: Batch, scorers: list[Scorer], steps: list[Step]) -> Tensor:
        """Lengthen every live hypothesis by a token; move what ends into the pool.

        Args:
            steps: so far; this one is added.

        Returns:
            (N,) the row that each row continues.
        """
        options, layout, eos = self.options, self.layout, self.symbols.eos
        following, attention = ensemble_step(scorers, batch.tokens)
        restrict(following, batch, len(steps), self.symbols, options)
        candidates = expand(batch.scores, following)
        going = candidates.token != eos
        last = layout.split(batch.tokens[:, -1])
        live = survivors(candidates, layout.beam, going, last)
        self._finish(batch, candidates, going, len(steps) + 1)

        parents = (batch.first_rows + live.parent).flatten()
        token = live.token.flatten()
        if options.print_alignment is None or attention is None:
            looked = None
        else:
            looked = layout.split(attention.to(wide(attention.dtype)))
        steps.append(
            Step(
                index=batch.index,
                parent=live.parent,
                token=live.token,
                gained=following.lprob(parents, token).view_as(live.score),
                before=batch.scores,
                ending=layout.split(following.logits[:, eos] - following.norm),
                norm=layout.split(following.norm),
                attention=looked,
            )
        )
        batch.scores = live.score
        batch.tokens = torch.cat([batch.tokens[parents], token[:, None]], dim=1)
        return parents

    def _finish(
        self, batch: Batch, candidates: Candidates, going: Tensor, length: int
    ) -> None:
        """Put the candidates that end into the pool, at this length.

        Args:
            going: (B, D, M) bool, which of them do not end.
        """
        options = self.options
        total, parent, going = (
            x[..., : options.eos_candidates]
            for x in (candidates.score, candidates.parent, going)
        )
        kept_out = going | batch.done[:, None, None]
        if batch.prefix.size(1) and R2L in options.directions:
            lacking = lacks_prefix(batch, self.symbols.pad, self.layout)
            kept_out[:, R2L] |= lacking.gather(1, parent[:, R2L])
        total = total.to(torch.float64).masked_fill(kept_out, DEAD)
        score = total / batch.worth[length]
        batch.pool = batch.pool.add(score, length, parent)

    def _done(self, batch: Batch, length: int) -> Tensor:
        """Tell which sentences have their answer; (B,) bool."""
        options, answering = self.options, self.options.answering
        best = best_scores(batch.pool, answering)
        if options.stop == "horizon":
            batch.limit = within_horizon(batch.limit, best, length)
        done = finished(
            best[:, self.stop_rank - 1],
            batch.scores[:, answering],
            batch.worth[length + 1],
            batch.longest,
            options.penalty,
            options.stop,
        )
        return done | (batch.limit <= length)

    def _leaving(self, done: Tensor) -> int:
        """Count the sentences that leave the batch: all that are done, or as yet none.

        All that is known of the others is copied then, so a few that are done wait
        for company, unless a tracer notes every step of theirs.  Where partners are
        another sentence's, everybody waits for the last one.
        """
        count = int(done.sum())
        few = count * LEAVING < len(done) and self.tracer is None
        waits = self.layout.pairing.shift and count < len(done)
        return 0 if few or waits else count
