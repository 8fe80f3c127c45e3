"""Section 3 (Figure 9): sentences grouped by the length of their source."""

from __future__ import annotations

from bisect import bisect_left
from itertools import chain
from statistics import fmean
from typing import Any, NamedTuple

from sbnmt_plugin.tools.report.content import Column, Figure, Section, Table
from sbnmt_plugin.tools.report.drawing import draw_lines, finish, legend_above, panels
from sbnmt_plugin.tools.report.inputs import Inputs
from sbnmt_plugin.tools.scoring import tokenised_bleu

WIDTHS = (1, 2, 5, 10, 20, 50, 100)
MOST_BUCKETS = 8
FEWEST = 20  # sentences, below which corpus BLEU says little
TITLE = "Long sentences"
# system -> BLEU and mean length of each group
Series = dict[str, list[tuple[float, float]]]


class Bucket(NamedTuple):
    """Sentences, by their places, whose sources are of about the same length."""

    name: str
    places: list[int]

    def of(self, lines: list[Any]) -> list[Any]:
        """Return the lines of these sentences."""
        return [lines[place] for place in self.places]


def edges(lengths: list[int]) -> list[int]:
    """Return upper ends of at most MOST_BUCKETS, equally wide, of a round width.

    The tail, in which few sentences are, is left to one open bucket; groups of very
    short sentences that are as few are joined with the next.
    """
    ordered = sorted(lengths)
    # the last FEWEST sentences fall into the open bucket
    top = ordered[max(0, len(ordered) - 1 - FEWEST)]
    for width in WIDTHS:
        first = (max(ordered[0], 1) - 1) // width * width + width
        uppers = list(range(first, top + 1, width)) or [first]
        if len(uppers) < MOST_BUCKETS:
            break
    while len(uppers) > 1 and sum(n <= uppers[0] for n in lengths) < FEWEST:
        uppers = uppers[1:]
    return uppers


def buckets(lengths: list[int], uppers: list[int]) -> list[Bucket]:
    """Group sentences; empty buckets are left out.

    Args:
        lengths: tokens of each source.
        uppers: upper ends, ascending; a last bucket without an end follows.
    """
    groups: dict[int, list[int]] = {}
    for place, length in enumerate(lengths):
        groups.setdefault(bisect_left(uppers, length), []).append(place)
    made = []
    for k, places in sorted(groups.items()):
        low = uppers[k - 1] + 1 if k else min(lengths)
        if k == len(uppers):
            name = f"≥ {low}"
        else:
            name = f"{low}–{uppers[k]}" if low < uppers[k] else f"{low}"
        made.append(Bucket(name, places))
    return made


def drawn(groups: list[Bucket], found: Series, gold: list[float]) -> Figure:
    """Draw BLEU and mean output length by source length."""
    places = range(len(groups))
    labels = [f"{group.name}\n{len(group.places):,}" for group in groups]
    with panels(2, 3.1) as (canvas, axes):
        for k, (axis, title) in enumerate(zip(axes, ("BLEU", "mean output length"))):
            values = {
                name: (places, [pair[k] for pair in pairs])
                for name, pairs in found.items()
            }
            draw_lines(axis, values)
            axis.margins(x=0.06, y=0.1)
            axis.set_xlabel("source length (tokens); below, number of sentences")
            axis.set_xticks(places, labels, fontsize=7.5)
            axis.grid(axis="x", visible=False)
            axis.set_title(title)
        axes[1].plot(
            places, gold, color="#777777", linestyle=(0, (4, 2)), label="reference"
        )
        axes[0].set_ylabel("BLEU")
        axes[1].set_ylabel("tokens per sentence")
        legend_above(canvas, axes[1])
    caption = (
        "BLEU and average output length by length of the source (the paper's Figure "
        "9). BLEU axes do not start at 0."
    )
    return finish(canvas, "by-length", caption)


def section(given: Inputs) -> Section:
    """Measure BLEU and output length by source length."""
    counts = given.source_lengths()
    groups = buckets(counts, edges(counts))
    how = given.lowercase, given.tokenize

    def mean_length(texts: list[list[str]], group: Bucket) -> float:
        return fmean(len(x) for text in texts for x in given.tokens(group.of(text)))

    def measured(text: list[str], group: Bucket) -> tuple[float, float]:
        golds = [group.of(gold) for gold in given.references]
        score = tokenised_bleu(group.of(text), golds, *how)["score"]
        return score, mean_length([text], group)

    found: Series = {
        name: [measured(text, group) for group in groups]
        for name, text in given.systems.items()
    }
    gold = [mean_length(given.references, group) for group in groups]
    columns = [Column("system")]
    for group in groups:
        columns.append(Column(group.name, "BLEU", ".2f", best=True))
        columns.append(Column(group.name, "tokens", ".1f"))
    rows: list[list[Any]] = [[name, *chain(*pairs)] for name, pairs in found.items()]
    rows.append(["reference", *chain(*((None, mean) for mean in gold))])
    few = min(len(group.places) for group in groups) < FEWEST
    note = f"Groups of fewer than {FEWEST} sentences say little about BLEU."
    return Section(
        "lengths",
        TITLE,
        "Corpus BLEU of each group of sentences, and how long the outputs are.",
        [Table("by-length", "BLEU and mean length by source length.", columns, rows)],
        [drawn(groups, found, gold)],
        [note] * few,
    )
