"""Section 3 (Figure 9): sentences grouped by the length of their source."""

from __future__ import annotations

from dataclasses import dataclass

WIDTHS = (1, 2, 5, 10, 20, 50, 100)
MOST_BUCKETS = 8
FEWEST = 20  # sentences, below which corpus BLEU says little


@dataclass(frozen=True)
class Bucket:
    """Sentences whose source has low … high tokens (high None: no limit)."""

    low: int
    high: int | None
    places: tuple[int, ...]

    @property
    def name(self) -> str:
        if self.high is None:
            return f"≥ {self.low}"
        return f"{self.low}–{self.high}" if self.high > self.low else f"{self.low}"


def edges(lengths: list[int], count: int = MOST_BUCKETS) -> list[int]:
    """Upper ends of buckets: equally wide, at most ``count``, of a round width.

    The tail, in which few sentences are, is left to one open bucket; groups of very
    short sentences that are as few are joined with the next.
    """
    ordered = sorted(lengths)
    # the last FEWEST sentences fall into the open bucket
    top = ordered[max(0, len(ordered) - 1 - FEWEST)]
    low = ordered[0]
    for width in WIDTHS:
        first = (max(low, 1) - 1) // width * width + width
        uppers = list(range(first, top + 1, width)) or [first]
        if len(uppers) < count:
            break
    while len(uppers) > 1 and sum(n <= uppers[0] for n in lengths) < FEWEST:
        uppers = uppers[1:]
    return uppers


def buckets(lengths: list[int], uppers: list[int]) -> list[Bucket]:
    """Group sentences; empty buckets are left out.

    Args:
        lengths: of the sources, in tokens.
        uppers: upper ends, ascending; a last bucket without an end follows.

    Raises:
        ValueError: the ends do not ascend.
    """
    if list(uppers) != sorted(set(uppers)) or (uppers and uppers[0] < 1):
        raise ValueError(
            f"--buckets must ascend from 1 or more, but is {','.join(map(str, uppers))}"
        )
    made = []
    low = 0
    for high in [*uppers, None]:
        places = tuple(
            i
            for i, length in enumerate(lengths)
            if low <= length and (high is None or length <= high)
        )
        if places:
            made.append(Bucket(low, high, places))
        low = (high or 0) + 1
    if made and made[0].low == 0:  # an empty source is rare: name what is there
        made[0] = Bucket(min(lengths), made[0].high, made[0].places)
    return made


def mean_length(outputs: list[list[str]], places: tuple[int, ...]) -> float:
    """Average number of tokens of these outputs."""
    return sum(len(outputs[i]) for i in places) / len(places)
