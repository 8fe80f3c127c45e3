"""The results table of a recipe's run in Markdown."""

from __future__ import annotations

from typing import Any

from sbnmt_plugin.tools.recipes.costs import LEFT_OUT
from sbnmt_plugin.tools.recipes.row_names import is_rescored
from sbnmt_plugin.tools.recipes.systems import PAPER, PAPER_BLEU, PAPER_SETS
from sbnmt_plugin.tools.results.bootstrap import SAMPLES

SCORES = ("tokenised BLEU", "BLEU", "chrF", "WER", "PER")
HEADINGS = {"WER": "WER, %", "PER": "PER, %", "tokenised BLEU": "tok. BLEU"}
PROBES = ("as trained", "λ = 0", "partners shuffled")
NONE = ""
Row = dict[str, Any]


def aligned(header: list[str], rows: list[list[str]]) -> list[str]:
    """A Markdown table that is a table in a terminal too; numbers to the right."""
    # Markdown takes no : alone for a ruler
    widths = [max(2, *map(len, column)) for column in zip(header, *rows)]
    ruler = ["-" * widths[0], *("-" * (w - 1) + ":" for w in widths[1:])]

    def line(cells: list[str]) -> str:
        first, *others = zip(cells, widths)
        padded = [first[0].ljust(first[1]), *(c.rjust(w) for c, w in others)]
        return "| " + " | ".join(padded) + " |"

    return [line(header), line(ruler), *map(line, rows)]


def number(value: Any, digits: int = 2) -> str:
    return NONE if value is None else f"{value:,.{digits}f}"


def minutes(seconds: float | None) -> str:
    return NONE if seconds is None else number(seconds / 60, 1)


def millions(count: float | None) -> str:
    return NONE if count is None else number(count / 1e6)


def memory(row: Row) -> float | None:
    """Peak memory of the training: of the GPU, or of the processes without one."""
    found: float | None = row.get("peak GPU memory (GiB)", row.get("peak memory (GiB)"))
    return found


def processors(row: Row) -> float | None:
    """Processor seconds of a row's whole chain; of a GPU's they would say nothing."""
    return None if "gpu" in row else row.get("total processor seconds")


def p_value(row: Row, opponent: str | None) -> str:
    if row["name"] == opponent:
        return "–"
    return NONE if row.get("p") is None else f"{row['p']:.3f}"


def main_table(table: dict[str, Any]) -> list[str]:
    """Scores and costs of every system; columns that nothing fills are left out."""
    columns: dict[str, list[str]] = {
        "system": [row["title"] for row in table["rows"]],
        "updates": [number(row.get("updates"), 0) for row in table["rows"]],
        "batches left out": [number(row.get(LEFT_OUT), 0) for row in table["rows"]],
        "tokens, M": [millions(row.get("tokens")) for row in table["rows"]],
        "in all, M": [millions(row.get("total tokens")) for row in table["rows"]],
        "train, min": [minutes(row.get("seconds")) for row in table["rows"]],
        "in all, min": [minutes(row.get("total seconds")) for row in table["rows"]],
        "processors, min": [minutes(processors(row)) for row in table["rows"]],
        "GiB": [number(memory(row), 1) for row in table["rows"]],
        **{
            HEADINGS.get(score, score): [number(r.get(score)) for r in table["rows"]]
            for score in SCORES
        },
        "AER, %": [number(row.get("AER")) for row in table["rows"]],
        "p": [p_value(row, table.get("opponent")) for row in table["rows"]],
        "L2R wins, %": [number(row.get("L2R wins"), 1) for row in table["rows"]],
    }
    filled = {name: cells for name, cells in columns.items() if any(cells)}
    return aligned(list(filled), [list(cells) for cells in zip(*filled.values())])


def probe_table(
    table: dict[str, Any], probe: str, title: str, digits: int
) -> list[str]:
    """The same checkpoints as they are, and without the interaction."""
    rows = [row for row in table["rows"] if probe in row]
    if not rows:
        return []
    cells = [
        [row["title"], *(number(row[probe][setting], digits) for setting in PROBES)]
        for row in rows
    ]
    return ["", *aligned([title, *PROBES], cells)]


def interaction_table(table: dict[str, Any]) -> list[str]:
    """What the interaction is worth in the search (sbnmt probe-interaction)."""
    pooled = any("sets" in row for row in table["rows"])
    score = "WER, %," if "WER" in table["signatures"] else "tok. BLEU"
    title = f"{score} of one checkpoint" + ", all sets together" * pooled
    return probe_table(table, "interaction", title, 2)


