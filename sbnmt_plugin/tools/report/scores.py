"""Section 1: corpus scores with signatures, intervals and paired bootstrap tests."""

from __future__ import annotations

from typing import Any

from sacrebleu.metrics import CHRF

from sbnmt_plugin.tools.report.content import Column, Figure, Section, Table
from sbnmt_plugin.tools.report.drawing import colours, finish, panels
from sbnmt_plugin.tools.report.inputs import Inputs
from sbnmt_plugin.tools.results.bootstrap import SAMPLES, bootstrap, signature
from sbnmt_plugin.tools.scoring import bleu

TITLE = "Scores"


def intervals(values: dict[str, tuple[float, float]]) -> Figure:
    """Draw a dot and its 95 % interval for each system, from top to bottom."""
    with panels(1, 0.75 + 0.3 * len(values)) as (canvas, (axis,)):
        looks = colours(list(values))
        for y, (name, (mean, interval)) in enumerate(values.items()):
            colour, marker = looks[name]
            axis.errorbar(
                mean, y, xerr=interval, fmt=marker, color=colour, capsize=2.5, lw=1.4
            )
            axis.annotate(
                f"{mean:.1f}",
                (mean, y),
                xytext=(0, 5),
                textcoords="offset points",
                ha="center",
                fontsize=7.5,
            )
        axis.set_yticks(range(len(values)), list(values))
        axis.set_ylim(len(values) - 0.4, -0.7)
        axis.grid(axis="y", visible=False)
        axis.set_xlabel("BLEU, mean of the resamplings and 95 % interval")
    caption = (
        "BLEU of each system with its 95 % bootstrap interval. Overlapping "
        "intervals do not mean “no difference”: the paired test below compares "
        "sentence by sentence. The axis does not start at 0."
    )
    return finish(canvas, "scores", caption)


def section(given: Inputs) -> Section:
    """Score every system, and test each against the first."""
    baseline = next(iter(given.systems))
    metrics = {
        "BLEU": bleu(given.tokenize, force=True, lowercase=given.lowercase),
        "chrF": CHRF(lowercase=given.lowercase),
    }
    rows: list[list[Any]] = [[name] for name in given.systems]
    columns, notes, drawn = [Column("system")], [], {}
    for key, metric in metrics.items():
        columns.append(Column(key, "", ".2f", best=True))
        columns.append(Column(f"± {key}", "95 %", ".2f"))
        columns.append(Column(f"p, {key}", "", ".4f"))
        for row, (name, text) in zip(rows, given.systems.items()):
            rival = given.systems[baseline]
            found = bootstrap([text], [rival], given.references, metric)
            row += [found.score, found.interval, None if name == baseline else found.p]
            if key == "BLEU":
                drawn[name] = found.mean, found.interval
        notes.append(f"{key}: {signature(metric)}")
    about = (
        f"Higher is better, and the best is bold. Intervals and p are of {SAMPLES:,} "
        f"resamplings of the {len(given.source):,} sentences. p is the probability of "
        f"a difference from {baseline} as large as the observed one if both systems "
        "were equally good; below 0.05 is commonly called significant."
    )
    table = Table(
        *("scores", "Scores on the whole test set.", columns, rows, notes),
        text=about,
    )
    return Section(
        "scores",
        TITLE,
        f"Systems: {len(given.systems)}; sentences: {len(given.source):,}; references: "
        f"{len(given.references)}; "
        f"{'case ignored' if given.lowercase else 'case-sensitive'}.",
        [table],
        [intervals(drawn)],
    )
