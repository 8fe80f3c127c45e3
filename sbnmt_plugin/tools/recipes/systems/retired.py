"""Rows of 0.2.0 that are no longer trained, since none showed a gain.

Their results, and the costs of their trainings, are still shown.
"""

from __future__ import annotations

from sbnmt_plugin.tools.recipes.systems.system import BOTH, System

# name: title, training set, row that its weights start from, row to use instead
KNOWN = {
    "sb-dropped": (
        "λ = 1, two triples, half of the partners dropped",
        *("two", "", "sb-staged"),
    ),
    "sb-same": (
        "λ = 1, two triples, half of the partners dropped, a third with one text",
        *("two", "", "sb-staged"),
    ),
    "sb-same-lambda0": (
        "λ = 0, two triples, a third with one text",
        *("two", "", "sb-lambda0"),
    ),
    "sb-lambda0-finetuned": (
        "λ = 0, from the teacher, two triples",
        *("two", "teacher-l2r", "sb-lambda0"),
    ),
    "sb-same-finetuned": (
        "λ = 1, from the teacher, two triples, half of the partners dropped, a third "
        "with one text",
        *("two", "teacher-l2r", "sb-finetuned"),
    ),
    "sb-noise": ("λ = 1, three triples, noise", "three", "", "sb-reader"),
    "sb-noise-shift": (
        "λ = 1, three triples, noise, future shifted",
        *("three", "", "sb-reader"),
    ),
    "sb-noise-shift-dropped": (
        "λ = 1, three triples, noise, future shifted, half of the partners dropped",
        *("three", "", "sb-reader"),
    ),
    "sb-late": (
        "λ = 1, from λ = 0, three triples, noise, future shifted, half of the partners "
        "dropped",
        *("three", "sb-noise-lambda0", "sb-reader"),
    ),
    "sb-late-lambda0": (
        "λ = 0, from itself, three triples, noise",
        *("three", "sb-noise-lambda0", "sb-noise-lambda0"),
    ),
    "sb-reader-own": (
        "λ = 1, a reader beside λ = 0, gold, own words, future shifted",
        *("gold", "teacher-both", "sb-reader-two"),
    ),
    "sb-noise-gold": ("λ = 1, gold, noise", "gold", "", "sb-staged"),
    "sb-own": ("λ = 1, gold, own words", "gold", "", "sb-staged"),
    "sb-staged-continued": (
        "λ = 1, gold in both streams, then two triples, one schedule",
        *("two", "", "sb-staged"),
    ),
}
RETIRED_ROWS = {
    name: System(f"SB-NMT, {title}", data, BOTH, starts_from=starts_from, remedy=remedy)
    for name, (title, data, starts_from, remedy) in KNOWN.items()
}
