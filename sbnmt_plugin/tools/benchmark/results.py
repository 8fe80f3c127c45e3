"""What was measured: JSON, Markdown tables, plots."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from sbnmt_plugin import quiet
from sbnmt_plugin.tools.benchmark.choices import SLOW
from sbnmt_plugin.tools.results.table import aligned

Row = dict[str, Any]
HEADLINE = {"batch": 50, "length": 25, "beam": 4}
AXES = ("length", "beam")
FAILED = "failed"  # of a row: why it has no numbers


def is_headline(row: Row) -> bool:
    """The case of the first table: batch 50, beam 4, 25 tokens."""
    return all(row.get(name) == value for name, value in HEADLINE.items())


def ratios(ours: list[float], theirs: list[float]) -> Row:
    """How many times as fast, round by round: median and extremes."""
    found = [b / a for a, b in zip(ours, theirs)]
    return {
        "ratio": median(found),
        "ratio, least": min(found),
        "ratio, most": max(found),
    }


def compare_with_floor(result: Row) -> None:
    """Add to the rows of the floor's case which share of their time it is."""
    floors = {r["dtype"]: r["seconds"] for r in measured(result.get("floor", []))}
    for row in filter(is_headline, measured(result.get("decoding", []))):
        if row["dtype"] in floors and row["system"] not in SLOW:
            row["of the floor"] = floors[row["dtype"]] / median(row["seconds"])


def measured(rows: list[Row]) -> list[Row]:
    """The rows that did not fail."""
    return [row for row in rows if FAILED not in row]


def times(row: Row, name: str) -> str:
    """A ratio, if there is one."""
    return optional(row, name, ".2f") and f"{row[name]:.2f}×"


def spread(row: Row) -> str:
    """A ratio with its extremes."""
    ends = optional(row, "ratio, least", ".2f"), optional(row, "ratio, most", ".2f")
    return times(row, "ratio") and f"{times(row, 'ratio')} ({'–'.join(ends)})"


def rendered(rows: list[Row], columns: dict[str, Callable[[Row], str]]) -> list[str]:
    """A Markdown table of some columns; those that are empty are left out."""
    cells = {name: [cell(row) for row in rows] for name, cell in columns.items()}
    kept = {name: column for name, column in cells.items() if any(column)}
    return aligned(list(kept), [list(line) for line in zip(*kept.values())])


def optional(row: Row, name: str, form: str) -> str:
    return "" if row.get(name) is None else format(row[name], form)


def billions(row: Row, name: str, form: str) -> str:
    return "" if row.get(name) is None else format(row[name] / 1e9, form)


def decoding_table(rows: list[Row]) -> list[str]:
    """A line per case and system."""
    return rendered(
        rows,
        {
            "system": lambda r: r["system"],
            "numbers": lambda r: r["dtype"],
            "batch": lambda r: (
                optional(r, "batch", "d") if r["max tokens"] is None else "max-tokens"
            ),
            "length": lambda r: optional(r, "length", "d") or "test set",
            "beam": lambda r: str(r["beam"]),
            "steps": lambda r: optional(r, "steps", "d"),
            "operators a step": lambda r: optional(r, "operators", ".0f"),
            "sentences/s": lambda r: optional(r, "sentences/s", ".1f"),
            "tokens/s": lambda r: optional(r, "tokens/s", ",.0f"),
            "ms a sentence, half ≤": lambda r: optional(r, "ms, half", ".1f"),
            "95 % ≤": lambda r: optional(r, "ms, 95 %", ".1f"),
            "speed, × fairseq": spread,
            "GiB": lambda r: optional(r, "memory", ".2f"),
            "memory, × fairseq": lambda r: times(r, "memory ratio"),
            "of the floor": lambda r: optional(r, "of the floor", ".0%"),
            "tok. BLEU": lambda r: optional(r, "BLEU", ".2f"),
            "same texts": lambda r: optional(r, "as in float32", ".1%"),
            FAILED: lambda r: r.get(FAILED, ""),
        },
    )


