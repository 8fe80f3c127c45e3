"""Section 6: which direction won, and what the other one would have given."""

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
from sbnmt_plugin.tools.report.lengths import groups_of
from sbnmt_plugin.tools.report.records import NAMES, Race
from sbnmt_plugin.tools.report.scores import corpus_bleu
from sbnmt_plugin.tools.scoring import bleu

QUANTILES = 5
TITLE = "Which direction won"
MISSING = (
    "No system has records in which both directions win. Decode with --sb-records "
    "FILE.jsonl and give --records NAME=FILE.jsonl."
)
NOTE = (
    "The oracle takes the direction with the higher sentence BLEU: no rule that "
    "only chooses between the two can score much higher. A direction that never "
    "finished is replaced by the other."
)
Group = tuple[str, int, float]  # its name, number of sentences, L2R's share


def share(races: list[Race]) -> float:
    """Return the percentage of sentences that L2R won."""
    return 100 * sum(race.winner == "l2r" for race in races) / len(races)


def margin_groups(
    races: list[Race], count: int = QUANTILES
) -> list[tuple[float, float, list[int]]]:
    """Divide sentences into equal groups by margin, the closest races first.

    Returns:
        Smallest margin, largest margin and the sentences of each group.
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
    """Return the percentage of sentences whose two best texts are the same."""
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
    """Return the texts under each rule of choosing a direction.

    The oracle takes the direction with the higher sentence BLEU, L2R where equal: a
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


def outcomes(given: Inputs) -> Table:
    """Tabulate who won, and BLEU under each rule of choosing a direction."""
    golds, tokenize = given.references, given.tokenize
    if given.tokenised is not None:  # records hold tokens
        golds, tokenize = given.tokenised[1], "none"
    rows: list[list[Any]] = []
    for name, races in given.races.items():
        both = [race.both for race in races]
        won = share(races)
        row = [name, won, 100 - won, agreement(races)]
        row.append(100 * sum(both) / len(both))
        picked = choices(races, golds, given.lowercase, tokenize)
        row += [
            corpus_bleu(text, golds, given.lowercase, tokenize)
            for text in picked.values()
        ]
        rows.append(row)
    rules = ("the search's choice", "always L2R", "always R2L", "better one (oracle)")
    return Table(
        "winners",
        "Sentences won, and BLEU under each rule of choosing a direction.",
        [
            Column("system"),
            Column("L2R won", "%", ".1f"),
            Column("R2L won", "%", ".1f"),
            Column("same text", "%", ".1f"),
            Column("both finished", "%", ".1f"),
            *(Column(rule, "BLEU", ".2f") for rule in rules),
        ],
        rows,
        [f"BLEU of the records' texts, tok:{tokenize}"],
        text="“Same text”: both directions' best outputs agree.",
    )


def drawn(by_length: list[Group], by_margin: list[Group]) -> Figure:
    """Draw who won, by source length and by margin: stacked bars to 100 %."""
    with panels(2, 2.9, sharey=True) as (canvas, axes):
        parts = (by_length, by_margin)
        labels = (
            "source length (tokens); below, number of sentences",
            "margin between the directions (difference of log scores)",
        )
        for axis, groups, label in zip(axes, parts, labels):
            places = range(len(groups))
            left = [share for _, _, share in groups]
            right = [100 - share for share in left]
            (name, colour), (other, colour2) = DIRECTIONS.values()
            axis.bar(places, left, 0.8, color=colour, label=name)
            axis.bar(
                places,
                right,
                0.8,
                bottom=left,
                color=colour2,
                label=other,
                hatch="//",
                edgecolor="white",
                linewidth=0,
            )
            for x, share in enumerate(left):
                if share >= 8:
                    axis.text(
                        x,
                        share / 2,
                        f"{share:.0f}",
                        ha="center",
                        va="center",
                        color="white",
                        fontsize=7.5,
                        fontweight="bold",
                    )
            axis.axhline(50, color=INK, linewidth=0.7, linestyle=(0, (2, 2)))
            texts = [f"{name}\n{count:,}" for name, count, _ in groups]
            axis.set_xticks(places, texts, fontsize=7.5)
            axis.set_xlabel(label)
            axis.grid(axis="x", visible=False)
            axis.set_ylim(0, 100)
        axes[0].set_title("by source length")
        axes[1].set_title("by margin, from close to clear")
        axes[0].set_ylabel("sentences won (%)")
        legend_above(canvas, axes[0])
    return finish(
        canvas, "winners", "Which direction won. The dashed line is at one half."
    )


def section(given: Inputs, uppers: list[int] | None) -> Section:
    """Tell who won each sentence, where records of both directions were given.

    The figure, and its numbers, are about the first system that has records.
    """
    if not given.races:
        return Section("winners", TITLE, missing=MISSING)
    first, races = next(iter(given.races.items()))

    def group(name: str, places: Any) -> Group:
        return name, len(places), share([races[i] for i in places])

    by_length = [group(x.name, x.places) for x in groups_of(given, uppers)]
    by_margin = [
        group(f"{low:.2f}–\n{high:.2f}", places)
        for low, high, places in margin_groups(races)
    ]
    tables = [outcomes(given)]
    for kind, heading, groups in (
        ("length", "source length (tokens)", by_length),
        ("margin", "margin of log scores", by_margin),
    ):
        columns = [Column(heading), Column("sentences", "", ",d")]
        columns.append(Column("L2R won", "%", ".1f"))
        rows = [[label.replace("\n", ""), *rest] for label, *rest in groups]
        # the figure has these numbers
        tables.append(Table(f"winners-by-{kind}", "", columns, rows, shown=False))
    about = f" The figure is about {first}." if len(given.races) > 1 else ""
    return Section(
        "winners",
        TITLE,
        "Both directions finish hypotheses of their own; the search answers with the "
        "better score, whichever direction wrote it.",
        tables,
        [drawn(by_length, by_margin)],
        [NOTE + about],
    )
