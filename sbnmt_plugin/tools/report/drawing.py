"""Look of all figures: palette, fonts, panels, legends, files."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from sbnmt_plugin.tools.report.content import Figure

# Okabe and Ito's palette: told apart by colour-blind readers, and in grey by lightness
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK = "#E69F00", "#56B4E9", "#000000"
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
STYLE = Path(__file__).with_name("figures.mplstyle")
WIDTH = 7.4  # inches
LEGEND_LETTERS = 110  # that fit into this width
# labels of what has none; a system's name may begin with _, too
UNNAMED = re.compile(r"_child\d+|_container\d+|_nolegend_")
WANTED_FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans Arabic", "Noto Sans")


def colours(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return colour and marker of each system, in the order given.

    Where a colour comes back it has another marker.
    """
    return {
        name: (
            PALETTE[i % len(PALETTE)],
            MARKERS[(i + i // len(PALETTE)) % len(MARKERS)],
        )
        for i, name in enumerate(names)
    }


def finish(canvas: Canvas, name: str, caption: str) -> Figure:
    """Render as SVG; the same numbers give the same bytes."""
    out = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "sbnmt"}):
        canvas.savefig(out, format="svg", metadata={"Date": None})
    return Figure(name, caption, out.getvalue())


@contextlib.contextmanager
def panels(count: int, height: float) -> Iterator[tuple[Canvas, list[Axes]]]:
    """Open a figure with panels side by side and room for a legend above."""
    known = set(font_manager.get_font_names())
    fonts = [name for name in WANTED_FONTS if name in known]
    with matplotlib.rc_context({"font.family": fonts}, fname=STYLE):
        canvas = Canvas(figsize=(WIDTH, height), layout="constrained")
        engine: Any = canvas.get_layout_engine()
        engine.set(wspace=0.06)
        axes = canvas.subplots(1, count, squeeze=False)[0]
        yield canvas, list(axes)


def draw_lines(axis: Axes, lines: dict[str, tuple[Any, Any]]) -> None:
    """Draw the x and y of each system, in its colour and with its marker."""
    looks = colours(list(lines))
    for name, (x, y) in lines.items():
        colour, marker = looks[name]
        axis.plot(x, y, marker=marker, color=colour, label=name)


def legend_above(canvas: Canvas, axis: Axes) -> None:
    """Draw one legend for all panels, above them."""
    drawn: list[Any] = [*axis.lines, *axis.containers]
    shown = {each.get_label(): each for each in drawn}
    shown = {name: shown[name] for name in shown if not UNNAMED.fullmatch(name)}
    if len(shown) > 1:
        rows = -(-sum(len(label) + 6 for label in shown) // LEGEND_LETTERS)
        look = {"ncols": -(-len(shown) // rows), "handlelength": 1.8}
        canvas.legend(shown.values(), [*shown], loc="outside upper left", **look)
