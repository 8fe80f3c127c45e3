"""Section 4 (Figure 8): BLEU against beam size."""

from __future__ import annotations

from matplotlib import ticker

from sbnmt_plugin.tools.report.content import Column, Figure, Section, Table
from sbnmt_plugin.tools.report.drawing import draw_lines, finish, legend_above, panels
from sbnmt_plugin.tools.report.inputs import Inputs

TITLE = "Beam size"
MISSING = (
    "No sweep was given. sbnmt sweep-beam decodes what is missing; give "
    "its result as --beam-sweep FILE."
)


def beam_sweep(
    runs: dict[str, tuple[list[int], list[float]]], score: str = "BLEU"
) -> Figure:
    """Draw BLEU, or another score, against beam size.

    Args:
        runs: system -> beams and scores.
    """
    with panels(1, 3.0) as (canvas, (axis,)):
        draw_lines(axis, runs)
        axis.set_xscale("log", base=2)
        shown = sorted({beam for beams, _ in runs.values() for beam in beams})
        axis.set_xticks(shown, [str(beam) for beam in shown])
        axis.xaxis.set_minor_locator(ticker.NullLocator())
        axis.margins(x=0.05, y=0.12)
        axis.set_xlabel("beam size k (hypotheses per sentence, over both directions)")
        axis.set_ylabel(score)
        legend_above(canvas, axis)
    caption = (
        f"{score} against beam size (the paper's Figure 8). SB-NMT needs at least one "
        "hypothesis a direction, so its greedy search has k = 2. The vertical axis "
        "does not start at 0."
    )
    return finish(canvas, "beam-sweep", caption)


def section(given: Inputs) -> Section:
    """Show the runs of a sweep, where one was given."""
    if not given.sweep:
        return Section("beams", TITLE, missing=MISSING)
    runs = sorted(given.sweep, key=lambda run: run["beam"])
    found: dict[str, dict[int, float]] = {run["system"]: {} for run in given.sweep}
    for run in runs:
        found[run["system"]][run["beam"]] = run["BLEU"]
    table = Table(
        "beam-sweep",
        "BLEU by beam size.",
        [Column("beam size k", "", "d"), *(Column(x, "BLEU", ".2f") for x in found)],
        [
            [beam, *(scores.get(beam) for scores in found.values())]
            for beam in dict.fromkeys(run["beam"] for run in runs)
        ],
        sorted({run["signature"] for run in runs}),
    )
    series = {name: ([*scores], [*scores.values()]) for name, scores in found.items()}
    return Section(
        "beams",
        TITLE,
        "Conventional search loses quality with wide beams; the paper reports that "
        "SB-NMT does not.",
        [table],
        [beam_sweep(series)],
    )
