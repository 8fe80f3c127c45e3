"""Rows of 0.2.0 that are no longer trained, since none showed a gain.

Their results, and the costs of their trainings, are still shown.
"""

from __future__ import annotations

from sbnmt_plugin.tools.recipes.systems.sb import both

DROPPED, SAME = "half of the partners dropped", "a third with one text"
NOISE = "three triples, noise"
SHIFTED = f"{NOISE}, future shifted"
OWN = "a reader beside λ = 0, gold, own words, future shifted"
STAGED = "gold in both streams, then two triples, one schedule"
# row: the row to ask for instead, training set, title
GONE = {
    "sb-dropped": ("sb-staged", "two", f"λ = 1, two triples, {DROPPED}"),
    "sb-same": ("sb-staged", "two", f"λ = 1, two triples, {DROPPED}, {SAME}"),
    "sb-same-lambda0": ("sb-lambda0", "two", f"λ = 0, two triples, {SAME}"),
    "sb-lambda0-finetuned": (
        "sb-lambda0",
        "two",
        "λ = 0, from the teacher, two triples",
    ),
    "sb-same-finetuned": (
        *("sb-finetuned", "two"),
        f"λ = 1, from the teacher, two triples, {DROPPED}, {SAME}",
    ),
    "sb-noise": ("sb-reader", "three", f"λ = 1, {NOISE}"),
    "sb-noise-shift": ("sb-reader", "three", f"λ = 1, {SHIFTED}"),
    "sb-noise-shift-dropped": ("sb-reader", "three", f"λ = 1, {SHIFTED}, {DROPPED}"),
    "sb-late": ("sb-reader", "three", f"λ = 1, from λ = 0, {SHIFTED}, {DROPPED}"),
    "sb-late-lambda0": ("sb-noise-lambda0", "three", f"λ = 0, from itself, {NOISE}"),
    "sb-reader-own": ("sb-reader-two", "gold", f"λ = 1, {OWN}"),
    "sb-noise-gold": ("sb-staged", "gold", "λ = 1, gold, noise"),
    "sb-own": ("sb-staged", "gold", "λ = 1, gold, own words"),
    "sb-staged-continued": ("sb-staged", "two", f"λ = 1, {STAGED}"),
}
RETIRED_ROWS = {
    name: both(title, data, remedy=remedy)
    for name, (remedy, data, title) in GONE.items()
}
