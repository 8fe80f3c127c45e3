"""Parts of a report: sections with tables, figures and reasons for gaps."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: heading.
        unit: shown beside the heading; empty where there is none.
        format: of a value; empty for text.
        best: whether the highest value is set in bold.
    """

    name: str
    unit: str = ""
    format: str = ""
    best: bool = False

    @property
    def heading(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def show(self, value: Any) -> str:
        """Return a value as it is printed; a dash where there is none."""
        if value is None:
            return "–"
        return format(value, self.format) if self.format else str(value)


@dataclass
class Table:
    """Rows of values below columns; ``name`` is the CSV file's.

    One that is not ``shown`` is written to its file and left out of the page.
    ``text`` follows the caption.
    """

    name: str
    caption: str
    columns: Sequence[Column]
    rows: list[list[Any]]
    notes: list[str] = field(default_factory=list)
    shown: bool = True
    text: str = ""

    def best_of(self, place: int) -> Any:
        """Return the value of a column that is set in bold, or None."""
        values = [row[place] for row in self.rows if row[place] is not None]
        wanted = self.columns[place].best and len(values) > 1
        return max(values) if wanted else None

    def csv(self) -> str:
        """Return the table as CSV, values unrounded."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([column.heading for column in self.columns])
        for row in self.rows:
            writer.writerow(["" if value is None else value for value in row])
        return out.getvalue()


@dataclass
class Figure:
    """A drawing; ``name`` is its file's."""

    name: str
    caption: str
    svg: bytes


@dataclass
class Section:
    """A section of the report; left out, with the reason, where ``missing`` is set.

    ``data`` is read by the scripts of the page.
    """

    key: str
    title: str
    lead: str = ""
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    missing: str = ""
    data: Any = None
