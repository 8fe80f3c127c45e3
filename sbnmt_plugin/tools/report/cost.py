"""Scores against costs: a point a system, its score against the price of its chain."""

from __future__ import annotations

from sbnmt_plugin.tools.report.content import Figure
from sbnmt_plugin.tools.report.drawing import colours, finish, panels
from sbnmt_plugin.tools.results.cost_plot import Chains

Points = dict[str, tuple[float, float]]


def frontier(points: Points, less_is_better: bool) -> list[tuple[float, float]]:
    """Return the best score that each amount of time or labels buys, cheapest first.

    Args:
        points: price and score of each system.
    """
    sign = -1 if less_is_better else 1
    found: list[tuple[float, float]] = []
    for price, score in sorted(points.values(), key=lambda p: (p[0], -sign * p[1])):
        if not found or sign * score > sign * found[-1][1]:
            found.append((price, score))
    return found


def cost(found: Chains) -> Figure:
    """Draw scores against costs, and a line through the best for each price."""
    points = found.points
    with panels(1, 2.8 + 0.19 * len(points)) as (canvas, (axis,)):
        best = frontier(points, found.less_is_better)
        last = max(place for place, _ in points.values())
        axis.step(
            [place for place, _ in best] + [last],
            [score for _, score in best] + [best[-1][1]],
            where="post",
            color="#aaaaaa",
        )
        looks = colours(list(points))
        for name, (place, score) in points.items():
            colour, marker = looks[name]
            axis.plot(place, score, marker, color=colour)
        axis.set_xlim(left=0)
        axis.set_xlabel(f"{found.unit} of the whole chain")
        axis.set_ylabel(found.metric)
        names = ["best for its price", *points]
        canvas.legend([*axis.lines], names, loc="outside lower left")
    caption = (
        f"{found.metric} against the {found.unit} of the whole chain, teachers and "
        "pseudo targets included; what no cheaper system reaches lies on the line. The "
        "score's axis does not start at 0."
    )
    return finish(canvas, "cost", caption)
