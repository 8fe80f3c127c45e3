"""Phrase table of a bitext and its links, as Moses makes one (Koehn et al. 2003).

A phrase pair is consistent with the links of a sentence pair if it has a link, and none
of its words is linked to a word outside.  nltk's ``phrase_based.phrase_extraction``
(3.10.4) gives these pairs only without a limit.  Where a limit is smaller than the
sentences, nltk cuts a longer target phrase instead of leaving the pair out, which makes
the pair inconsistent.  Words without a link also make its target phrases longer than
the limit.  So it is not used.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction

from sbnmt_plugin.tools.text import each_parallel
from sbnmt_plugin.tools.word_links import Links, check_places, parse_links
from sbnmt_plugin.training.phrase_table import SEPARATOR, entry_line

# begin and end of a source phrase, begin and end of its target phrase
Span = tuple[int, int, int, int]
Sentence = tuple[list[str], list[str], Links]  # source, target
NOTHING = ""  # the source word of a target word without a link


def consistent_spans(source: int, target: int, links: Links, longest: int) -> set[Span]:
    """Return all consistent phrase pairs of a sentence pair.

    Args:
        source, target: how many tokens each side has.
        longest: tokens of a phrase, on either side.
    """
    ours: dict[int, list[int]] = defaultdict(list)  # places linked to one of the source
    theirs: dict[int, list[int]] = defaultdict(list)
    for i, j in links:
        ours[i].append(j)
        theirs[j].append(i)
    found = set()
    for start in range(source):
        places: list[int] = []
        for end in range(start + 1, min(start + longest, source) + 1):
            places += ours[end - 1]
            if not places:
                continue
            low, high = min(places), max(places) + 1
            if high - low > longest:
                break  # and so would be every longer source phrase
            inside = (start <= i < end for j in range(low, high) for i in theirs[j])
            if all(inside):
                for begin, behind in with_unlinked(low, high, target, theirs):
                    if behind - begin <= longest:
                        found.add((start, end, begin, behind))
    return found


def with_unlinked(
    low: int, high: int, length: int, linked: dict[int, list[int]]
) -> Iterator[tuple[int, int]]:
    """Yield a span, and all spans that add words without a link on its sides."""
    first, last = low, high
    while first > 0 and not linked[first - 1]:
        first -= 1
    while last < length and not linked[last]:
        last += 1
    for begin in range(first, low + 1):
        for end in range(high, last + 1):
            yield begin, end


class PhraseCounts:
    """Counts of translations of phrases, and of linked words.

    Memory holds the different pairs of both, and no sentences.

    Attributes:
        pairs: source phrase -> target phrase -> count.
        words: source word -> target word linked to it -> count; ``NOTHING`` stands for
            the source of a target word without a link.
    """

    def __init__(self) -> None:
        self.pairs: dict[str, Counter[str]] = defaultdict(Counter)
        self.words: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, sentence: Sentence, spans: Iterable[Span]) -> None:
        """Count the phrases and the links of a sentence pair.

        A phrase that has the file's separator for a word is left out.
        """
        source, target, links = sentence
        for i, j in links:
            self.words[source[i]][target[j]] += 1
        for j in set(range(len(target))) - {j for _, j in links}:
            self.words[NOTHING][target[j]] += 1
        for start, end, begin, behind in spans:
            ours, theirs = source[start:end], target[begin:behind]
            if SEPARATOR not in ours and SEPARATOR not in theirs:
                self.pairs[" ".join(ours)][" ".join(theirs)] += 1

    def lexical_probability(self, source: str, target: str) -> Fraction:
        """Return IBM model 1's probability of a target phrase.

        It is Π over target words e of the mean w(e|f) over source words f, one more of
        which is ``NOTHING``; w(e|f) is the share of e among the target words that were
        linked to f.
        """
        places = [NOTHING, *source.split()]
        rows = [self.words[word] for word in places if word in self.words]
        found = [(row, row.total()) for row in rows]
        return math.prod(
            (
                sum((Fraction(row[word], n) for row, n in found), Fraction())
                / len(places)
                for word in target.split()
            ),
            start=Fraction(1),
        )

    def best(self, source: str) -> str:
        """Return the target phrase that was counted most often for a source phrase.

        Among several it is that of higher lexical probability, with fewer tokens, first
        in the alphabet.
        """
        counts = self.pairs[source]
        most = max(counts.values())
        equal = [target for target, count in counts.items() if count == most]
        if len(equal) == 1:
            return equal[0]
        return min(
            equal,
            key=lambda target: (
                -self.lexical_probability(source, target),
                len(target.split()),
                target,
            ),
        )

    def table_lines(self, least: int) -> Iterator[str]:
        """Yield the phrase table's lines, in order.

        Args:
            least: the least count of a source phrase of several tokens with its target
                phrase; for one token once is enough.
        """
        for source in sorted(self.pairs):
            counts = self.pairs[source]
            most = max(counts.values())
            if most >= least or len(source.split()) == 1:
                share = most / counts.total()
                yield entry_line(source, self.best(source), share, most)


def linked_sentences(source: str, target: str, links: str) -> Iterator[Sentence]:
    """Yield the sentence pairs of three line-aligned files.

    Raises:
        ValueError: a line of the links has a word that is no link, or a link beyond the
            sentence; a file has another number of lines.
    """
    rows = each_parallel(source, target, links)
    for number, (one, other, line) in enumerate(rows, start=1):
        words = one.split(), other.split()
        try:
            found = parse_links(line)
            check_places(found, *map(len, words))
        except ValueError as error:
            raise ValueError(f"{links}, line {number}, {error}") from error
        yield *words, found
