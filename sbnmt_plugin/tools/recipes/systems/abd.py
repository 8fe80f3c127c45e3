"""Rows of ABD-NMT."""

from __future__ import annotations

from sbnmt_plugin.tools.recipes.systems.system import BOTH, System

NO_SB_OPTIONS = dict.fromkeys(
    (
        *("--sb-fusion", "--sb-lambda", "--sb-learn-lambda", "--sb-future-dropout"),
        *("--sb-future-shift", "--sb-reader", "--sb-probe"),
    ),
    False,
)
ABD = {
    "abd": System("ABD-NMT, one triple", "one", BOTH, "abd_", NO_SB_OPTIONS),
    "abd-two": System("ABD-NMT, two triples", "two", BOTH, "abd_", NO_SB_OPTIONS),
}
