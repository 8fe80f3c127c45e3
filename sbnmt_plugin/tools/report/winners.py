"""Section 5: which direction won."""

from __future__ import annotations

from sbnmt_plugin.tools.report.content import Column, Section, Table
from sbnmt_plugin.tools.report.inputs import Inputs

TITLE = "Which direction won"
MISSING = (
    "No system has records in which both directions win. Decode with --sb-records "
    "FILE.jsonl and give --records NAME=FILE.jsonl."
)


def section(given: Inputs) -> Section:
    """Tell who won how many sentences, of each system with records."""
    if not given.winners:
        return Section("winners", TITLE, missing=MISSING)
    won = Column("L2R won", "%", ".1f")
    shares = [
        [name, 100 * winners.count("l2r") / len(winners)]
        for name, winners in given.winners.items()
    ]
    whole = Table("winners", "Sentences won.", [Column("system"), won], shares)
    return Section(
        "winners",
        TITLE,
        "Both directions finish hypotheses of their own; the search answers with the "
        "better score, whichever direction wrote it.",
        [whole],
    )
