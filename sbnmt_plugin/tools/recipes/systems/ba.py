"""Rows of BA-NMT and of its baseline, RNNsearch*."""

from __future__ import annotations

from sbnmt_plugin.tools.recipes.systems.system import Options, System


def recurrent(architecture: str) -> Options:
    """Return the options of BA-NMT's paper: one kind of dropout and no smoothing."""
    return {
        "--arch": architecture,
        "--label-smoothing": 0,
        "--attention-dropout": False,
    }


HISTORIES = {
    "rnnsearch": System("RNNsearch*", "gold", options=recurrent("rnnsearch")),
    "ba-source": System("SA-NMT", "gold", options=recurrent("sa_nmt")),
    "ba-target": System("TA-NMT", "gold", options=recurrent("ta_nmt")),
    "ba": System("BA-NMT", "gold", options=recurrent("ba_nmt")),
}
