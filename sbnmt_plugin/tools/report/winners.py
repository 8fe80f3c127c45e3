"""Section 6: which direction won, and what the other one would have given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sbnmt_plugin.tools.scoring import bleu

NAMES = ("l2r", "r2l")
QUANTILES = 5


@dataclass(frozen=True)
class Race:
    """Both directions' best hypotheses of a sentence, and who won.

    Attributes:
        winner: ``l2r`` or ``r2l``.
        text: per direction; None where it never finished.
        score: per direction, natural logarithm, normalised by length.
    """

    winner: str
    text: dict[str, str | None]
    score: dict[str, float | None]

    @property
    def both(self) -> bool:
        return all(self.text[name] is not None for name in NAMES)

    @property
    def margin(self) -> float | None:
        """By how much the winner's score exceeds the other's."""
        left, right = self.score["l2r"], self.score["r2l"]
        return None if left is None or right is None else abs(left - right)

    def answer(self, direction: str) -> str:
        """This direction's text; the other's where it has none."""
        own = self.text[direction]
        other = self.text[NAMES[1 - NAMES.index(direction)]]
        return own if own is not None else other or ""


def race(record: dict[str, Any], join: Any) -> Race:
    """A line of ``--sb-records``.

    Args:
        join: makes words of subwords.
    """
    entries = {name: record.get(name) or {} for name in NAMES}
    return Race(
        record["winner"],
        {n: join(e["text"]) if e else None for n, e in entries.items()},
        {n: float(e["score"]) if e else None for n, e in entries.items()},
    )


def share(races: list[Race]) -> float:
    """Percentage of sentences that L2R won."""
    return 100 * sum(race.winner == "l2r" for race in races) / len(races)


def margin_groups(
    races: list[Race], count: int = QUANTILES
) -> list[tuple[float, float, list[int]]]:
    """Sentences in equal groups by margin, from the closest races to the clearest.

    Returns:
        smallest margin, largest margin and the sentences of each group.
    """
    known = [(r.margin, i) for i, r in enumerate(races) if r.margin is not None]
    known.sort()
    groups = []
    for k in range(count):
        part = known[k * len(known) // count : (k + 1) * len(known) // count]
        if part:
            groups.append((part[0][0], part[-1][0], [i for _, i in part]))
    return groups


def agreement(races: list[Race]) -> float | None:
    """Percentage of sentences for which both directions' best texts are the same."""
    both = [race for race in races if race.both]
    if not both:
        return None
    return 100 * sum(r.text["l2r"] == r.text["r2l"] for r in both) / len(both)


def choices(
    races: list[Race],
    references: list[list[str]],
    lowercase: bool = False,
    tokenize: str = "13a",
) -> dict[str, list[str]]:
    """Texts under each rule of choosing a direction.

    ``oracle`` takes the direction with the higher sentence BLEU, L2R where equal: a
    bound for any rule that chooses between the two.
    """
    metric = bleu(tokenize, lowercase=lowercase, effective_order=True, force=True)
    oracle = []
    for one, *golds in zip(races, *references):
        pair = [one.answer(name) for name in NAMES]
        if pair[0] == pair[1]:
            oracle.append(pair[0])
            continue
        values = [metric.sentence_score(text, golds).score for text in pair]
        oracle.append(pair[values[1] > values[0]])
    return {
        "the search's choice": [one.answer(one.winner) for one in races],
        "always L2R": [one.answer("l2r") for one in races],
        "always R2L": [one.answer("r2l") for one in races],
        "the better one (oracle)": oracle,
    }
