"""Section 7: training curves of each direction."""

from __future__ import annotations

from itertools import product
from typing import Any

from matplotlib import ticker

from sbnmt_plugin.symbols import NAMES
from sbnmt_plugin.tools.recipes.costs import read_train_log
from sbnmt_plugin.tools.report.content import Column, Figure, Section, Table
from sbnmt_plugin.tools.report.drawing import colours, finish, legend_above, panels
from sbnmt_plugin.tools.report.inputs import Inputs
from sbnmt_plugin.tools.text import read_lines

TITLE = "Training"
NO_LOG = (
    "No log of a training was given: --train-log NAME=FILE, written by "
    "fairseq-train with --log-format simple or json."
)
NO_LOSSES = (
    "The training logs have no losses per direction: they are not of criterion "
    "sb_label_smoothed_cross_entropy."
)
NOTE = (
    "Losses of gold text on both sides are far too good, as each stream sees "
    "through the other what it has to predict: trust BLEU."
)
# panel -> quantity, and kinds of lines, of which the first that has it tells it; what
# is read is logged with --sb-probe
LOSS, READ, BLEU = "training loss", "read of the other", "validation BLEU"
PANELS = {
    LOSS: ("nll_loss", ("train_inner", "train")),
    "validation loss": ("nll_loss", ("valid",)),
    READ: ("read_bits", ("train_inner",)),
    BLEU: ("bleu", ("valid",)),
}
# system and end of the quantity's name, "" for BLEU -> updates and values
Pane = dict[tuple[str, str], list[tuple[float, float]]]


def drawn(panes: dict[str, Pane], order: list[str]) -> Figure:
    """Draw training curves: a colour a system, R2L dashed."""
    with panels(len(panes), 3.2) as (canvas, axes):
        looks = colours(order)
        for axis, (title, curves) in zip(axes, panes.items()):
            for (system, end), curve in curves.items():
                colour, marker = looks[system]
                axis.plot(
                    *zip(*curve),
                    marker=marker if title == BLEU else "",
                    markersize=3,
                    color=colour,
                    linestyle=(0, (3, 1.5)) if end == "_r2l" else "-",
                    label=f"{system}, {end[1:].upper()}",
                    linewidth=1.3,
                )
            axis.set_title(title)
            axis.set_xlabel("updates")
            if title.endswith("loss"):
                axis.set_ylim(bottom=0)
            axis.set_xlim(left=0)
            axis.xaxis.set_major_locator(ticker.MaxNLocator(4, integer=True))
            axis.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
        # the first steps would dwarf the rest
        later = (
            y for curve in panes[LOSS].values() for _, y in curve[len(curve) // 10 :]
        )
        axes[0].set_ylim(0, max(later) * 1.1)
        axes[0].set_ylabel("bits per token, without smoothing")
        legend_above(canvas, axes[0])
    caption = "Loss per direction (R2L dashed)"
    if READ in panes:
        caption += ", bits a token that each reads of the other"
    if BLEU in panes:
        caption += ", and BLEU of validation by generation"
    return finish(canvas, "training", f"{caption}.")


def section(given: Inputs) -> Section:
    """Show the losses of each direction, where training logs were given."""
    logs = {
        name: read_train_log(read_lines(path))
        for name, path in given.train_logs.items()
    }
    panes: dict[str, Pane] = {}
    rows: list[list[Any]] = []
    for title, (start, kinds) in PANELS.items():
        ends = [""] if title == BLEU else [f"_{name}" for name in NAMES]
        for name, end in product(logs, ends):
            told = [kind for kind in kinds if (kind, start + end) in logs[name]]
            if told:
                curve = sorted(logs[name][told[0], start + end].items())
                panes.setdefault(title, {})[name, end] = curve
                rows += [[name, told[0], start + end, int(x), y] for x, y in curve]
    if LOSS not in panes:
        return Section("training", TITLE, missing=NO_LOSSES if rows else NO_LOG)
    columns = [Column("system"), Column("split"), Column("quantity")]
    columns += [Column("updates", "", ",d"), Column("value", "", ".3f")]
    return Section(
        "training",
        TITLE,
        "What each direction loses in training and validation.",
        [Table("training", "", columns, rows, shown=False)],
        [drawn(panes, [name for name in given.systems if name in logs])],
        [NOTE],
    )
