"""The view into the two beams: traces of the search, for the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.report.content import Section
from sbnmt_plugin.tools.report.records import read_jsonl

KEYS = ("id", "source", "beam", "pairing", "steps", "pool")
MOST = 200  # sentences in a page; each has all hypotheses of all steps
PAIRINGS = {
    "rank": "Hypotheses of the same rank are partners: each looks at what the other "
    "has written, and is paired anew at every step.",
    "best": "Every hypothesis looks at the best one of the other direction.",
}


def read_traces(path: Path) -> list[dict[str, Any]]:
    """Read the first sentences of a ``--sb-trace``, in the order of their ids.

    Raises:
        ValueError: another file, or an empty one.
    """
    found = read_jsonl("--trace", path, KEYS)
    if not found or not all(
        trace["steps"] and trace["pool"] and str(trace["pairing"]) in PAIRINGS
        for trace in found
    ):
        raise ValueError(
            f"--trace {path} must hold the steps of a sentence a line, with a pairing "
            f"of {', '.join(PAIRINGS)}, but does not: give the file that --sb-trace "
            "wrote"
        )
    found.sort(key=lambda trace: trace["id"] if trace["id"] is not None else -1)
    return found[:MOST]


def section(traces: list[dict[str, Any]]) -> Section:
    """Introduce the view into the two beams."""
    pairing = PAIRINGS[traces[0]["pairing"]]
    return Section(
        "trace",
        "Inside the search",
        "Both directions write at the same time and grow towards each other. "
        f"{pairing} The newest token is marked.",
        data=traces,
        notes=[
            "Below the hypotheses: where the chosen pair looked while it wrote its "
            "newest tokens (attention of the last layer, mean over its heads), and how "
            "much of what that attention gave came from the other direction (norm of "
            "the future's contribution over the norms of both). Scores are sums of "
            "natural log-probabilities; finished ones are divided by the length "
            "penalty."
        ],
    )