def training_table(rows: list[Row]) -> list[str]:
    """A line per number of processes and system."""
    return rendered(
        rows,
        {
            "system": lambda r: r["system"],
            "processes": lambda r: str(r["processes"]),
            "sentences": lambda r: str(r["sentences"]),
            "labels": lambda r: optional(r, "labels", ","),
            "sentences/s": lambda r: optional(r, "sentences/s", ".2f"),
            "labels/s": lambda r: optional(r, "tokens/s", ",.0f"),
            "speed, × fairseq": spread,
            "forward, s": lambda r: optional(r, "forward", ".2f"),
            "backward, s": lambda r: optional(r, "backward", ".2f"),
            "optimiser, s": lambda r: optional(r, "optimiser", ".2f"),
            "GiB": lambda r: optional(r, "memory", ".2f"),
            "memory, × fairseq": lambda r: times(r, "memory ratio"),
            FAILED: lambda r: r.get(FAILED, ""),
        },
    )


def floor_table(rows: list[Row]) -> list[str]:
    """What the bare products take."""
    return rendered(
        rows,
        {
            "numbers": lambda r: r["dtype"],
            "GFLOP": lambda r: billions(r, "operations", ",.0f"),
            "GB": lambda r: billions(r, "bytes", ",.1f"),
            "products alone, s": lambda r: optional(r, "seconds", ".2f"),
            "GFLOP/s": lambda r: billions(r, "operations/s", ",.0f"),
            FAILED: lambda r: r.get(FAILED, ""),
        },
    )


def markdown(result: Row) -> list[str]:
    """All tables, and how they were made."""
    lines = [
        f"`{result['command']}`",
        "",
        f"commit {result['commit']}, {result['date']}, {result['machine']}, "
        f"{result['versions']}; {result['spec']}",
    ]
    cases = result.get("decoding", [])
    headline = [row for row in cases if is_headline(row)]
    others = [row for row in cases if not is_headline(row)]
    for title, rows, render in (
        ("Decoding", headline, decoding_table),
        ("The floor of that", result.get("floor", []), floor_table),
        ("Decoding, other cases", others, decoding_table),
        ("Training", result.get("training", []), training_table),
    ):
        if rows:
            lines += ["", f"## {title}", "", *render(rows)]
    return lines


def cost_figure(rows: list[Row]) -> Any:
    """Seconds of a batch against length and against beam; None with one point each."""
    panels = {}
    for axis in AXES:
        (other,) = (name for name in AXES if name != axis)
        along = [
            row
            for row in measured(rows)
            if row["batch"] == HEADLINE["batch"]
            and row["max tokens"] is None
            and row[other] == HEADLINE[other]
            and row[axis] is not None
        ]
        if len({row[axis] for row in along}) > 1:
            panels[axis] = along
    if not panels:
        return None
    import matplotlib

    quiet.only_warnings("matplotlib")
    from sbnmt_plugin.tools.report.drawing import (
        canvas_of,
        colours,
        finish,
        legend_above,
        style,
    )

    labels = {"length": "tokens of a sentence", "beam": "beam"}
    with matplotlib.rc_context(style()):
        canvas, axes = canvas_of(len(panels), 3.0)
        names = list(
            dict.fromkeys(name_of(row) for along in panels.values() for row in along)
        )
        looks = colours(names)
        for panel, (axis, along) in zip(axes, panels.items()):
            for name in names:
                own = [row for row in along if name_of(row) == name]
                own.sort(key=lambda row: row[axis])
                colour, marker = looks[name]
                panel.plot(
                    [row[axis] for row in own],
                    [min(row["seconds"]) for row in own],
                    marker=marker,
                    color=colour,
                    label=name,
                )
            panel.set_xlabel(labels[axis])
            panel.set_xticks(sorted({row[axis] for row in along}))
            panel.set_ylabel("seconds a batch")
            panel.set_ylim(bottom=0)
        legend_above(canvas, axes[0])
        caption = (
            "Seconds that a batch of 50 sentences takes, the fastest of the rounds, "
            "against its length (beam 4) and against the beam (25 tokens)."
        )
        return finish(canvas, "benchmark", caption)


def name_of(row: Row) -> str:
    """System and type of its numbers, for a legend."""
    return f"{row['system']}, {row['dtype']}"
