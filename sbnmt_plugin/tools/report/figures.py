"""The figures, each a pure function of numbers: no text is laid over text."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib
from matplotlib import ticker
from matplotlib.axes import Axes

from sbnmt_plugin.tools.report.content import Figure
from sbnmt_plugin.tools.report.drawing import (
    BLUE,
    INK,
    VERMILLION,
    canvas_of,
    colours,
    finish,
    legend_above,
    style,
)

DIRECTIONS = {"l2r": ("L2R", BLUE), "r2l": ("R2L", VERMILLION)}
Series = dict[str, list[float]]


def intervals(values: dict[str, tuple[float, float]], metric: str) -> Figure:
    """A dot and its 95 % interval per system, best first to last as given."""
    with matplotlib.rc_context(style()):
        canvas, (axis,) = canvas_of(1, 0.75 + 0.3 * len(values))
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
        axis.set_xlabel(f"{metric}, mean of the resamplings and 95 % interval")
    caption = (
        f"{metric} of each system with its 95 % bootstrap interval. Overlapping "
        "intervals do not mean “no difference”: the paired test below compares "
        "sentence by sentence. The axis does not start at 0."
    )
    return finish(canvas, "scores", caption)


LABELLED_BARS = 5  # in a group; the numbers of more would overlap


def grouped_bars(axis: Axes, groups: Sequence[str], values: Series) -> None:
    """Bars from zero with their values, one colour a system, in legend order."""
    looks = colours(list(values))
    width = 0.84 / len(values)
    for place, (name, heights) in enumerate(values.items()):
        shift = (place - (len(values) - 1) / 2) * width
        bars = axis.bar(
            [x + shift for x in range(len(groups))],
            heights,
            width * 0.9,
            label=name,
            color=looks[name][0],
        )
        if len(values) <= LABELLED_BARS:
            axis.bar_label(bars, fmt="%.1f", fontsize=7, padding=1.5)
    axis.set_xticks(range(len(groups)), groups)
    axis.grid(axis="x", visible=False)


def accuracies(in_place: Series, any_order: Series, n: int) -> Figure:
    """Figure 7: accuracy of the first and the last n tokens."""
    with matplotlib.rc_context(style()):
        canvas, axes = canvas_of(2, 2.9, sharey=True)
        groups = (f"first {n} tokens", f"last {n} tokens")
        titles = ("in place", "in any order")
        for axis, values, title in zip(axes, (in_place, any_order), titles):
            grouped_bars(axis, groups, values)
            axis.set_title(title)
        top = max(max(heights) for heights in any_order.values())
        axes[0].set_ylim(0, max(top * 1.1, 1))
        axes[0].set_ylabel("accuracy (% of tokens)")
        legend_above(canvas, axes[0])
    caption = (
        f"Translation accuracy of the first and the last {n} tokens of each output "
        "(the paper's Table 1 and Figure 7)."
    )
    return finish(canvas, "accuracy", caption)


def by_length(
    names: list[str], counts: list[int], bleu: Series, length: Series, gold: list[float]
) -> Figure:
    """Figure 9: BLEU and mean output length by source length."""
    with matplotlib.rc_context(style()):
        canvas, axes = canvas_of(2, 3.1)
        looks = colours(list(bleu))
        places = range(len(names))
        for axis, values in zip(axes, (bleu, length)):
            for name, heights in values.items():
                colour, marker = looks[name]
                axis.plot(places, heights, marker=marker, color=colour, label=name)
            axis.margins(x=0.06, y=0.1)
            axis.set_xlabel("source length (tokens); below, number of sentences")
            labels = [f"{a}\n{b:,}" for a, b in zip(names, counts)]
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


def beam_sweep(
    runs: dict[str, tuple[list[int], list[float]]], score: str = "BLEU"
) -> Figure:
    """Figure 8: BLEU, or another score, against beam size."""
    with matplotlib.rc_context(style()):
        canvas, (axis,) = canvas_of(1, 3.0)
        looks = colours(list(runs))
        for name, (beams, values) in runs.items():
            colour, marker = looks[name]
            axis.plot(beams, values, marker=marker, color=colour, label=name)
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


def shares(
    by_length: list[tuple[str, int, float]], by_margin: list[tuple[str, int, float]]
) -> Figure:
    """Who won, by source length and by margin: stacked bars to 100 %."""
    with matplotlib.rc_context(style()):
        canvas, axes = canvas_of(2, 2.9, sharey=True)
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


def translation_errors(
    over: dict[str, list[float]], under: dict[str, list[float]]
) -> Figure:
    """Estimated over- and under-translation: bars of means, a dot a run."""
    with matplotlib.rc_context(style()):
        canvas, axes = canvas_of(2, 0.9 + 0.34 * len(over), sharey=True)
        looks = colours(list(over))
        titles = ("under-translated (estimate)", "over-translated (estimate)")
        for axis, values, title in zip(axes, (under, over), titles):
            for y, (name, runs) in enumerate(values.items()):
                mean = sum(runs) / len(runs)
                axis.barh(y, mean, 0.55, color=looks[name][0], alpha=0.85)
                axis.plot(runs, [y] * len(runs), "|", color=INK, markersize=9)
            axis.set_yticks(range(len(values)), list(values))
            axis.set_xlabel("source words (%)")
            axis.set_title(title)
            axis.grid(axis="y", visible=False)
            axis.set_xlim(left=0)
        axes[0].set_ylim(len(over) - 0.5, -0.5)
    caption = (
        "Source words that the aligner finds dropped or repeated (the paper's Table 8, "
        "by machine). A stroke is one run of the aligner, a bar their mean."
    )
    return finish(canvas, "translation-errors", caption)


Curve = tuple[list[float], list[float]]


def training(
    train: dict[tuple[str, str], Curve],
    valid: dict[tuple[str, str], Curve],
    read: dict[tuple[str, str], Curve],
    bleu: dict[str, Curve],
    order: list[str],
) -> Figure:
    """Training curves: a colour a system, R2L dashed."""
    with matplotlib.rc_context(style()):
        panels = [("training loss", train), ("validation loss", valid)]
        if read:
            panels.append(("read of the other direction", read))
        canvas, axes = canvas_of(len(panels) + bool(bleu), 3.2)
        looks = colours(order)
        for axis, (title, curves) in zip(axes, panels):
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
                last.plot(x, y, color=colour, marker=marker, label="_", markersize=3)
            last.set_title("validation BLEU")
            last.set_ylabel("BLEU")
            last.set_xlabel("updates")
        for axis in axes:
            axis.set_xlim(left=0)
            axis.xaxis.set_major_locator(ticker.MaxNLocator(4, integer=True))
            axis.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
        legend_above(canvas, axes[0])
    caption = "Loss per direction (R2L dashed)"
    if read:
        caption += ", bits a token that each reads of the other"
    caption += ", and BLEU of validation by generation." if bleu else "."
    return finish(canvas, "training", caption)
