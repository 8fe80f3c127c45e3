"""Traces of both beams, step by step, as JSON lines (``--sb-trace``).

Nothing here runs, and nothing is kept, unless the option is given: then the last
decoder layer's attention tells a :class:`Tracer` where it looks, and the search
tells it of every step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from sbnmt_plugin.layout import NAMES, R2L, opposite
from sbnmt_plugin.network.protocol import Watched
from sbnmt_plugin.numerics import DEAD
from sbnmt_plugin.search.backpointers import BackPointers
from sbnmt_plugin.search.beam import Batch
from sbnmt_plugin.search.options import SearchOptions
from sbnmt_plugin.search.pool import Pool, best_scores
from sbnmt_plugin.search.records import RESCORED, RecordWriter

Entry = dict[str, Any]
DIGITS = 4


class TraceWriter(RecordWriter):
    """Appends a line per sentence to a file that must be new.

    A line holds ``id``, ``source`` and what the search was asked to do (``beam``,
    ``pairing``, ``penalty``, ``alpha``, ``stop``, ``answer``, ``rescore``); ``steps``;
    and ``pool``, the finished hypotheses from which the answer, its first, was taken.
    With --sb-rescore their scores are the new ones: see :class:`records.RecordWriter`.

    A step holds, per direction, its live hypotheses by rank, each with

        parent   rank, one step before, of the hypothesis that it continues
        token    by which it continues it
        score    log-probability so far; null for a dead slot
        partner  rank, one step before, of the opposite hypothesis that the parent
                 looked at while it chose the token
        look     the parent's attention to the partner's tokens, the tag first: mean
                 over the heads of the last layer; with --sb-future-shift it is the
                 token before each that is read
        future   share of the future in what the attention gave: the norm of what the
                 future contributes over the norms of both parts, mean over the heads
                 (with --sb-reader before either is projected)

    ``finished``, what entered the pool in this step (:func:`ended_at`), and
    ``bound`` and ``worst``: the best score that any live hypothesis that may answer can
    still reach, and the last place of the pool, null until it is full.
    """

    flag = "--sb-trace"

    def text(self, tokens: Tensor) -> list[str]:
        """Tokens as they stand in the dictionary, without ``</s>``."""
        end = self.target.eos()
        return [self.target[int(token)] for token in tokens if int(token) != end]


class Tracer:
    """Follows the search over a batch.

    Args:
        writer: takes the lines.
        models: the ensemble; where there are several, attention and shares are means.
        options: the search's.

    Raises:
        ValueError: a decoder that cannot be watched.
    """

    def __init__(
        self, writer: TraceWriter, models: list[Any], options: SearchOptions
    ) -> None:
        self.writer = writer
        self.options = options
        self.layout = options.layout
        self._looks: list[tuple[Tensor, Tensor]] = []
        self._steps: dict[int, list[Entry]] = {}
        for model in models:
            if not isinstance(model.decoder, Watched):
                raise ValueError(
                    "--sb-trace shows synchronous bidirectional attention, which "
                    f"{type(model.decoder).__name__} does not have: leave it out"
                )
            model.decoder.watch(self._watch)

    def _watch(
        self,
        fusion: Any,
        query: Tensor,
        key: Tensor,
        mask: Tensor | None,
        history: Tensor,
        future: Tensor,
    ) -> None:
        """Keep where this step's queries look; called by the last layer.

        Args:
            query: (BD, H, K, C/H).
            key: (BD, H, tK, C/H), K slots a step; see :class:`kv_cache.KVCache`.
            mask: (BD, H or 1, 2K, tK), whose second half is for the opposite's queries.
            history, future: (BD, H, K, C/H).
        """
        beam = self.layout.beam
        logits = opposite(query).float() @ key.float().transpose(-1, -2)
        logits = logits / query.size(-1) ** 0.5
        if mask is not None:
            logits = logits + mask[:, :, beam:]
        weights = opposite(logits.softmax(-1))  # (BD, H, K, tK)
        weights = weights.unflatten(-1, (-1, beam)).sum(-1)  # one slot a step is seen
        kept, added = (
            part.float().norm(dim=-1) for part in fusion(history, future)
        )  # (BD, H, K)
        share = (added / (kept + added).clamp(min=1e-12)).mean(1)
        self._looks.append((weights.mean(1).flatten(0, 1), share.flatten()))

    def step(self, batch: Batch, parents: Tensor, length: int) -> None:
        """Note a step of every sentence.

        Args:
            batch: after the step.
            parents: (N,) the row that each row continues.
            length: tokens that every live hypothesis has by now.
        """
        weights, share = (torch.stack(x).mean(0) for x in zip(*self._looks))
        self._looks = []
        layout = self.layout
        ranks = (parents % layout.beam).tolist()
        looks, shares = weights[parents].tolist(), share[parents].tolist()
        tokens, scores = batch.tokens[:, -1].tolist(), batch.scores.flatten().tolist()
        # as pool.finished compares them
        options, penalty = self.options, self.options.penalty
        best = batch.scores[:, options.answering].flatten(1).amax(1).to(torch.float64)
        bound = penalty.best_reachable(best, batch.worth[length + 1], batch.longest)
        worst = best_scores(batch.pool, options.answering)[:, -1]
        bounds = [[*map(rounded, x)] for x in zip(bound.tolist(), worst.tolist())]
        for place, index in enumerate(batch.index.tolist()):
            entry: Entry = {}
            for direction, name in enumerate(NAMES):
                first = (place * layout.directions + direction) * layout.beam
                entry[name] = [
                    {
                        "token": self.writer.target[tokens[row]],
                        "parent": ranks[row],
                        "score": rounded(scores[row]),
                        "partner": layout.pairing.rank(ranks[row]),
                        "future": rounded(shares[row]),
                        "look": [round(x, DIGITS) for x in looks[row]],
                    }
                    for row in range(first, first + layout.beam)
                ]
            entry["finished"] = ended_at(batch.pool, place, length)
            entry["bound"], entry["worst"] = bounds[place]
            self._steps.setdefault(index, []).append(entry)

    def close(
        self, sample: dict[str, Any], results: list[list[Entry]], pointers: BackPointers
    ) -> None:
        """Write the sentences of a batch.

        Args:
            sample: fairseq's batch.
            results: the answers of each sentence, best first.
            pointers: of the batch.
        """
        for index, steps in self._steps.items():
            self._read_back(index, [x for s in steps for x in s["finished"]], pointers)
        options = self.options
        common = {
            "beam": options.beam,
            "pairing": options.pairing.name,
            "penalty": options.penalty.name,
            "alpha": options.penalty.alpha,
            "stop": options.stop,
            "answer": options.answer,
            "rescore": options.rescore,
        }
        numbers = ("score", "total", *(RESCORED if options.rescore else ()))
        lines = []
        for index, record in enumerate(self.writer.sentences(sample)):
            pool = [
                {
                    "direction": answer["direction"],
                    "tokens": self.writer.text(answer["tokens"]),
                    "length": len(answer["tokens"]),
                    **{key: rounded(float(answer[key])) for key in numbers},
                }
                for answer in results[index]
            ]
            steps = self._steps.pop(index)
            lines.append({**record, **common, "steps": steps, "pool": pool})
        self._steps = {}
        self.writer.append(lines)

    def _read_back(
        self, index: int, entries: list[Entry], pointers: BackPointers
    ) -> None:
        """Give the finished hypotheses of a sentence their texts, in natural order."""
        if not entries:
            return
        order = np.array([NAMES.index(entry["direction"]) for entry in entries])
        ranks, lengths = (
            np.array([entry[key] for entry in entries]) for key in ("rank", "length")
        )
        at = np.full(len(entries), index), order
        written = pointers.walk((*at, ranks), lengths - 1).tokens
        totals = pointers.totals((*at, ranks), lengths)
        for entry, total, own in zip(entries, totals, written):
            del entry["rank"]
            entry["total"] = rounded(float(total))
            tokens = self.writer.text(own[: entry["length"] - 1])
            backwards = entry["direction"] == NAMES[R2L]
            entry["tokens"] = tokens[::-1] if backwards else tokens


def ended_at(pool: Pool, place: int, length: int) -> list[Entry]:
    """The entries of a sentence's pool that ended with this length.

    Each with ``direction``, ``score``, ``length`` and, until it is written, ``rank``;
    then with ``total``, and ``tokens`` in natural order.
    """
    columns = (x[place].tolist() for x in (pool.score, pool.length, pool.rank))
    return [
        {"direction": name, "score": rounded(score), "length": length, "rank": rank}
        for name, *entries in zip(NAMES, *columns)
        for score, ended, rank in zip(*entries)
        if ended == length
    ]


def rounded(value: float) -> float | None:
    """A number for JSON, which has no infinity: null for a score that is none."""
    return None if value in (DEAD, -DEAD) or value != value else round(value, DIGITS)
