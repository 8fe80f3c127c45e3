"""Lines of fairseq-train's logs: its JSON is read as its simple format."""

from __future__ import annotations

import json
import re

JSON = re.compile(r"(.*\| (train_inner|train|valid) \| )(\{.*\})$")


def simple(line: str) -> str:
    """Return a line of ``--log-format json`` as ``simple`` has it, others unchanged."""
    if not (found := JSON.match(line)):
        return line
    head, kind, text = found.groups()
    try:
        stats = json.loads(text)
    except ValueError:  # cut off
        return line
    begin, equals, end = ":  0 / 0 ", "=", ", "
    if kind != "train_inner":
        begin, equals, end = " | ", " ", " | "
    epoch = stats.pop("epoch", 0)
    pairs = (f"{k.removeprefix(kind + '_')}{equals}{x}" for k, x in stats.items())
    return f"{head}epoch {epoch!s:0>3}{begin}{end.join(pairs)}"
