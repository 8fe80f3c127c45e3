"""Scores of rows, and costs of their whole chains: the points of a plot."""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import mean
from typing import Any, NamedTuple

from sbnmt_plugin.tools.results.table import processors, without_seed

PRICES = ("minutes", "tokens")
Named = tuple[str, str]  # a table's label, and a system's name without its seed


def prices(rows: list[dict[str, Any]], against: str) -> tuple[str, list[float]]:
    """Return the unit, and what each row's chain costs."""
    if against == "tokens":
        return "million labels", [row["total tokens"] / 1e6 for row in rows]
    told = [seconds for row in rows for seconds in [processors(row)] if seconds]
    if rows and len(told) == len(rows):
        return "minutes of processors", [seconds / 60 for seconds in told]
    return "minutes", [row["total seconds"] / 60 for row in rows]


def points_of(
    rows: dict[Named, list[dict[str, Any]]], spent: list[float], metric: str
) -> dict[str, tuple[float, float]]:
    """Return price and score of each system, means where it has several seeds.

    Args:
        rows: a table's label and a system's name -> its seeds.
        spent: what the rows cost, in that order.
    """
    prices = iter(spent)
    titles = {each: without_seed(seeds[0])[1] for each, seeds in rows.items()}
    # by rows that are trained in the same way
    shared = Counter((label, titles[label, name]) for label, name in rows)
    found = {}
    for (label, name), seeds in rows.items():
        title = titles[label, name]
        title += f" ({name})" * (shared[label, title] > 1) + f", {label}" * bool(label)
        price = mean(next(prices) for _ in seeds)
        found[title] = price, mean(row[metric] for row in seeds)
    return found


class Chains(NamedTuple):
    """Systems of one or several tables.

    Attributes:
        points: title -> price and score, means where there are several seeds.
        unit: of the price.
        metric: name of the score, an error rate where the tables have one.
        less_is_better: whether it is one.
    """

    points: dict[str, tuple[float, float]]
    unit: str
    metric: str
    less_is_better: bool


def chains(
    tables: list[tuple[str, dict[str, Any]]],
    against: str | None = None,
    only: list[str] | None = None,
) -> Chains:
    """Return costs and scores of the systems of tables.

    Args:
        tables: each with its label, or "".
        against: one of PRICES; the first, if none is given.
        only: names of rows, seeds left out; all, if none is given.

    Raises:
        ValueError: tables without costs, tables that measure different things or,
            with one label, have a row in common, or a row that is not there.
    """
    against = against or PRICES[0]
    signatures = [table["signatures"] for _, table in tables]
    if any(each != signatures[0] for each in signatures):
        raise ValueError("--plot draws tables of one score: their signatures differ")
    rates = "WER" in signatures[0]
    metric = "WER" if rates else "tokenised BLEU"
    told = "total tokens" if against == "tokens" else "total seconds"
    rows: dict[Named, list[dict[str, Any]]] = {}
    for label, table in tables:
        costly = [row for row in table["rows"] if row.get(told)]
        if not costly:
            raise ValueError(
                f"--plot needs what the rows cost in {against}, which only the "
                f"recipe's driver measures (sbnmt recipe), but the table of "
                f"{table['command']!r} does not tell it"
            )
        partly = {without_seed(row)[0] for row in table["rows"] if not row.get(told)}
        own: dict[Named, list[dict[str, Any]]] = defaultdict(list)
        for row in costly:
            name, _ = without_seed(row)
            if not only or name in only:
                own[label, name].append(row)
        if told_in_part := sorted(name for _, name in own if name in partly):
            raise ValueError(
                f"--plot draws the mean of all seeds, but the table of "
                f"{table['command']!r} does not tell what each seed of "
                f"{', '.join(told_in_part)} cost: leave the row out by --only"
            )
        twice = sorted(name for _, name in rows.keys() & own.keys())
        if twice:
            raise ValueError(
                f"--plot draws each row once: {', '.join(twice)} in several of the "
                "tables; --only says which rows to draw, LABEL=TABLE tells them apart"
            )
        rows |= own
    missing = set(only or ()) - {name for _, name in rows}
    if missing:
        raise ValueError(
            f"--only must name rows whose costs are told, seeds left out, but has "
            f"{', '.join(sorted(missing))}"
        )
    unit, spent = prices([row for seeds in rows.values() for row in seeds], against)
    points = points_of(rows, spent, metric)
    return Chains(points, unit, "WER, %" if rates else metric, rates)