def reading_table(table: dict[str, Any]) -> list[str]:
    """What is read across of text that gives itself away (sbnmt probe-reading)."""
    title = "bits a token, 2nd half, given away"
    return probe_table(table, "reading", title, 3)


def set_lines(table: dict[str, Any]) -> list[str]:
    """Tokenised BLEU on each of several test sets."""
    rows = [row for row in table["rows"] if row.get("sets")]
    if not rows:
        return []
    names = list(rows[0]["sets"])
    cells = [[r["title"], *(number(r["sets"][name]) for name in names)] for r in rows]
    return ["", *aligned(["tok. BLEU by set", *names], cells)]


def stage_table(table: dict[str, Any]) -> list[str]:
    """What each stage of a training cost."""
    cells = [
        [
            f"{row['title']}, stage {place}",
            stage["data"],
            number(stage.get("updates"), 0),
            millions(stage.get("tokens")),
            minutes(stage.get("seconds")),
        ]
        for row in table["rows"]
        if not is_rescored(row["name"])  # the same training once more
        for place, stage in enumerate(row.get("stages", []), start=1)
    ]
    if not cells:
        return []
    return [
        "",
        *aligned(["stage", "data", "updates", "tokens, M", "train, min"], cells),
    ]


def seeds_table(table: dict[str, Any]) -> list[str]:
    """What several seeds of a row say together."""
    rows = table.get("seeds") or []
    if not rows:
        return []
    titles = {row["name"]: row["title"] for row in rows}
    rivals = [name for name in titles if any(name in row["p"] for row in rows)]
    score = HEADINGS.get(rows[0]["score"], rows[0]["score"])
    head = ["seeds together", "seeds", score, *(f"p: {titles[r]}" for r in rivals)]
    cells = [
        [
            row["title"],
            ", ".join(map(str, row["seeds"])),
            f"{number(row['mean'])} ± {number(row['deviation'])}",
            *(
                NONE if row["p"].get(r) is None else number(row["p"][r], 3)
                for r in rivals
            ),
        ]
        for row in rows
    ]
    return ["", *aligned(head, cells)]


def notes(table: dict[str, Any]) -> list[str]:
    """What the numbers mean and where they come from."""
    lines = [f"{name}: `{text}`" for name, text in table["signatures"].items()]
    opponent = [r["title"] for r in table["rows"] if r["name"] == table.get("opponent")]
    if opponent:
        score = "WER" if "WER" in table["signatures"] else "BLEU"
        lines.append(
            f"p: paired bootstrap ({SAMPLES:,} samples) of {score} against "
            + opponent[0]
            + ", all sets together" * any("sets" in row for row in table["rows"])
        )
    if any(row["p"] for row in table.get("seeds") or []):
        lines.append(
            "seeds together: mean ± standard deviation; p: sentences are drawn, each "
            "with its answers of all seeds that both rows have, so it speaks of other "
            "sentences, the deviation of other seeds"
        )
    if any(row.get("total seconds") for row in table["rows"]):
        lines.append(
            "tokens: labels seen, of both directions for SB-NMT; in all: with teachers "
            "and pseudo targets"
            + "; processors: the same, time of all cores"
            * any(processors(row) for row in table["rows"])
        )
    commits = sorted({c for row in table["rows"] for c in row.get("commits", [])})
    known = f", commit {', '.join(commits)}" if commits else ""
    lines.append(f"`{table['command']}`{known}")
    cards = sorted({row["gpu"] for row in table["rows"] if "gpu" in row})
    return ["", *lines, ", ".join([table["machine"], *cards])]


def render(table: dict[str, Any]) -> str:
    """The whole, as text."""
    probes = interaction_table, reading_table
    parts = main_table, seeds_table, set_lines, stage_table, *probes, notes
    return "\n".join(line for part in parts for line in part(table)) + "\n"


def beside_the_paper(tables: dict[str, dict[str, Any]]) -> str:
    """Tokenised BLEU of the paper's systems, in the paper and in our tables."""
    columns: dict[str, dict[str, float | None]] = {
        f"paper, {name}": {row: scores[i] for row, scores in PAPER_BLEU.items()}
        for i, name in enumerate(PAPER_SETS)
    }
    for name, table in tables.items():
        rows = table["rows"]
        columns[name] = {row["name"]: row["tokenised BLEU"] for row in rows}
    cells = []
    for name, system in PAPER.items():
        values = [column.get(name) for column in columns.values()]
        if any(values):
            title = system.title.format(**{"fusion": "tanh", "lambda": "as stated"})
            cells.append([title, *map(number, values)])
    return "\n".join(aligned(["tok. BLEU", *columns], cells)) + "\n"
