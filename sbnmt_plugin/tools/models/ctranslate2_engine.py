"""The engine of an exported folder: CTranslate2, without torch and fairseq.

Each direction has a beam of its own.  What all find is joined, and ranked by the length
penalty and the rescoring of this package's own search.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sbnmt_plugin.search.lengths import FORMULAS
from sbnmt_plugin.tools.models.converted import (
    TOKENS,
    Converted,
    Found,
    ordered,
    vocabularies,
    words_of,
)
from sbnmt_plugin.tools.models.description import Description
from sbnmt_plugin.tools.models.engine import Hypothesis

# float32: the type in which the folder's weights are
COMPUTE = {"float32": "default", "bf16": "bfloat16", "fp16": "float16", "int8": "int8"}
Scored = tuple[Found, float]  # and the score by which it is ranked


class CTranslate2Engine:
    """Search of an exported model: see :class:`engine.Engine`.

    Args:
        model: that is searched.
        search: options, by the keys of :data:`description.SEARCH`.
        nbest: most hypotheses of a sentence.

    Raises:
        ValueError: a beam or a rescoring that the directions do not allow.
    """

    def __init__(self, model: Converted, search: dict[str, Any], nbest: int) -> None:
        self.model, self.options, self.nbest = model, search, nbest
        directions = len(model.starts)
        if search["beam"] < directions:
            raise ValueError(
                f"beam must be ≥ {directions}, one hypothesis per direction, but is "
                f"{search['beam']} instead"
            )
        if search["rescore"] and directions == 1:
            raise ValueError(
                "rescore must be 0 for a model of one direction, which has no score "
                "in the other"
            )
        self.beam = search["beam"] // directions
        self.formula = FORMULAS[search["length_penalty"]]

    def hypotheses(self, sentences: list[str]) -> list[list[Hypothesis] | str]:
        """Translate sentences: see :meth:`engine.Engine.hypotheses`."""
        sources = [sentence.split() for sentence in sentences]
        reason = "max_len_a and max_len_b allow no word"
        found: list[list[Hypothesis] | str] = [reason] * len(sources)
        allowed = [place for place, each in enumerate(sources) if self.longest(each)]
        for places in batches(sources, allowed):
            results = self.search([sources[place] for place in places])
            for place, own in zip(places, results):
                found[place] = [
                    Hypothesis(" ".join(x.text), score, x.direction)
                    for x, score in own[: self.nbest]
                ] or "the model gives no finite score"
        return found

    def longest(self, source: list[str]) -> int:
        """Return the most subwords of a translation: int(a · source length + b)."""
        wanted = self.options["max_len_a"] * (len(source) + 1)
        return int(min(wanted + self.options["max_len_b"], self.model.positions[1] - 1))

    def search(self, sources: list[list[str]]) -> list[list[Scored]]:
        """Search a batch, and rank what is found: see :meth:`ranked`."""
        limits = list(map(self.longest, sources))
        alpha = self.options["lenpen"]
        found = self.model.search(sources, self.beam, alpha, max(limits))
        return self.ranked(sources, self.ended(sources, found, limits))

    def ranked(
        self, sources: list[list[str]], found: list[list[Found]]
    ) -> list[list[Scored]]:
        """Return the best k hypotheses of each source, rescored if it is asked for.

        Ties: the shorter first, then L2R before R2L.
        """
        count = self.beam * len(self.model.starts)
        ranked = []
        for own in found:
            rows = [(x, self.score(x, x.total)) for x in own if math.isfinite(x.total)]
            rows.sort(key=lambda row: (-row[1], len(row[0].text)))
            ranked.append(rows[:count])
        return self.rescored(sources, ranked) if self.options["rescore"] else ranked

    def score(self, found: Found, total: float) -> float:
        """Divide a log-probability of a text by the length penalty."""
        penalty: float = self.formula(
            float(len(found.text) + 1), self.options["lenpen"]
        )
        return total / penalty

    def ended(
        self, sources: list[list[str]], found: list[list[Found]], limits: list[int]
    ) -> list[list[Found]]:
        """Shorten what is longer than its limit, and score it anew with ``</s>``."""
        cut: dict[tuple[int, tuple[str, ...], str], None] = {}
        for place, (own, limit) in enumerate(zip(found, limits)):
            for words, _, name in own:
                start = ordered(ordered(words, name)[:limit], name)
                if len(start) < len(words):
                    cut[place, tuple(start), name] = None
        kept = [[x for x in own if len(x.text) <= n] for own, n in zip(found, limits)]
        for key, total in self.totals(sources, cut).items():
            place, words, name = key
            kept[place].append(Found(words, total, name))
        return kept

    def rescored(
        self, sources: list[list[str]], ranked: list[list[Scored]]
    ) -> list[list[Scored]]:
        """Rank by the sum of both directions too; what the search knows is taken."""
        known = {
            (place, x.text, x.direction): x.total
            for place, own in enumerate(ranked)
            for x, _ in own
        }
        wanted = (
            (place, x, name) for place, x, _ in known for name in self.model.starts
        )
        asked = dict.fromkeys(key for key in wanted if key not in known)
        known |= self.totals(sources, asked)
        weight, result = self.options["rescore"], []
        for place, own in enumerate(ranked):
            both = (
                sum(known[place, x.text, n] for n in self.model.starts) for x, _ in own
            )
            rows = [(x, s + weight * self.score(x, t)) for (x, s), t in zip(own, both)]
            result.append(sorted(rows, key=lambda row: -row[1]))
        return result

    def totals(
        self,
        sources: list[list[str]],
        keys: dict[tuple[int, tuple[str, ...], str], None],
    ) -> dict[tuple[int, tuple[str, ...], str], float]:
        """Score texts: of each its place among the sources, words and direction."""
        pairs = [(sources[place], words, name) for place, words, name in keys]
        return dict(zip(keys, self.model.totals(pairs)))


def batches(sources: list[list[str]], places: list[int]) -> Iterator[list[int]]:
    """Divide sources into batches of similar lengths, of :data:`TOKENS` at most.

    Args:
        places: of the sources that are to be translated.

    Yields:
        places of a batch.
    """
    batch: list[int] = []
    for place in sorted(places, key=lambda x: len(sources[x])):
        if batch and (len(batch) + 1) * (len(sources[place]) + 1) > TOKENS:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def open_engine(
    folder: Path, description: Description, device: str | None, dtype: str, nbest: int
) -> CTranslate2Engine:
    """Load an exported model, whose checksums are known to be right.

    Args:
        device: ``cpu`` or ``cuda``; None: the GPU if there is one.
        dtype: a key of :data:`COMPUTE`.

    Raises:
        ValueError: the vocabulary is not that of the dictionaries; see
            :class:`converted.Converted` and :class:`CTranslate2Engine`.
    """
    sides = {"source": description.source, "target": description.target}
    for name, words in vocabularies(folder).items():
        path = folder / sides[name].dictionary
        if words != words_of(path):
            raise ValueError(f"{path} must be the {name} vocabulary, but is another")
    model = Converted(folder, description.directions, device, COMPUTE[dtype])
    return CTranslate2Engine(model, description.search, nbest)
