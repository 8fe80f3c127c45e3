"""Reads the README and the pages: sections, tables, code."""

import re

from commands import ROOT


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def rows_of(text):
    """Cells of the first table of a text, without its head."""
    (table, *_) = re.findall(r"(?:^\|.*\n)+", text, re.M)
    rows = [row.strip().strip("|") for row in table.splitlines()[2:]]
    # as in {a|b}: a stroke without blanks separates no cells
    return [[cell.strip() for cell in row.split(" | ")] for row in rows]


def section_of(heading):
    return text_of("README.md").split(f"\n## {heading}\n")[1].split("\n## ")[0]


def code_of(text):
    """Fenced and indented code of a Markdown text."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S)
    indented = re.findall(r"(?:(?<=\n\n)|\A)((?:    .*\n)+)", text)
    return [*fenced, *indented]
