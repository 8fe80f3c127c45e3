"""Rows of SB-NMT: the paper's, its sweep of fusions, and ways of learning to read."""

from __future__ import annotations

from itertools import product
from typing import Any

from sbnmt_plugin.tools.recipes.systems.system import BOTH, Options, System

# Table 2 of the paper
FUSIONS = ("linear", "tanh", "relu")
LAMBDAS = (0.1, 0.5, 1.0)
TWO = "{fusion}, λ = {lambda}, two triples"  # the title of most
# a recipe's options of interaction that a row leaves out
NO_READING = dict.fromkeys(
    ("--sb-learn-lambda", "--sb-future-shift", "--sb-reader"), False
)
NO_INTERACTION = {"--sb-fusion": "tanh", "--sb-lambda": 0, **NO_READING}
# the paper's λ = 0.1 and dropout of the future keep a model from learning to read
READS = {"--sb-fusion": "tanh", "--sb-lambda": 1, "--sb-future-dropout": 0}
# the setting of a recipe that says nothing else; its 0.3 of dropout is the default
AS_IN_PAPER = {
    "--sb-fusion": "tanh",
    "--sb-lambda": 0.1,
    "--sb-future-dropout": False,
    **NO_READING,
}
NOISE = {"--sb-partner-noise": 0.5}
SHIFT = {"--sb-future-shift": None}


def both(title: str, data: str = "two", **more: Any) -> System:
    """Return a row of both directions side by side.

    Args:
        title: without the model's name.
        data: training set.
        more: attributes of the system.
    """
    return System(f"SB-NMT, {title}", data, BOTH, **more)


def sweep() -> dict[str, System]:
    """Return the rows of table 2: every fusion at every λ, the gate, a learned λ."""
    fixed = {"--sb-learn-lambda": False}
    found = {}
    for fusion, weight in product(FUSIONS, LAMBDAS):
        options = {"--sb-fusion": fusion, "--sb-lambda": weight, **fixed}
        found[f"sb-{fusion}-{weight}"] = both(TWO, options=options)
    gate = {"--sb-fusion": "gate", "--sb-lambda": False, **fixed}
    found["sb-gate"] = both("gate, two triples", options=gate)
    learned = {"--sb-fusion": "tanh", "--sb-learn-lambda": None}
    title = "tanh, λ learned from {lambda}, two triples"
    found["sb-learned"] = both(title, options=learned)
    return found


def reader(writer: str, texts: str, data: str, options: Options) -> System:
    """Return a row that learns to read beside a row at λ = 0, which stays as it is.

    Args:
        writer: the row at λ = 0.
        texts: the training set, in the title.
        data: the training set.
        options: that make its partners, beside those of every reader.
    """
    title = f"λ = {{lambda}}, a reader beside λ = 0, {texts}, future shifted"
    asks = {**READS, **options, **SHIFT, "--sb-reader": None}
    return both(title, data, options=asks, starts_from=writer)


PAPER = {
    "sb-lambda0": both("λ = 0, two triples", options=NO_INTERACTION),
    "sb": both(TWO),
    "sb-six": both("{fusion}, λ = {lambda}, six triples", "six"),
    "sb-finetuned": System(
        "SB-NMT from the teacher, two triples", "two", BOTH, starts_from="teacher-l2r"
    ),
}
# rows that differ in whether streams read each other, and in how they learn it
READING = {
    "sb-staged": both(
        "λ = {lambda}, gold in both streams, then two triples",
        options=READS,
        stages=("gold", "two"),
    ),
    "sb-staged-lambda0": both(
        "λ = 0, gold, then two triples", options=NO_INTERACTION, stages=("gold", "two")
    ),
    "sb-shift": both(f"{TWO}, future shifted", options=SHIFT),
    "sb-noise-lambda0": both(
        "λ = 0, three triples, noise", "three", options={**NO_INTERACTION, **NOISE}
    ),
    # a reader keeps what the writer writes alone, and learns to read beside it
    "sb-reader": reader("sb-noise-lambda0", "three triples, noise", "three", NOISE),
    "sb-reader-two": reader("sb-lambda0", "two triples", "two", {}),
}
SWEEP = sweep()
OTHERS = {
    # One model of both directions on gold text, as two teachers are.  It has no
    # interaction, for gold text on both sides leaks through any.
    "teacher-both": both("λ = 0, gold", "gold", options=NO_INTERACTION),
    "sb-paper": both("the paper's λ = 0.1, two triples", options=AS_IN_PAPER),
}
