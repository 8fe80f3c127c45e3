"""Records of the winning direction, sentence by sentence, as JSON lines."""

from __future__ import annotations

import json
import os
from typing import Any

from fairseq import utils

from sbnmt_plugin.layout import NAMES

Hypothesis = dict[str, Any]  # fairseq's, and what ours has beside: see :mod:`answers`
Record = tuple[str, dict[str, Hypothesis]]  # who won; each direction's best
RESCORED = ("pool_score", "l2r", "r2l")


class RecordWriter:
    """Appends a line per sentence to a file that must be new, as sentences are done.

    A line holds ``id`` (null where fairseq gives none, as in interactive mode),
    ``source`` and, per direction, ``text`` in natural order, ``score`` (the value
    by which hypotheses are compared, natural logarithm) and ``total`` (its
    unnormalised log-probability); null for a direction that never finished.  With
    ``--sb-rescore`` also ``pool_score``, by which the search compared them, and ``l2r``
    and ``r2l``, the text's log-probability in each direction without interaction.
    ``winner`` is the direction of the answer.  Texts are tokens, before BPE is
    undone.

    Args:
        path: file to write.  It appears with the first sentence.
        source, target: dictionaries.

    Raises:
        ValueError: the file exists; nothing that exists is overwritten.
    """

    flag = "--sb-records"

    def __init__(self, path: str, source: Any, target: Any) -> None:
        if not path or os.path.lexists(path):
            problem = "exists" if path else "has no name"
            raise ValueError(
                f"{self.flag} {path} must be a new file, but {problem}: remove it or "
                "choose another name"
            )
        folder = os.path.dirname(path) or "."
        if not os.access(folder, os.W_OK):
            raise ValueError(
                f"{self.flag} {path} must be in a folder that exists and can be "
                f"written, but {folder} does or can not: choose another"
            )
        self.path = path
        self.source = source
        self.target = target

    def __call__(self, sample: dict[str, Any], records: list[Record]) -> None:
        """Write the sentences of a batch.

        Args:
            sample: fairseq's batch.
            records: of each sentence; no best hypothesis where a direction has none.
        """
        lines = []
        for record, (winner, best) in zip(self.sentences(sample), records):
            record["winner"] = winner
            record.update({name: self._entry(best.get(name)) for name in NAMES})
            lines.append(record)
        self.append(lines)

    def sentences(self, sample: dict[str, Any]) -> list[dict[str, Any]]:
        """Return ``id`` and ``source`` of every sentence of a batch."""
        sources = sample["net_input"]["src_tokens"].cpu()
        ids = sample["id"].tolist() if "id" in sample else [None] * len(sources)
        return [
            {
                "id": index,
                "source": self.source.string(utils.strip_pad(row, self.source.pad())),
            }
            for index, row in zip(ids, sources)
        ]

    def append(self, records: list[dict[str, Any]]) -> None:
        """Write a line for each."""
        with open(self.path, "a", encoding="utf-8") as file:
            for record in records:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")

    def _entry(self, hypothesis: Hypothesis | None) -> dict[str, Any] | None:
        if hypothesis is None:
            return None
        entry = {"text": self.target.string(hypothesis["tokens"])}
        names = ("score", "total", *(n for n in RESCORED if n in hypothesis))
        return {**entry, **{name: float(hypothesis[name]) for name in names}}
