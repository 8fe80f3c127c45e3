"""Links between the words of two texts: found in both directions, and joined.

nltk's ``gdfa.grow_diag_final_and`` (3.10.4) is not used.  It asks whether a *place* is
among the two keys of its table of linked places, which none ever is.  So it adds every
link of either direction, and its result is their union.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

LINK = re.compile(r"([0-9]+)([-?])([0-9]+)")
NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))
Links = set[tuple[int, int]]  # place in the source, place in the target


def parse_links(line: str, signs: str = "-") -> Links:
    """Read ``0-0 2-1`` as pairs.

    Args:
        signs: with ``-?`` also ``1?2``, a link that is possible only.

    Raises:
        ValueError: a word is no link.
    """
    found = set()
    for word in line.split():
        match = LINK.fullmatch(word)
        if not match or match[2] not in signs:
            raise ValueError(f"must hold links as 0-0 1{signs[-1]}2, but has {word!r}")
        found.add((int(match[1]), int(match[3])))
    return found


def check_places(links: Links, source: int, target: int) -> None:
    """Refuse links beyond a sentence pair.

    Args:
        source, target: how many words each side has.

    Raises:
        ValueError: see above.
    """
    for i, j in sorted(links):
        if i >= source or j >= target:
            raise ValueError(
                f"must link words counted from 0, of which the source has {source} and "
                f"the target {target}, but has {i}-{j}: align these very files"
            )


def links_line(links: Links) -> str:
    """Write links as :func:`parse_links` reads them."""
    return " ".join(f"{i}-{j}" for i, j in sorted(links))


def grow_diag(forward: Links, reverse: Links) -> Links:
    """Join both directions' links (Och and Ney 2003; Koehn's grow-diag).

    It starts from the links that both have, and adds a neighbouring one that either has
    while it links a word that is still alone.  Places are visited in order, also those
    that were added on the way.
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
    """Join links by :func:`grow_diag`, then add any between two words without a link.

    The forward direction comes first (Koehn et al. 2005; Moses' default).
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
    """Yield forward and reverse links of every pair of lines.

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
