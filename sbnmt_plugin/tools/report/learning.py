"""Curves of a recipe's rows: bits read of the other direction, and BLEU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.stages import same_training, training_stages
from sbnmt_plugin.tools.report.content import Figure
from sbnmt_plugin.tools.report.drawing import colours, count_updates, finish, panels
from sbnmt_plugin.tools.report.logs import Curve, read_train_log
from sbnmt_plugin.tools.text import read_lines

BITS, BLEU = "bits read a token", "validation BLEU"
Curves = dict[str, dict[str, dict[str, Curve]]]  # title -> seed -> quantity -> curve


def row_curves(logs: Path, settings: dict[str, Any], row: Row) -> dict[str, Curve]:
    """Read each quantity from a row's logs: updates, of all stages, and values.

    Bits read are the mean of both directions', where a training was probed
    (``--sb-probe``).
    """
    found: dict[str, Curve] = {BITS: ([], []), BLEU: ([], [])}
    start = before = 0.0
    for stage in training_stages(settings, same_training(settings, row)):
        path = logs / f"{stage.log}.log"
        log = read_train_log(read_lines(path) if path.exists() else [])
        left, right = (
            dict(zip(*log.series("train_inner", f"read_bits_{direction}")))
            for direction in ("l2r", "r2l")
        )
        start = start if stage.continues else before
        both = sorted(left.keys() & right.keys())
        found[BITS][0].extend(start + update for update in both)
        found[BITS][1].extend((left[update] + right[update]) / 2 for update in both)
        updates, scores = log.series("valid", "bleu")
        found[BLEU][0].extend(start + update for update in updates)
        found[BLEU][1].extend(scores)
        lines = [line for kind in log.points.values() for line in kind]
        before = start + max((line["num_updates"] for line in lines), default=0)
    return {quantity: curve for quantity, curve in found.items() if curve[0]}


def curves_of(
    work: Path, settings: dict[str, Any], rows: list[dict[str, Any]]
) -> Curves:
    """Return the curves of the rows that have been trained here."""
    found: Curves = {}
    for told in rows:
        row = Row.parse(told["name"])
        if row.rescored or not told.get("updates"):
            continue
        if curves := row_curves(work / "logs", settings, row):
            title = told["title"].removesuffix(f", seed {row.seed}")
            found.setdefault(title, {})[str(row.seed)] = curves
    return found


def learning(found: Curves) -> Figure:
    """Draw curves: a colour a row, a line a seed.

    Args:
        found: result of :func:`curves_of`, not empty.
    """
    held = [curves for seeds in found.values() for curves in seeds.values()]
    shown = [q for q in (BITS, BLEU) if any(q in curves for curves in held)]
    with panels(len(shown), 2.8 + 0.19 * len(found)) as (canvas, axes):
        looks = colours(list(found))
        for axis, quantity in zip(axes, shown):
            for title, seeds in found.items():
                colour, marker = looks[title]
                for curves in seeds.values():
                    if quantity in curves:
                        axis.plot(
                            *curves[quantity],
                            color=colour,
                            marker=marker,
                            markersize=3,
                            linewidth=1.1,
                        )
            axis.set_title(quantity)
            axis.set_xlabel("updates")
            count_updates(axis)
        lines = [axes[-1].plot([], [], color=x, marker=m)[0] for x, m in looks.values()]
        canvas.legend(lines, [*looks], loc="outside lower left", ncols=1)
    caption = (
        "Bits a token that a stream saves by reading its partner, second half of "
        "validation sentences with the same gold text in both streams, mean of both "
        "directions; BLEU of validation by generation. A line a seed."
    )
    return finish(canvas, "learning", caption)
