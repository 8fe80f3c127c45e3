"""Phrase extraction: joined links, consistent spans and counts against brute force."""

import random
from collections import Counter, defaultdict
from fractions import Fraction

import pytest

from sbnmt_plugin.tools.phrase_extraction import PhraseCounts, consistent_spans
from sbnmt_plugin.tools.word_links import (
    NEIGHBOURS,
    grow_diag,
    grow_diag_final_and,
    links_line,
    parse_links,
)

# joined links


def koehns(forward, reverse, size):
    """Grow-diag-final-and as its pseudocode says, over all places of both texts."""

    def alone(i, j):
        return (
            all(i != other for other, _ in links),
            all(j != other for _, other in links),
        )

    links, either = forward & reverse, forward | reverse
    before = None
    while before != len(links):
        before = len(links)
        for i in range(size):
            for j in range(size):
                if (i, j) in links:
                    for di, dj in NEIGHBOURS:
                        new = i + di, j + dj
                        if new in either and any(alone(*new)):
                            links.add(new)
    for direction in forward, reverse:
        for i in range(size):
            for j in range(size):
                if (i, j) in direction and all(alone(i, j)):
                    links.add((i, j))
    return links


def drawn_links(generator):
    """Each target word's source word, each source word's target word."""
    source, target = generator.randint(1, 7), generator.randint(1, 6)
    forward = {(generator.randrange(source), j) for j in range(target)}
    reverse = {(i, generator.randrange(target)) for i in range(source)}
    return tuple(
        {link for link in links if generator.random() < 0.8}
        for links in (forward, reverse)
    )


def test_links_are_joined_as_the_pseudocode_says(join=grow_diag_final_and):
    generator = random.Random(11)
    for _ in range(1000):
        forward, reverse = drawn_links(generator)
        assert join(forward, reverse) == koehns(forward, reverse, 7)


def joined_by_nltk(forward, reverse):
    gdfa = pytest.importorskip("nltk.translate.gdfa")
    return {*gdfa.grow_diag_final_and(7, 6, links_line(forward), links_line(reverse))}


def test_nltks_joined_links_are_their_union():
    """Why it is not used: remove our own where this fails."""
    generator = random.Random(12)
    for _ in range(200):
        forward, reverse = drawn_links(generator)
        assert joined_by_nltk(forward, reverse) == forward | reverse


@pytest.mark.parametrize(
    "twin",
    [
        lambda forward, reverse: forward | reverse,
        lambda forward, reverse: forward & reverse,
        grow_diag,
        lambda forward, reverse: grow_diag_final_and(reverse, forward),
    ],
    ids=["union", "intersection", "grow-diag", "the other way round"],
)
def test_the_check_of_joined_links_can_fail(twin):
    with pytest.raises(AssertionError):
        test_links_are_joined_as_the_pseudocode_says(twin)


def test_links_are_read_as_they_are_written():
    links = {(0, 10), (0, 2), (11, 0)}
    assert (
        links_line(links) == "0-2 0-10 11-0" and parse_links("11-0 0-2 0-10") == links
    )
    assert parse_links("") == set()
    for wrong in "0", "0--1", "a-1", "-1-2", "1-", "1?1":
        with pytest.raises(ValueError, match="links as 0-0 1-2, but has"):
            parse_links(f"0-0 {wrong}")


# consistent spans


def consistent(source, target, links, longest):
    """All pairs of spans, asked for each condition of the definition."""
    found = set()
    for start in range(source):
        for end in range(start + 1, source + 1):
            for begin in range(target):
                for behind in range(begin + 1, target + 1):
                    inside = [(start <= i < end, begin <= j < behind) for i, j in links]
                    whole = all(one == other for one, other in inside)
                    short = max(end - start, behind - begin) <= longest
                    if whole and short and (True, True) in inside:
                        found.add((start, end, begin, behind))
    return found


def drawn_sentences(count):
    generator = random.Random(13)
    for _ in range(count):
        source, target = generator.randint(1, 6), generator.randint(1, 7)
        cells = [(i, j) for i in range(source) for j in range(target)]
        links = generator.sample(cells, min(len(cells), generator.randint(0, 6)))
        yield source, target, set(links), generator.randint(1, 7)


def test_the_phrases_are_those_of_the_definition(spans=consistent_spans):
    for sentence in drawn_sentences(300):
        assert spans(*sentence) == consistent(*sentence)


def with_links_that_leave(source, target, links, longest):
    """The twin: no link leaves the source phrase, but one may leave the target's."""
    found = set()
    for span in consistent_spans(source, target, links, longest):
        found.add(span)
        start, end, begin, behind = span
        if end < source and end - start < longest:
            found.add((start, end + 1, begin, behind))
    return found


