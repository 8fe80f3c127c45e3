"""Section 9: training curves of each direction."""

from __future__ import annotations

from typing import Any

from sbnmt_plugin.tools.report.content import Column, Figure, Section, Table
from sbnmt_plugin.tools.report.drawing import (
    DIRECTIONS,
    colours,
    count_updates,
    finish,
    legend_above,
    panels,
)
from sbnmt_plugin.tools.report.inputs import Inputs
from sbnmt_plugin.tools.report.logs import Curve, read_train_log
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
PANELS = {
    "training loss": ("nll_loss", ("train_inner", "train")),
    "validation loss": ("nll_loss", ("valid",)),
    "read of the other direction": ("read_bits", ("train_inner",)),
}
Curves = dict[tuple[str, str], Curve]  # system and direction -> updates and values


def drawn(panes: dict[str, Curves], bleu: dict[str, Curve], order: list[str]) -> Figure:
    """Draw training curves: a colour a system, R2L dashed."""
    train, _, read = panes.values()
    shown = {
        title: curves for title, curves in panes.items() if curves is not read or read
    }
    with panels(len(shown) + bool(bleu), 3.2) as (canvas, axes):
        looks = colours(order)
        for axis, (title, curves) in zip(axes, shown.items()):
            for (system, direction), (x, y) in curves.items():
                axis.plot(
                    x,
                    y,
                    color=looks[system][0],
                    linestyle="-" if direction == "l2r" else (0, (3, 1.5)),
                    label=f"{system}, {DIRECTIONS[direction][0]}",
                    linewidth=1.3,
                )
            axis.set_title(title)
            axis.set_xlabel("updates")
            if curves is not read:  # who reads nothing may be below it
                axis.set_ylim(bottom=0)
        tops = [max(y[len(y) // 10 :]) for _, y in train.values()]
        axes[0].set_ylim(0, max(tops) * 1.1)  # the first steps would dwarf the rest
        axes[0].set_ylabel("bits per token, without smoothing")
        if bleu:
            last = axes[-1]
            for system, (x, y) in bleu.items():
                colour, marker = looks[system]
                last.plot(x, y, color=colour, marker=marker, markersize=3)
            last.set_title("validation BLEU")
            last.set_ylabel("BLEU")
            last.set_xlabel("updates")
        for axis in axes:
            count_updates(axis)
        legend_above(canvas, axes[0])
    caption = "Loss per direction (R2L dashed)"
    if read:
        caption += ", bits a token that each reads of the other"
    caption += ", and BLEU of validation by generation." if bleu else "."
    return finish(canvas, "training", caption)


def section(given: Inputs) -> Section:
    """Show the losses of each direction, where training logs were given."""
    logs = {
        name: read_train_log(read_lines(path))
        for name, path in given.train_logs.items()
    }
    logs = {name: log for name, log in logs.items() if any(log.points.values())}
    if not logs:
        return Section("training", TITLE, missing=NO_LOG)
    panes: dict[str, Curves] = {title: {} for title in PANELS}
    bleu: dict[str, Curve] = {}
    rows: list[list[Any]] = []
    for name, log in logs.items():
        asked: list[tuple[dict[Any, Curve], Any, str, tuple[str, ...]]] = [
            (panes[title], (name, direction), f"{quantity}_{direction}", kinds)
            for direction in DIRECTIONS
            for title, (quantity, kinds) in PANELS.items()
        ]
        for curves, key, quantity, kinds in [*asked, (bleu, name, "bleu", ("valid",))]:
            told = [(kind, log.series(kind, quantity)) for kind in kinds]
            for kind, (x, y) in [each for each in told if each[1][0]][:1]:
                curves[key] = (x, y)
                rows += [[name, kind, quantity, int(a), b] for a, b in zip(x, y)]
    if not panes["training loss"]:
        return Section("training", TITLE, missing=NO_LOSSES)
    columns = [Column("system"), Column("split"), Column("quantity")]
    columns += [Column("updates", "", ",d"), Column("value", "", ".3f")]
    return Section(
        "training",
        TITLE,
        "What each direction loses in training and validation.",
        [Table("training", "", columns, rows, shown=False)],
        [drawn(panes, bleu, [name for name in given.systems if name in logs])],
        [NOTE],
    )
