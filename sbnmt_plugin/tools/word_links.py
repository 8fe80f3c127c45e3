"""Links between the words of two texts: found in both directions, and joined.

nltk's ``gdfa.grow_diag_final_and`` (3.10.4) is not used: it asks whether a *place* is
among the two keys of its table of linked places, which none ever is, so every link that
either direction has is added, and what it gives is their union.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

LINK = re.compile(r"([0-9]+)-([0-9]+)")
NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))
Links = set[tuple[int, int]]  # place in the source, place in the target


def parse_links(line: str) -> Links:
    """``0-0 2-1`` as pairs.

    Raises:
        ValueError: what is no link.
    """
    found = set()
    for word in line.split():
        match = LINK.fullmatch(word)
        if not match:
            raise ValueError(f"must hold links as 0-0 1-2, but has {word!r}")
        found.add((int(match[1]), int(match[2])))
    return found


def links_line(links: Links) -> str:
    """What :func:`parse_links` reads."""
    return " ".join(f"{i}-{j}" for i, j in sorted(links))


def grow_diag(forward: Links, reverse: Links) -> Links:
    """Join both directions' links (Och and Ney 2003; Koehn's grow-diag).

    Starts from the links that both have and adds a neighbouring one that either has
    while it links a word that is still alone.  Places are visited in order, those that
    were added on the way, too.
    """
    links = forward & reverse
    either = forward | reverse
    sources = {i for i, _ in links}
    targets = {j for _, j in links}
    grown = True
    while grown:
        grown = False
        for i, j in sorted(either):
            if (i, j) not in links:
                continue
            for di, dj in NEIGHBOURS:
                new = (i + di, j + dj)
                alone = new[0] not in sources or new[1] not in targets
                if new in either and new not in links and alone:
                    links.add(new)
                    sources.add(new[0])
                    targets.add(new[1])
                    grown = True
    return links


def grow_diag_final_and(forward: Links, reverse: Links) -> Links:
    """:func:`grow_diag`, and then any link between two words that are both alone.

    Those of the forward direction come first (Koehn et al. 2005; Moses' default).
    """
    links = grow_diag(forward, reverse)
    sources = {i for i, _ in links}
    targets = {j for _, j in links}
    for direction in (forward, reverse):
        for i, j in sorted(direction):
            if i not in sources and j not in targets:
                links.add((i, j))
                sources.add(i)
                targets.add(j)
    return links


def found_by_eflomal(
    sources: Iterable[str], targets: Iterable[str]
) -> Iterator[tuple[Links, Links]]:
    """Forward and reverse links of every pair of lines, on this machine.

    eflomal draws random numbers and takes no seed: another run gives other links.

    Raises:
        ImportError: eflomal is not installed.
    """
    import eflomal

    with tempfile.TemporaryDirectory() as folder:
        forward, reverse = Path(folder, "forward"), Path(folder, "reverse")
        eflomal.Aligner().align(
            sources,
            targets,
            links_filename_fwd=str(forward),
            links_filename_rev=str(reverse),
        )
        with open(forward) as one, open(reverse) as other:
            for a, b in zip(one, other):
                yield parse_links(a), parse_links(b)
