"""Which direction won, sentence by sentence, as JSON lines (``--sb-records``)."""

from __future__ import annotations

import json
import os
from typing import Any

from fairseq import utils

from sbnmt_plugin.directions import NAMES

Hypothesis = dict[str, Any]


class RecordWriter:
    """Appends a line per sentence to a file that must be new, as sentences are done.

    A line holds ``id`` (null where fairseq gives none, as in interactive mode),
    ``source`` and, per direction, ``text`` in natural order, ``score`` (the value
    by which hypotheses are compared, natural logarithm) and ``total`` (its
    unnormalised log-probability); null for a direction that never finished.
    ``winner`` is the direction of the answer.  Texts are tokens, before BPE is
    undone.

    Args:
        path: file to write.  It appears with the first sentence.
        source, target: dictionaries.

    Raises:
        ValueError: the file exists; nothing that exists is overwritten.
    """

    def __init__(self, path: str, source: Any, target: Any) -> None:
        if not path or os.path.lexists(path):
            problem = "exists" if path else "has no name"
            raise ValueError(
                f"--sb-records {path} must be a new file, but {problem}: remove it or "
                "choose another name"
            )
        folder = os.path.dirname(path) or "."
        if not os.access(folder, os.W_OK):
            raise ValueError(
                f"--sb-records {path} must be in a folder that exists and can be "
                f"written, but {folder} does or can not: choose another"
            )
        self.path = path
        self.source = source
        self.target = target

    def __call__(self, sample: dict[str, Any], records: list[Any]) -> None:
        """Write the sentences of a batch.

        Args:
            sample: fairseq's batch.
            records: per sentence, (winner, best hypothesis of each direction).
        """
        sources = sample["net_input"]["src_tokens"]
        ids = sample["id"].tolist() if "id" in sample else [None] * len(records)
        lines = []
        for index, tokens, (winner, best) in zip(ids, sources, records):
            tokens = utils.strip_pad(tokens, self.source.pad())
            record: dict[str, Any] = {
                "id": index,
                "source": self.source.string(tokens),
                "winner": winner,
            }
            record.update({name: self._entry(best.get(name)) for name in NAMES})
            lines.append(json.dumps(record, ensure_ascii=False) + "\n")
        with open(self.path, "a", encoding="utf-8") as file:
            file.writelines(lines)

    def _entry(self, hypothesis: Hypothesis | None) -> dict[str, Any] | None:
        if hypothesis is None:
            return None
        return {
            "text": self.target.string(hypothesis["tokens"]),
            "score": float(hypothesis["score"]),
            "total": float(hypothesis["total"]),
        }
