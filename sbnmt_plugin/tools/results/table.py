"""Results table of a recipe's run, in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sbnmt_plugin.tools.recipes.costs import GPU_MEMORY, LEFT_OUT, PEAK_MEMORY
from sbnmt_plugin.tools.results.bootstrap import SAMPLES

SCORES = ("tokenised BLEU", "BLEU", "chrF", "WER", "PER")
HEADINGS = {"WER": "WER, %", "PER": "PER, %", "tokenised BLEU": "tok. BLEU"}
PROBES = ("as trained", "λ = 0", "partners shuffled")
NONE = ""
TableRow = dict[str, Any]


def aligned(header: list[str], rows: list[list[str]]) -> list[str]:
    """Render a Markdown table that is readable in a terminal; numbers to the right."""
    # Markdown takes no : alone for a ruler
    widths = [max(2, *map(len, column)) for column in zip(header, *rows)]
    ruler = ["-" * widths[0], *("-" * (w - 1) + ":" for w in widths[1:])]

    def line(cells: list[str]) -> str:
        first, *others = zip(cells, widths)
        padded = [first[0].ljust(first[1]), *(c.rjust(w) for c, w in others)]
        return "| " + " | ".join(padded) + " |"

    return [line(header), line(ruler), *map(line, rows)]


def below(header: list[str], rows: list[list[str]]) -> list[str]:
    """Render a further table below an empty line; nothing where it has no rows."""
    return ["", *aligned(header, rows)] if rows else []


def number(value: Any, digits: int = 2, unit: float = 1) -> str:
    """Write a number, counted in a unit; nothing for None."""
    return NONE if value is None else f"{value / unit:,.{digits}f}"


def main_table(table: dict[str, Any]) -> list[str]:
    """Render scores and costs of every system, without columns that nothing fills."""

    def score(key: str) -> Callable[[TableRow], str]:
        return lambda row: number(row.get(key))

    def memory(row: TableRow) -> str:  # of the GPU, or without one of the processes
        return number(row.get(GPU_MEMORY, row.get(PEAK_MEMORY)), 1)

    def p(row: TableRow) -> str:
        baseline = row["name"] == table.get("opponent")
        return "–" if baseline else number(row.get("p"), 3)

    columns: dict[str, Callable[[TableRow], str]] = {
        "system": lambda row: row["title"],
        "updates": lambda row: number(row.get("updates"), 0),
        "batches left out": lambda row: number(row.get(LEFT_OUT), 0),
        "tokens, M": lambda row: number(row.get("tokens"), 2, 1e6),
        "train, min": lambda row: number(row.get("seconds"), 1, 60),
        "GiB": memory,
        **{HEADINGS.get(key, key): score(key) for key in SCORES},
        "AER, %": score("AER"),
        "p": p,
        "L2R wins, %": lambda row: number(row.get("L2R wins"), 1),
        "row": lambda row: row["name"],
    }
    return by_columns(columns, table["rows"])


def by_columns(
    columns: dict[str, Callable[[Any], str]], rows: Sequence[Any]
) -> list[str]:
    """Return a Markdown table of a line a row; columns that are empty are left out."""
    cells = {name: [show(row) for row in rows] for name, show in columns.items()}
    filled = {name: column for name, column in cells.items() if any(column)}
    return aligned(list(filled), [list(row) for row in zip(*filled.values())])


def bleu_heading(table: dict[str, Any]) -> str:
    """Return what heads BLEU: raw text has no other, and its own name."""
    raw = "BLEU" in table["signatures"] and "tokenised BLEU" not in table["signatures"]
    return "BLEU" if raw else HEADINGS["tokenised BLEU"]


def probe_tables(table: dict[str, Any]) -> list[str]:
    """Render probes of one checkpoint: as trained, and without the interaction."""
    score = "WER, %," if "WER" in table["signatures"] else bleu_heading(table)
    together = ", all sets together" * any("sets" in row for row in table["rows"])
    lines = []
    for probe, title, digits in (
        ("interaction", f"{score} of one checkpoint{together}", 2),
        ("reading", "bits a token, 2nd half, given away", 3),
    ):
        cells = [
            [row["title"], *(number(row[probe][setting], digits) for setting in PROBES)]
            for row in table["rows"]
            if probe in row
        ]
        lines += below([title, *PROBES], cells)
    return lines


def set_lines(table: dict[str, Any]) -> list[str]:
    """Render BLEU on each of several test sets."""
    rows = [row for row in table["rows"] if row.get("sets")]
    names = list(rows[0]["sets"]) if rows else []
    cells = [[r["title"], *(number(r["sets"][name]) for name in names)] for r in rows]
    return below([f"{bleu_heading(table)} by set", *names], cells)


def notes(table: dict[str, Any]) -> list[str]:
    """Explain the numbers, and tell where they come from."""
    lines = [f"{name}: `{text}`" for name, text in table["signatures"].items()]
    baseline = [r["title"] for r in table["rows"] if r["name"] == table.get("opponent")]
    if baseline:
        score = "WER" if "WER" in table["signatures"] else "BLEU"
        lines.append(
            f"p: paired bootstrap ({SAMPLES:,} samples) of {score} against "
            + baseline[0]
            + ", all sets together" * any("sets" in row for row in table["rows"])
        )
    if any(row.get("tokens") for row in table["rows"]):
        lines.append("tokens: labels seen, of both directions for SB-NMT")
    commits = sorted({c for row in table["rows"] for c in row.get("commits", [])})
    known = f", commit {', '.join(commits)}" if commits else ""
    lines.append(f"`{table['command']}`{known}")
    cards = sorted({row["gpu"] for row in table["rows"] if "gpu" in row})
    return ["", *lines, ", ".join([table["machine"], *cards])]


def render(table: dict[str, Any]) -> str:
    """Render the whole table."""
    parts = main_table, set_lines, probe_tables, notes
    return "\n".join(line for part in parts for line in part(table)) + "\n"
