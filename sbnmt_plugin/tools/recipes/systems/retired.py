"""Rows of 0.2.0 that are no longer trained, since none showed a gain.

Their results, and the costs of their trainings, are still shown.
"""

from __future__ import annotations

from sbnmt_plugin.tools.recipes.systems.sb import both

DROPPED, SAME = "half of the partners dropped", "a third with one text"
NOISE = "three triples, noise"
SHIFTED = f"{NOISE}, future shifted"
RETIRED_ROWS = {
    "sb-dropped": both(f"λ = 1, two triples, {DROPPED}", remedy="sb-staged"),
    "sb-same": both(f"λ = 1, two triples, {DROPPED}, {SAME}", remedy="sb-staged"),
    "sb-same-lambda0": both(f"λ = 0, two triples, {SAME}", remedy="sb-lambda0"),
    "sb-lambda0-finetuned": both(
        "λ = 0, from the teacher, two triples",
        starts_from="teacher-l2r",
        remedy="sb-lambda0",
    ),
    "sb-same-finetuned": both(
        f"λ = 1, from the teacher, two triples, {DROPPED}, {SAME}",
        starts_from="teacher-l2r",
        remedy="sb-finetuned",
    ),
    "sb-noise": both(f"λ = 1, {NOISE}", "three", remedy="sb-reader"),
    "sb-noise-shift": both(f"λ = 1, {SHIFTED}", "three", remedy="sb-reader"),
    "sb-noise-shift-dropped": both(
        f"λ = 1, {SHIFTED}, {DROPPED}", "three", remedy="sb-reader"
    ),
    "sb-late": both(
        f"λ = 1, from λ = 0, {SHIFTED}, {DROPPED}",
        "three",
        starts_from="sb-noise-lambda0",
        remedy="sb-reader",
    ),
    "sb-late-lambda0": both(
        f"λ = 0, from itself, {NOISE}",
        "three",
        starts_from="sb-noise-lambda0",
        remedy="sb-noise-lambda0",
    ),
    "sb-reader-own": both(
        "λ = 1, a reader beside λ = 0, gold, own words, future shifted",
        "gold",
        starts_from="teacher-both",
        remedy="sb-reader-two",
    ),
    "sb-noise-gold": both("λ = 1, gold, noise", "gold", remedy="sb-staged"),
    "sb-own": both("λ = 1, gold, own words", "gold", remedy="sb-staged"),
    "sb-staged-continued": both(
        "λ = 1, gold in both streams, then two triples, one schedule",
        remedy="sb-staged",
    ),
}
