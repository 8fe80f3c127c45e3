"""Section 5: which direction won, by the length of the source."""

from __future__ import annotations

from typing import Any

from sbnmt_plugin.tools.report.content import Column, Section, Table
from sbnmt_plugin.tools.report.inputs import Inputs
from sbnmt_plugin.tools.report.lengths import groups_of

TITLE = "Which direction won"
MISSING = (
    "No system has records in which both directions win. Decode with --sb-records "
    "FILE.jsonl and give --records NAME=FILE.jsonl."
)


def share(winners: list[str]) -> float:
    """Return the percentage of sentences that L2R won."""
    return 100 * winners.count("l2r") / len(winners)


def section(given: Inputs) -> Section:
    """Tell who won each sentence; by length, of the first system with records."""
    if not given.winners:
        return Section("winners", TITLE, missing=MISSING)
    won = Column("L2R won", "%", ".1f")
    outcomes = [[name, share(winners)] for name, winners in given.winners.items()]
    whole = Table("winners", "Sentences won.", [Column("system"), won], outcomes)
    first, winners = next(iter(given.winners.items()))
    columns = [Column("source length (tokens)"), Column("sentences", "", ",d"), won]
    rows: list[list[Any]] = [
        [group.name, len(group.places), share(group.of(winners))]
        for group in groups_of(given)
    ]
    by_length = Table("winners-by-length", f"{first}, by length.", columns, rows)
    return Section(
        "winners",
        TITLE,
        "Both directions finish hypotheses of their own; the search answers with the "
        "better score, whichever direction wrote it.",
        [whole, by_length],
    )
