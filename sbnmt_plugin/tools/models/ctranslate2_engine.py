"""The engine of an exported folder: CTranslate2, without torch and fairseq.

Each direction has a beam of its own.  What all find is joined, and ranked by the length
penalty and the rescoring of this package's own search.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sbnmt_plugin.search.lengths import FORMULAS, horizon
from sbnmt_plugin.symbols import SPECIALS, TAGS, UNKNOWN
from sbnmt_plugin.tools.models.converted import TOKENS, Converted, Stream, ordered
from sbnmt_plugin.tools.models.description import Description, dictionary_of
from sbnmt_plugin.tools.models.engine import Hypothesis
from sbnmt_plugin.tools.text import as_written

LOWEST = -1e30  # what CTranslate2 must not write has float32's lowest log-probability
# float32: the type in which the folder's weights are
COMPUTE = {"float32": "default", "bf16": "bfloat16", "fp16": "float16", "int8": "int8"}


class CTranslate2Engine:
    """Search of an exported model: see :class:`engine.Engine`.

    Args:
        model: that is searched.
        search: options, by the keys of :data:`description.SEARCH`.
        nbest: how many hypotheses of a sentence are asked for; None: all.

    Raises:
        ValueError: a beam that the directions do not allow.
    """

    def __init__(
        self, model: Converted, search: dict[str, Any], nbest: int | None
    ) -> None:
        self.model, self.options, self.nbest = model, search, nbest
        directions = len(model.starts)
        if search["beam"] < directions:
            raise ValueError(
                f"--beam must be ≥ {directions}, one hypothesis per direction, but is "
                f"{search['beam']} instead"
            )
        self.beam = search["beam"] // directions
        self.most = self.beam * directions

    def hypotheses(self, sentences: list[str]) -> list[list[Hypothesis] | str]:
        """Translate sentences: see :meth:`engine.Engine.hypotheses`."""
        sources = [sentence.split() for sentence in sentences]
        found: list[list[Hypothesis] | str] = [""] * len(sources)
        for places in batches(sources):
            with self.model.explained():
                results = self.search([sources[place] for place in places])
            for place, own in zip(places, results):
                found[place] = [
                    Hypothesis(" ".join(text), score, name)
                    for (text, name), score in own[: self.nbest]
                ] or "the model gives no finite score"
        return found

    def longest(self, source: list[str]) -> int:
        """Return the most subwords of a translation: int(a · source length + b).

        A source without words has an empty one.
        """
        wanted = self.options["max_len_a"] * (len(source) + 1)
        most = self.options["max_positions"] - 1
        return int(min(wanted + self.options["max_len_b"], most)) if source else 0

    def search(self, sources: list[list[str]]) -> list[list[tuple[Stream, float]]]:
        """Search a batch, and rank what is found: see :meth:`ranked`.

        CTranslate2 knows no :func:`lengths.horizon`.  So a search ends at a likely
        length, and those that it leaves open are searched again up to their limits.
        Of a direction it returns its beam twice at most: now and then one that is cut
        at the batch's length stands in the place of a worse one that has ended.
        """
        limits = list(map(self.longest, sources))
        likely = max(horizon(horizon(len(source) + 1)) for source in sources)
        found: list[list[tuple[Stream, float]]] = [[] for _ in sources]
        missing = [*range(len(sources))]
        for most in [min(limit, likely) for limit in limits], limits:
            some, longest = [sources[x] for x in missing], max(most[x] for x in missing)
            results = self.model.search(
                some, self.beam, self.options["lenpen"], longest
            )
            again = []
            for place, own in zip(missing, results):
                kept = self.within_horizon(own, most[place])
                found[place] = own if kept is None else kept
                if kept is None and most[place] < limits[place]:
                    again.append(place)
            if not (missing := again):
                break
        return self.ranked(sources, found, limits)

    def within_horizon(
        self, own: list[tuple[Stream, float]], most: int
    ) -> list[tuple[Stream, float]] | None:
        """Return the hypotheses of a source up to its horizon.

        Args:
            own: hypotheses, of which those of at most ``most`` subwords have ended.

        Returns:
            None if ``most`` subwords are too few to know.
        """
        lengths = sorted(len(text) + 1 for (text, _), _ in own)
        size = self.beam * len(self.model.starts)
        if len(own) < size or (longest := horizon(lengths[size - 1])) > most + 1:
            return None
        return [x for x in own if len(x[0][0]) < longest]

    def ranked(
        self,
        sources: list[list[str]],
        found: list[list[tuple[Stream, float]]],
        limits: list[int],
    ) -> list[list[tuple[Stream, float]]]:
        """Return the best k hypotheses of each source, rescored if it is asked for.

        What is longer than its limit is shortened, and scored anew with ``</s>``.
        Ties: the shorter first, then L2R before R2L.

        Args:
            found: hypotheses of each source, with their log-probabilities.
            limits: most subwords of each source's.
        """
        tables: list[dict[Stream, float]] = []
        wanted: list[list[Stream]] = []
        for own, limit in zip(found, limits):
            tables.append({})
            wanted.append([])
            for (text, name), total in own:
                kept = tuple(ordered(ordered(text, name)[:limit], name))
                if limit and kept == text:  # 0: CTranslate2 has not scored it
                    tables[-1].setdefault((text, name), total)
                wanted[-1].append((kept, name))
        self.fill(sources, tables, wanted)
        ranked = []
        for table in tables:
            rows = [(x, self.score(x, t)) for x, t in table.items() if t > LOWEST]
            rows.sort(key=lambda row: (-row[1], len(row[0][0]), row[0][1]))
            ranked.append(rows[: self.beam * len(self.model.starts)])
        if not (weight := self.options["rescore"]):
            return ranked
        names = self.model.starts
        self.fill(
            sources,
            tables,
            [[(x[0], name) for x, _ in rows for name in names] for rows in ranked],
        )
        for table, rows in zip(tables, ranked):
            for place, (stream, score) in enumerate(rows):
                both = math.fsum(table[stream[0], name] for name in names)
                rows[place] = stream, score + weight * self.score(stream, both)
            rows.sort(key=lambda row: -row[1])
        return ranked

    def score(self, stream: Stream, total: float) -> float:
        """Divide a log-probability by the length penalty of its text."""
        formula = FORMULAS[self.options["length_penalty"]]
        penalty: float = formula(float(len(stream[0]) + 1), self.options["lenpen"])
        return total / penalty

    def fill(
        self,
        sources: list[list[str]],
        tables: list[dict[Stream, float]],
        wanted: list[list[Stream]],
    ) -> None:
        """Add the log-probabilities that are wanted to the tables that lack them."""
        asked = [
            (place, stream)
            for place, streams in enumerate(wanted)
            for stream in dict.fromkeys(streams)
            if stream not in tables[place]
        ]
        totals = self.model.totals([(sources[place], x) for place, x in asked])
        for (place, stream), total in zip(asked, totals):
            tables[place][stream] = total


def batches(sources: list[list[str]]) -> Iterator[list[int]]:
    """Divide sources into batches of similar lengths, of :data:`TOKENS` at most.

    Yields:
        places of a batch.
    """
    batch: list[int] = []
    for place in sorted(range(len(sources)), key=lambda x: len(sources[x])):
        if batch and (len(batch) + 1) * (len(sources[place]) + 1) > TOKENS:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def open_engine(
    folder: Path,
    description: Description,
    device: str | None,
    dtype: str,
    nbest: int | None,
) -> CTranslate2Engine:
    """Load an exported model, whose checksums are known to be right.

    CTranslate2 loads a vocabulary that is too short, or lacks a tag, without a word.

    Args:
        device: ``cpu`` or ``cuda``; None: the GPU if there is one.
        dtype: a key of :data:`COMPUTE`.

    Raises:
        ValueError: a vocabulary is not that of a dictionary, or is not named; see
            :class:`converted.Converted` and :class:`CTranslate2Engine`.
    """
    words: dict[str, list[str]] = {}
    for name, side in ("source", description.source), ("target", description.target):
        dictionary = folder / dictionary_of(side.language)
        entries = dictionary.read_text("utf-8").rstrip("\n").split("\n")
        own = [*SPECIALS, UNKNOWN, *(x.split(" ")[0] for x in entries), *TAGS]
        words[f"{name}_vocabulary.json"] = words["shared_vocabulary.json"] = own
    if words["source_vocabulary.json"] != own:
        del words["shared_vocabulary.json"]
    for path in folder.glob("*vocabulary*"):  # whatever CTranslate2 would load
        with as_written(path, "export the model again"):
            known = path.name in description.files and path.name in words
            if not known or json.loads(path.read_text("utf-8")) != words[path.name]:
                raise ValueError(
                    f"{path} must have the words of the dictionaries, and the tags, "
                    "and be named by model.yaml: export the model again"
                )
    model = Converted(folder, description.directions, device, COMPUTE[dtype])
    return CTranslate2Engine(model, description.search, nbest)
