"""Section 7 (Table 8 by machine): dropped and repeated source words, estimated."""

from __future__ import annotations

from collections import Counter

from sbnmt_plugin.tools.word_links import Links, found_by_eflomal, grow_diag

DEFINITION = (
    "An estimate by machine, not the paper's count by four people. eflomal aligns the "
    "sources with the reference and with every system's output (both directions, "
    "joined by grow-diag). A source word is counted as under-translated if it is "
    "linked to a word of the first reference but to none of the output; as "
    "over-translated if it is linked to the same output word more than once, and more "
    "often than in the reference. Both as a share of all source words. The aligner "
    "makes mistakes and draws random numbers without a seed, so small differences "
    "between systems mean nothing: the range over repeated runs stands beside each "
    "number. Words that the aligner leaves alone even in the reference are no errors; "
    "their share is given to show what it cannot see."
)


def linked_words(links: Links, target: list[str]) -> dict[int, Counter[str]]:
    """Which target words, and how many of each, a source place is linked to."""
    found: dict[int, Counter[str]] = {}
    for source, place in links:
        found.setdefault(source, Counter())[target[place].lower()] += 1
    return found


def under_translated(output: Links, reference: Links) -> set[int]:
    """Source places that the reference translates and the output does not."""
    return {i for i, _ in reference} - {i for i, _ in output}


def over_translated(
    output: Links, reference: Links, output_words: list[str], gold_words: list[str]
) -> set[int]:
    """Source places linked to more copies of a word than in the reference."""
    ours = linked_words(output, output_words)
    golds = linked_words(reference, gold_words)
    return {
        place
        for place, words in ours.items()
        for word, count in words.items()
        if count > 1 and count > golds.get(place, Counter())[word]
    }


def ratios(
    sources: list[list[str]],
    outputs: list[list[str]],
    golds: list[list[str]],
    output_links: list[Links],
    gold_links: list[Links],
) -> tuple[float, float]:
    """Over- and under-translated source words, in percent of all."""
    over = under = 0
    for one in zip(output_links, gold_links, outputs, golds):
        over += len(over_translated(*one))
        under += len(under_translated(*one[:2]))
    words = sum(map(len, sources)) or 1
    return 100 * over / words, 100 * under / words


def unaligned(sources: list[list[str]], links: list[Links]) -> float:
    """Source words without any link, in percent of all."""
    alone = sum(
        len(words) - len({i for i, _ in pairs}) for words, pairs in zip(sources, links)
    )
    return 100 * alone / (sum(map(len, sources)) or 1)


def align(sources: list[list[str]], targets: list[list[str]]) -> list[Links]:
    """Align with eflomal, on this machine and without a network.

    Raises:
        ImportError: eflomal is not installed.
    """
    pairs = found_by_eflomal(map(" ".join, sources), map(" ".join, targets))
    return [grow_diag(forward, reverse) for forward, reverse in pairs]


def estimate(
    sources: list[list[str]],
    golds: list[list[str]],
    systems: dict[str, list[list[str]]],
    more: tuple[list[list[str]], list[list[str]]] = ([], []),
    runs: int = 2,
) -> tuple[dict[str, list[tuple[float, float, float]]], list[float]]:
    """Over-, under-translation and unaligned words of every system, run by run.

    Everything is aligned together, so that rare words are seen more than once.

    Args:
        more: further bitext that helps the aligner, such as training data.

    Returns:
        per system, (over, under, unaligned) of each run; unaligned words of the
        reference in each run; all in percent of source words.
    """
    count = len(sources)
    texts = [golds, *systems.values(), more[1]]
    origin = [*(sources for _ in range(1 + len(systems))), more[0]]
    flat = [words for text in texts for words in text]
    found: dict[str, list[tuple[float, float, float]]] = {n: [] for n in systems}
    plain = []
    for _ in range(runs):
        links = align([words for text in origin for words in text], flat)
        gold_links = links[:count]
        plain.append(unaligned(sources, gold_links))
        for place, (name, outputs) in enumerate(systems.items(), start=1):
            ours = links[place * count : (place + 1) * count]
            pair = ratios(sources, outputs, golds, ours, gold_links)
            found[name].append((*pair, unaligned(sources, ours)))
    return found, plain
