"""Scores of a row of the results table: the hypotheses of the test set."""

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sbnmt_plugin.lines import each_entry
from sbnmt_plugin.tools.phonemes import error_rates
from sbnmt_plugin.tools.scoring import (
    TOKENISERS,
    Scores,
    mean,
    scores,
    tokenised_bleu,
    tokeniser_of,
)
from sbnmt_plugin.tools.subwords import undoing
from sbnmt_plugin.tools.text import as_written, read_lines, read_parallel
from sbnmt_plugin.tools.tokens import detokenise
from sbnmt_plugin.tools.translations import each_translation, read_generated

SET = re.compile(r"([^\t]+)\t([1-9][0-9]*)")  # a line of test.sets


def add_raw(parser: argparse.ArgumentParser) -> None:
    """Add the option that texts are raw: see :class:`References`."""
    parser.add_argument(
        "--raw",
        choices=TOKENISERS,
        default="",
        help="texts are raw, subwords of kind sentencepiece: tokeniser for BLEU",
    )


@dataclass(frozen=True)
class References:
    """References of the test set, and how hypotheses are compared with them.

    Attributes:
        text: folder with test.TGT, tokenised or raw, and test.ref.TGT as published;
            further references are test.TGT.2 and so on; test.sets where the text
            consists of several sets.
        target: TGT.
        count: number of references.
        lowercase: whether case is ignored.
        detokenise: language by whose rules hypotheses are detokenised, to be compared
            with test.ref.TGT; "" if there is none, and only tokens are compared.
        phonemes: whether a line is a word and its tokens are phonemes, of which there
            are error rates.
        raw: tokeniser of sacreBLEU where subwords are sentencepiece's and texts are
            raw; "" where texts are tokens.
    """

    text: Path
    target: str
    count: int = 1
    lowercase: bool = False
    detokenise: str = ""
    phonemes: bool = False
    raw: str = ""

    def files(self, stem: str = "test") -> list[Path]:
        """Return STEM.TGT, STEM.TGT.2 and so on."""
        name = f"{stem}.{self.target}"
        further = [f"{name}.{number}" for number in range(2, self.count + 1)]
        return [self.text / each for each in [name, *further]]

    def read(self, stem: str, *stems: str) -> list[list[str]]:
        """Read the lines of all references, of ``test`` or ``test.ref`` or both.

        Raises:
            ValueError: one has fewer lines than another.
        """
        return read_parallel(*(path for x in (stem, *stems) for path in self.files(x)))

    def sets(self, count: int) -> dict[str, slice]:
        """Return names and places of the sets in the test text of ``count`` lines.

        Raises:
            ValueError: they do not add up to it.
        """
        path = self.text / "test.sets"
        if not path.exists():
            return {"test": slice(0, count)}
        rule = "a set's name, a tab and its number of lines"
        entries = [*each_entry(path, SET, rule, "run prepare.py again")]
        found = {entry[1]: int(entry[2]) for entry in entries}
        ends = [*itertools.accumulate(found.values(), initial=0)]
        if ends[-1] != count or len(found) < len(entries):
            raise ValueError(
                f"{path} must have sets of different names that add up to {count} "
                "lines, but has not: run prepare.py again"
            )
        return dict(zip(found, map(slice, ends, ends[1:])))


def read_hypotheses(
    path: Path, references: References, subset: str = "test"
) -> list[str]:
    """Read the hypothesis of every sentence of a set, subwords undone.

    Args:
        path: fairseq-generate's output, file or folder, which must be whole; or
            ``sbnmt rerank``'s .tsv, where a source that is over-long has no line and
            gets an empty hypothesis; or a .bpe, a line a sentence.

    Raises:
        ValueError: sentences are missing, or are not of this set.
    """
    reference = references.files(subset)[0]
    own = re.fullmatch(r"generate-(.+)\.txt", path.name)
    if own and own[1] != subset and references.files(own[1])[0].exists():
        raise ValueError(
            f"{path} must be of {subset}, as {reference} is, but is of {own[1]}: "
            f"decode {subset}"
        )
    count = len(read_lines(reference))
    if path.suffix == ".tsv":
        found = dict(each_translation(path, count))
        if missing := count - len(found):
            print(
                f"{path} has no hypothesis for {missing} of the {count} lines of "
                f"{reference}, which count as empty",
                file=sys.stderr,
            )
    else:
        lines = path.suffix == ".bpe"
        found = dict(enumerate(read_lines(path))) if lines else read_generated(path)
        wrong = sorted(set(range(count)).symmetric_difference(found))
        if wrong:
            problem = "lacks" if wrong[0] not in found else "has"
            raise ValueError(
                f"{path} must have a hypothesis for each of the {count} lines of "
                f"{reference}, but {problem} that of sentence {wrong[0]}: decode the "
                "whole of this set"
            )
    undo = undoing(references.raw)
    return [undo(found.get(index, "")) for index in range(count)]


def score_row(
    tokens: list[str], references: References
) -> tuple[dict[str, Any], list[str]]:
    """Compute tokenised BLEU and, where text is raw or can be detokenised, BLEU, chrF.

    Raw text has no tokenised BLEU.  Where lines are words, word and phoneme error rate
    are computed, too.

    Args:
        tokens: the hypotheses, subwords undone.

    Returns:
        The scores, and the hypotheses as one would read them.

    Raises:
        ValueError: the references differ in their number of lines.
    """
    language, lowercase = references.detokenise, references.lowercase
    every = references.read("test", *["test.ref"] * bool(language))
    tokenised, raw = every[: references.count], every[references.count :]
    plain = detokenise(tokens, language) if language else tokens
    sets = references.sets(len(tokens))
    found: list[Scores] = []
    for here in sets.values():
        own, read = ([text[here] for text in texts] for texts in (tokenised, raw))
        if references.raw:
            result = scores(tokens[here], own, lowercase, references.raw)
        else:
            result = {"tokenised BLEU": tokenised_bleu(tokens[here], own, lowercase)}
        if read:
            tokeniser = tokeniser_of(references.target)
            result |= scores(plain[here], read, lowercase, tokeniser)
        if references.phonemes:
            result |= error_rates(tokens[here], own)
        found.append(result)
    scored: dict[str, Any] = mean(found)
    if len(sets) > 1:
        first = next(iter(scored))
        scored["sets"] = {name: each[first]["score"] for name, each in zip(sets, found)}
    return scored, plain


def l2r_wins(records: Path, count: int) -> float:
    """Return the percentage of ``count`` sentences that L2R wins, by ``--sb-records``.

    Raises:
        ValueError: the file is damaged, or of another number of sentences.
    """
    with as_written(records, "decode again"):
        winners = [json.loads(line)["winner"] for line in read_lines(records)]
        if len(winners) != count:
            raise ValueError(
                f"--records {records} must have a line for each of the {count} "
                f"sentences, but has {len(winners)}: give those of this decoding"
            )
        return round(100 * winners.count("l2r") / count, 1)
