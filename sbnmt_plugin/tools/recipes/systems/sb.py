"""Rows of SB-NMT: the paper's, its sweep of fusions, and ways of learning to read."""

from __future__ import annotations

from sbnmt_plugin.tools.recipes.systems.system import BOTH, Options, System

# Table 2 of the paper
FUSIONS = ("linear", "tanh", "relu")
LAMBDAS = (0.1, 0.5, 1.0)
SB = "SB-NMT, {fusion}, λ = {lambda}, two triples"
NO_INTERACTION = {
    "--sb-fusion": "tanh",
    "--sb-lambda": 0,
    "--sb-learn-lambda": False,
    "--sb-future-shift": False,
    "--sb-reader": False,
}
# the paper's λ = 0.1 and dropout of the future keep a model from learning to read
READS = {"--sb-fusion": "tanh", "--sb-lambda": 1, "--sb-future-dropout": 0}
# the setting of a recipe that says nothing else; its 0.3 of dropout is the default
AS_IN_PAPER = {
    "--sb-fusion": "tanh",
    "--sb-lambda": 0.1,
    "--sb-learn-lambda": False,
    "--sb-future-dropout": False,
    "--sb-future-shift": False,
    "--sb-reader": False,
}
NOISE = {"--sb-partner-noise": 0.5}
SHIFT = {"--sb-future-shift": None}


def sweep() -> dict[str, System]:
    """Return the rows of table 2: every fusion at every λ, the gate, a learned λ."""
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


def reader(writer: str, texts: str, data: str, options: Options) -> System:
    """Return a row that learns to read beside a row at λ = 0, which stays as it is.

    Args:
        writer: the row at λ = 0.
        texts: the training set, in the title.
        data: the training set.
        options: that make its partners, beside those of every reader.
    """
    title = f"SB-NMT, λ = {{lambda}}, a reader beside λ = 0, {texts}, future shifted"
    asks = {**READS, **options, **SHIFT, "--sb-reader": None}
    return System(title, data, BOTH, options=asks, starts_from=writer)


PAPER = {
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
# rows that differ in whether streams read each other, and in how they learn it
READING = {
    "sb-staged": System(
        "SB-NMT, λ = {lambda}, gold in both streams, then two triples",
        "two",
        BOTH,
        options=READS,
        stages=("gold", "two"),
    ),
    "sb-staged-lambda0": System(
        "SB-NMT, λ = 0, gold, then two triples",
        "two",
        BOTH,
        options=NO_INTERACTION,
        stages=("gold", "two"),
    ),
    "sb-shift": System(
        "SB-NMT, {fusion}, λ = {lambda}, two triples, future shifted",
        "two",
        BOTH,
        options=SHIFT,
    ),
    "sb-noise-lambda0": System(
        "SB-NMT, λ = 0, three triples, noise",
        "three",
        BOTH,
        options={**NO_INTERACTION, **NOISE},
    ),
    # a reader keeps what the writer writes alone, and learns to read beside it
    "sb-reader": reader("sb-noise-lambda0", "three triples, noise", "three", NOISE),
    "sb-reader-two": reader("sb-lambda0", "two triples", "two", {}),
}
SWEEP = sweep()
OTHERS = {
    # One model of both directions, the teacher where a recipe says ``teachers: one``.
    # It has no interaction, for gold text on both sides leaks through any.
    "teacher-both": System("SB-NMT, λ = 0, gold", "gold", BOTH, options=NO_INTERACTION),
    "sb-paper": System(
        "SB-NMT, the paper's λ = 0.1, two triples", "two", BOTH, options=AS_IN_PAPER
    ),
}
