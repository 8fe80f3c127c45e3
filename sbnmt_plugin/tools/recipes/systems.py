"""The systems that the paper compares, each a row of the results table."""

from __future__ import annotations

from dataclasses import replace

from sbnmt_plugin.tools.recipes.family_rows import (
    HISTORIES,
    LOOKUP,
    MULTILINGUAL,
    PARALLEL,
    TWO_WAY,
)
from sbnmt_plugin.tools.recipes.reading_rows import (
    AS_IN_PAPER,
    NO_INTERACTION,
    READING,
)
from sbnmt_plugin.tools.recipes.system import BOTH, R2L, System

# BLEU in the paper, by its data sets; Zh-En is the mean of MT03 to MT06 (tables 3-5)
PAPER_SETS = ("Zh-En", "En-De", "Ru-En")
PAPER_BLEU: dict[str, tuple[float | None, ...]] = {
    "rnmt": (42.47, None, None),
    "teacher-l2r": (47.19, 27.72, 31.02),
    "teacher-r2l": (46.11, 27.13, 30.57),
    "rerank": (48.10, 27.81, None),
    "abd": (48.19, 28.22, None),
    "transformer-pl": (49.48, None, None),
    "transformer-pl-pr": (49.99, None, None),
    "sb": (51.11, 29.21, 32.06),
    "sb-six": (52.14, None, None),
}
# Table 2 of the paper
FUSIONS = ("linear", "tanh", "relu")
LAMBDAS = (0.1, 0.5, 1.0)


def sweep() -> dict[str, System]:
    """Table 2: every fusion at every λ, the gate, and a learned λ."""
    found = {}
    fixed = {"--sb-learn-lambda": False}
    for fusion in FUSIONS:
        for weight in LAMBDAS:
            options = {"--sb-fusion": fusion, "--sb-lambda": weight, **fixed}
            found[f"sb-{fusion}-{weight}"] = System(SB, "two", BOTH, options=options)
    gate = {"--sb-fusion": "gate", "--sb-lambda": False, **fixed}
    found["sb-gate"] = System("SB-NMT, gate, two triples", "two", BOTH, options=gate)
    learned = {"--sb-fusion": "tanh", "--sb-learn-lambda": None}
    title = "SB-NMT, tanh, λ learned from {lambda}, two triples"
    found["sb-learned"] = System(title, "two", BOTH, options=learned)
    return found


SB = "SB-NMT, {fusion}, λ = {lambda}, two triples"
NO_SB_OPTIONS = {
    "--sb-fusion": False,
    "--sb-lambda": False,
    "--sb-learn-lambda": False,
    "--sb-future-dropout": False,
    "--sb-future-shift": False,
    "--sb-reader": False,
    "--sb-freeze-writer": False,
    "--sb-partner-dropout": False,
    "--sb-probe": False,
}
PAPER = {
    "teacher-l2r": System("Transformer, L2R", "gold"),
    "teacher-r2l": System("Transformer, R2L", "gold", R2L),
    "transformer-pl": System("Transformer, y_g + y_pl", "pl"),
    "transformer-pl-pr": System("Transformer, y_g + y_pl + y_pr", "pl-pr"),
    "rnmt": System("RNMT", "gold", options={"--arch": "lstm_luong_wmt_en_de"}),
    "rerank": System("Rerank-NMT, k = 10 + 10", joins=("teacher-l2r", "teacher-r2l")),
    "abd": System("ABD-NMT, one triple", "one", BOTH, "abd_", NO_SB_OPTIONS),
    "abd-two": System("ABD-NMT, two triples", "two", BOTH, "abd_", NO_SB_OPTIONS),
    "sb-lambda0": System(
        "SB-NMT, λ = 0, two triples", "two", BOTH, options=NO_INTERACTION
    ),
    "sb": System(SB, "two", BOTH),
    "sb-six": System("SB-NMT, {fusion}, λ = {lambda}, six triples", "six", BOTH),
    "sb-finetuned": System(
        "SB-NMT from the teacher, two triples",
        "two",
        BOTH,
        starts_from="teacher-l2r",
    ),
}
SWEEP = sweep()
SYSTEMS = {
    **PAPER,
    **HISTORIES,
    **TWO_WAY,
    **PARALLEL,
    **READING,
    **SWEEP,
    # the opponent where the R2L direction is the better one
    "transformer-pr": System("Transformer, R2L, y_g + y_pr", "pr", R2L),
    # one model for both directions, where the recipe says ``teachers: one``; without
    # interaction, for gold text on both sides leaks through any
    "teacher-both": System("SB-NMT, λ = 0, gold", "gold", BOTH, options=NO_INTERACTION),
    "sb-paper": System(
        "SB-NMT, the paper's λ = 0.1, two triples", "two", BOTH, options=AS_IN_PAPER
    ),
    "sb-staged-continued": replace(
        READING["sb-staged"],
        title=f"{READING['sb-staged'].title}, one schedule",
        continues=True,
    ),
}
# with the same pseudo data
OPPONENTS = ("transformer-pl", "transformer-pl-pr", "transformer-pr")
GROUPS = {
    "paper": list(PAPER),
    "histories": list(HISTORIES),
    MULTILINGUAL: ["teacher-l2r", *TWO_WAY],
    # those of the paper's main table; the others are asked for by name
    "parallel": [
        *("teacher-l2r", LOOKUP),
        *(x + end for x in ("nart", "enat-phrase", "enat-map") for end in ("", "-9")),
    ],
    "reading": list(READING),
    "sweep": list(SWEEP),
}
