"""Rows that differ in whether streams read each other, and in how they learn it."""

from __future__ import annotations

from sbnmt_plugin.tools.recipes.system import BOTH, Options, System

NO_INTERACTION = {
    "--sb-fusion": "tanh",
    "--sb-lambda": 0,
    "--sb-learn-lambda": False,
    "--sb-future-shift": False,
    "--sb-reader": False,
    "--sb-freeze-writer": False,
    "--sb-partner-dropout": False,
}
# the paper's λ = 0.1 and dropout of the future keep a model from learning to read
READS = {"--sb-fusion": "tanh", "--sb-lambda": 1, "--sb-future-dropout": 0}
# which is what a recipe that says nothing else has; its 0.3 of dropout is the default
AS_IN_PAPER = {
    "--sb-fusion": "tanh",
    "--sb-lambda": 0.1,
    "--sb-learn-lambda": False,
    "--sb-future-dropout": False,
    "--sb-future-shift": False,
    "--sb-reader": False,
    "--sb-freeze-writer": False,
    "--sb-partner-dropout": False,
}
NOISE = {"--sb-partner-noise": 0.5}
SHIFT = {"--sb-future-shift": None}
READER = {"--sb-reader": None, "--sb-freeze-writer": None}
DROPPED = {"--sb-partner-dropout": 0.5}
SAME = {"--sb-same-text": 0.33}
OWN = {"--sb-partner": "own"}


def reader(writer: str, texts: str, data: str, options: Options) -> System:
    """Reading that is learned beside a row at λ = 0, which stays as it is.

    Args:
        writer: the row.
        texts: what it learns from, in the title.
        data: the same, a training set.
        options: that make its partners, beside those of every reader.
    """
    title = f"SB-NMT, λ = {{lambda}}, a reader beside λ = 0, {texts}, future shifted"
    asks = {**READS, **options, **SHIFT, **READER}
    return System(title, data, BOTH, options=asks, starts_from=writer)


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
    "sb-dropped": System(
        "SB-NMT, λ = {lambda}, two triples, half of the partners dropped",
        "two",
        BOTH,
        options={**READS, **DROPPED},
    ),
    "sb-same": System(
        "SB-NMT, λ = {lambda}, two triples, half of the partners dropped, "
        "a third with one text",
        "two",
        BOTH,
        options={**READS, **DROPPED, **SAME},
    ),
    "sb-same-lambda0": System(
        "SB-NMT, λ = 0, two triples, a third with one text",
        "two",
        BOTH,
        options={**NO_INTERACTION, **SAME},
    ),
    # the cheap chain, with ``teachers: one``: the teacher goes on, on its own targets
    "sb-lambda0-finetuned": System(
        "SB-NMT, λ = 0, from the teacher, two triples",
        "two",
        BOTH,
        options=NO_INTERACTION,
        starts_from="teacher-l2r",
    ),
    "sb-same-finetuned": System(
        "SB-NMT, λ = {lambda}, from the teacher, two triples, half of the partners "
        "dropped, a third with one text",
        "two",
        BOTH,
        options={**READS, **DROPPED, **SAME},
        starts_from="teacher-l2r",
    ),
    "sb-noise": System(
        "SB-NMT, λ = {lambda}, three triples, noise",
        "three",
        BOTH,
        options={**READS, **NOISE},
    ),
    "sb-noise-shift": System(
        "SB-NMT, λ = {lambda}, three triples, noise, future shifted",
        "three",
        BOTH,
        options={**READS, **NOISE, **SHIFT},
    ),
    "sb-noise-shift-dropped": System(
        "SB-NMT, λ = {lambda}, three triples, noise, future shifted, half of the "
        "partners dropped",
        "three",
        BOTH,
        options={**READS, **NOISE, **SHIFT, **DROPPED},
    ),
    "sb-noise-lambda0": System(
        "SB-NMT, λ = 0, three triples, noise",
        "three",
        BOTH,
        options={**NO_INTERACTION, **NOISE},
    ),
    # those that write well alone before they learn to read
    "sb-late": System(
        "SB-NMT, λ = {lambda}, from λ = 0, three triples, noise, future shifted, half "
        "of the partners dropped",
        "three",
        BOTH,
        options={**READS, **NOISE, **SHIFT, **DROPPED},
        starts_from="sb-noise-lambda0",
    ),
    "sb-late-lambda0": System(
        "SB-NMT, λ = 0, from itself, three triples, noise",
        "three",
        BOTH,
        options={**NO_INTERACTION, **NOISE},
        starts_from="sb-noise-lambda0",
    ),
    # and those that keep what they write alone, while reading is learned beside it
    "sb-reader": reader("sb-noise-lambda0", "three triples, noise", "three", NOISE),
    "sb-reader-two": reader("sb-lambda0", "two triples", "two", {}),
    "sb-reader-own": reader("teacher-both", "gold, own words", "gold", OWN),
    "sb-noise-gold": System(
        "SB-NMT, λ = {lambda}, gold, noise", "gold", BOTH, options={**READS, **NOISE}
    ),
    "sb-own": System(
        "SB-NMT, λ = {lambda}, gold, own words",
        "gold",
        BOTH,
        options={**READS, **OWN},
    ),
}
