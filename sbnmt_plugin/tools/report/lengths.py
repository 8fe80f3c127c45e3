"""Section 3 (Figure 9): sentences grouped by the length of their source."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from sbnmt_plugin.tools.report.content import Column, Figure, Section, Table
from sbnmt_plugin.tools.report.drawing import draw_lines, finish, legend_above, panels
from sbnmt_plugin.tools.report.inputs import Inputs
from sbnmt_plugin.tools.report.scores import corpus_bleu

WIDTHS = (1, 2, 5, 10, 20, 50, 100)
MOST_BUCKETS = 8
FEWEST = 20  # sentences, below which corpus BLEU says little
Series = dict[str, list[float]]  # system -> a value for each group


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


def edges(lengths: list[int]) -> list[int]:
    """Return upper ends of at most MOST_BUCKETS, equally wide, of a round width.

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


def groups_of(given: Inputs, uppers: list[int] | None) -> list[Bucket]:
    """Group the sentences of a report, by given upper ends or by :func:`edges`."""
    counts = [len(tokens) for tokens in given.source_tokens]
    return buckets(counts, uppers or edges(counts))


def mean_length(outputs: list[list[str]], places: tuple[int, ...]) -> float:
    """Return the average number of tokens of these outputs."""
    return sum(len(outputs[i]) for i in places) / len(places)


def drawn(
    groups: list[Bucket], bleu: Series, length: Series, gold: list[float]
) -> Figure:
    """Draw BLEU and mean output length by source length."""
    places = range(len(groups))
    with panels(2, 3.1) as (canvas, axes):
        for axis, values in zip(axes, (bleu, length)):
            draw_lines(axis, {name: (places, y) for name, y in values.items()})
            axis.margins(x=0.06, y=0.1)
            axis.set_xlabel("source length (tokens); below, number of sentences")
            labels = [f"{group.name}\n{len(group.places):,}" for group in groups]
            axis.set_xticks(places, labels, fontsize=7.5)
            axis.grid(axis="x", visible=False)
        axes[1].plot(
            places, gold, color="#777777", linestyle=(0, (4, 2)), label="reference"
        )
        axes[0].set_title("BLEU")
        axes[0].set_ylabel("BLEU")
        axes[1].set_title("mean output length")
        axes[1].set_ylabel("tokens per sentence")
        legend_above(canvas, axes[1])
    caption = (
        "BLEU and average output length by length of the source (the paper's Figure "
        "9). BLEU axes do not start at 0."
    )
    return finish(canvas, "by-length", caption)


def section(given: Inputs, uppers: list[int] | None) -> Section:
    """Measure BLEU and output length by source length."""
    groups = groups_of(given, uppers)
    bleu: Series = {name: [] for name in given.systems}
    length: Series = {name: [] for name in given.systems}
    gold = []
    columns = [Column("system")]
    for group in groups:
        picked = [[text[i] for i in group.places] for text in given.references]
        means = [mean_length(one, group.places) for one in given.reference_tokens]
        gold.append(sum(means) / len(means))
        for name, text in given.systems.items():
            part = [text[i] for i in group.places]
            bleu[name].append(
                corpus_bleu(part, picked, given.lowercase, given.tokenize)
            )
            length[name].append(mean_length(given.system_tokens[name], group.places))
        columns += [
            Column(group.name, "BLEU", ".2f", "high"),
            Column(group.name, "tokens", ".1f"),
        ]
    rows: list[list[Any]] = [
        [name, *itertools.chain(*zip(bleu[name], length[name]))]
        for name in given.systems
    ]
    rows.append(["reference", *itertools.chain(*((None, mean) for mean in gold))])
    few = min(len(group.places) for group in groups) < FEWEST
    note = f"Groups of fewer than {FEWEST} sentences say little about BLEU."
    return Section(
        "lengths",
        "Long sentences",
        "Corpus BLEU of each group of sentences, and how long the outputs are.",
        [Table("by-length", "BLEU and mean length by source length.", columns, rows)],
        [drawn(groups, bleu, length, gold)],
        [note] * few,
    )
