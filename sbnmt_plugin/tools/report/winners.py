"""Section 5: which direction won, by the length of the source."""

from __future__ import annotations

from typing import Any

from sbnmt_plugin.tools.report.content import Column, Figure, Section, Table
from sbnmt_plugin.tools.report.drawing import (
    DIRECTIONS,
    INK,
    finish,
    legend_above,
    panels,
)
from sbnmt_plugin.tools.report.inputs import Inputs
from sbnmt_plugin.tools.report.lengths import Bucket, groups_of, name_groups

LEAST_LABELLED = 8  # percent; a bar below it has no room for its number
TITLE = "Which direction won"
MISSING = (
    "No system has records in which both directions win. Decode with --sb-records "
    "FILE.jsonl and give --records NAME=FILE.jsonl."
)


def share(winners: list[str]) -> float:
    """Return the percentage of sentences that L2R won."""
    return 100 * winners.count("l2r") / len(winners)


def drawn(groups: list[Bucket], shares: list[float]) -> Figure:
    """Draw who won, by source length: stacked bars to 100 %."""
    (l2r, blue), (r2l, red) = DIRECTIONS.values()
    with panels(1, 2.9) as (canvas, (axis,)):
        places = range(len(groups))
        bars = axis.bar(places, shares, 0.8, color=blue, label=l2r)
        others = [100 - share for share in shares]
        for bar in axis.bar(places, others, 0.8, bottom=shares, color=red, label=r2l):
            bar.set(hatch="//", edgecolor="white", linewidth=0)
        axis.bar_label(
            bars,
            [f"{share:.0f}" if share >= LEAST_LABELLED else "" for share in shares],
            label_type="center",
            color="white",
            fontsize=7.5,
            fontweight="bold",
        )
        axis.axhline(50, color=INK, linewidth=0.7, linestyle=(0, (2, 2)))
        name_groups(axis, groups)
        axis.set_ylim(0, 100)
        axis.set_ylabel("sentences won (%)")
        legend_above(canvas, axis)
    return finish(
        canvas, "winners", "Which direction won. The dashed line is at one half."
    )


def section(given: Inputs) -> Section:
    """Tell who won each sentence, where records of both directions were given.

    The figure, and its numbers, are about the first system that has records.
    """
    if not given.winners:
        return Section("winners", TITLE, missing=MISSING)
    won = Column("L2R won", "%", ".1f")
    outcomes = [[name, share(winners)] for name, winners in given.winners.items()]
    whole = Table("winners", "Sentences won.", [Column("system"), won], outcomes)
    first, winners = next(iter(given.winners.items()))
    groups = groups_of(given)
    shares = [share(group.of(winners)) for group in groups]
    columns = [Column("source length (tokens)"), Column("sentences", "", ",d"), won]
    rows: list[list[Any]] = [
        [group.name, len(group.places), own] for group, own in zip(groups, shares)
    ]
    # the figure has these numbers
    by_length = Table("winners-by-length", "", columns, rows, shown=False)
    about = f"The figure is about {first}."
    return Section(
        "winners",
        TITLE,
        "Both directions finish hypotheses of their own; the search answers with the "
        "better score, whichever direction wrote it.",
        [whole, by_length],
        [drawn(groups, shares)],
        [about] * (len(given.winners) > 1),
    )