def minimal(source, target, links, longest):
    """The twin: without the words beside that have no link."""
    linked = {j for _, j in links}
    return {
        span
        for span in consistent_spans(source, target, links, longest)
        if {span[2], span[3] - 1} <= linked
    }


def spans_by_nltk(source, target, links, longest):
    phrases = pytest.importorskip("nltk.translate.phrase_based").phrase_extraction
    texts = (" ".join(map(str, range(size))) for size in (source, target))
    return {(*a, *b) for a, b, _, _ in phrases(*texts, sorted(links), longest)}


def test_nltks_phrases_are_right_without_a_limit_alone():
    """Why it is not used: remove our own where this fails."""
    wrong = long = 0
    for source, target, links, longest in drawn_sentences(300):
        whole = max(source, target)
        every = consistent(source, target, links, whole)
        assert spans_by_nltk(source, target, links, whole) == every
        limited = spans_by_nltk(source, target, links, longest)
        wrong += bool(limited - every)
        long += any(span[3] - span[2] > longest for span in limited)
    assert wrong > 20 and long > 20


@pytest.mark.parametrize("twin", [with_links_that_leave, minimal])
def test_the_check_of_phrases_can_fail(twin):
    with pytest.raises(AssertionError):
        test_the_phrases_are_those_of_the_definition(twin)


def test_words_are_pairs_that_are_linked_to_nothing_else():
    links = parse_links("0-1 1-0 1-2 2-3 3-3 4-4")
    assert consistent_spans(5, 5, links, 1) == {(0, 1, 1, 2), (4, 5, 4, 5)}


# counts


def test_the_separator_is_no_word_of_a_phrase():
    counts = PhraseCounts()
    for source, target in ("a |||", "A A"), ("a a", "||| A"), ("b ||||", "B B"):
        counts.add((source.split(), target.split(), {(0, 0)}), [(0, 2, 0, 2)])
    assert set(counts.pairs) == {"b ||||"}


def bitext():
    generator = random.Random(17)
    rows = []
    for source, target, links, _ in drawn_sentences(60):
        words = generator.choices("abc", k=source), generator.choices("ABCDE", k=target)
        rows.append((*words, links))
    return rows


def by_all_spans(rows, longest, least):
    """The table of a bitext in memory, every rule written out once more."""
    pairs, words = Counter(), Counter()
    for source, target, links in rows:
        for start, end, low, high in consistent(
            len(source), len(target), links, longest
        ):
            pairs[" ".join(source[start:end]), " ".join(target[low:high])] += 1
        words.update((source[i], target[j]) for i, j in links)
        alone = set(range(len(target))) - {j for _, j in links}
        words.update((None, target[j]) for j in alone)

    def probability(source, target):
        found = Fraction(1)
        for e in target.split():
            mean = Fraction(0)
            for f in [None, *source.split()]:
                total = sum(n for (one, _), n in words.items() if one == f)
                mean += Fraction(words[f, e], total) if total else 0
            found *= mean / (1 + len(source.split()))
        return found

    table = defaultdict(list)
    for (source, target), count in pairs.items():
        key = -count, -probability(source, target), len(target.split()), target
        table[source].append(key)
    lines = []
    for source in sorted(table):
        count, _, _, target = min(table[source])
        total = sum(key[0] for key in table[source])
        if -count >= least or " " not in source:
            lines.append(f"{source} ||| {target} ||| {count / total:.6f} {-count}")
    return lines


def assert_tables(lines):
    rows = bitext()
    for longest, least in (7, 2), (3, 1), (1, 2), (4, 3):
        assert lines(rows, longest, least) == by_all_spans(rows, longest, least)


@pytest.mark.parametrize(
    ("probability", "best"),
    [(lambda *_: 1, "B"), (lambda _, source, target: len(target), "A A")],
)
def test_of_equally_probable_phrases_the_shorter_is_best(
    monkeypatch, probability, best
):
    counts = PhraseCounts()
    counts.pairs["a"].update({"A A": 1, "B": 1})
    monkeypatch.setattr(PhraseCounts, "lexical_probability", probability)
    assert counts.best("a") == best


def our_lines(rows, longest, least):
    counts = PhraseCounts()
    for row in rows:
        counts.add(row, consistent_spans(len(row[0]), len(row[1]), row[2], longest))
    return list(counts.table_lines(least))


def test_the_table_is_that_of_all_spans():
    assert_tables(our_lines)


@pytest.mark.parametrize("change", ["least", "longest", "ties", "order"])
def test_the_check_of_tables_can_fail(change, monkeypatch):
    def changed(rows, longest, least):
        if change == "order":
            return our_lines(rows, longest, least)[::-1]
        return our_lines(
            rows, longest + (change == "longest"), least + (change == "least")
        )

    if change == "ties":
        monkeypatch.setattr(PhraseCounts, "lexical_probability", lambda *_: 0)
    with pytest.raises(AssertionError):
        assert_tables(changed)
