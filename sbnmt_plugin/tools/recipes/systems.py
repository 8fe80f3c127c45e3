"""The systems that the paper compares, each a row of the results table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

Options = dict[str, Any]

BOTH, L2R, R2L = "both", "l2r", "r2l"
TEACHER = "teacher-"  # and a direction
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


@dataclass(frozen=True)
class System:
    """What distinguishes a row from the others.

    Attributes:
        title: in the table; {fusion} and {lambda} are filled in.
        data: training set: gold, pl (y_g + y_pl), pr (y_g + y_pr), pl-pr (all three),
            one, two or six (triples a sentence), both-ways (either language into the
            other); "" where nothing is trained.
        direction: of the model.
        family: what stands before the recipe's ``teacher_arch``; none: its
            ``teacher_arch``, or for both directions ``sb_arch``.
        options: of fairseq-train, over those of the recipe.
        starts_from: the row whose weights initialise this one: a teacher of one
            direction, of the first seed, or any other, of this row's.
        stages: training sets one after the other, the last being ``data``, where a
            recipe does not say otherwise; none: ``data`` alone.
        continues: whether a later stage goes on with optimiser and schedule; the
            recipe says which, and for how long.
        back: whether the target is translated into the source.
        decodes: the row whose model this one decodes with, where it trains none.
        joins: the rows whose models decode together, each of this row's seed, where it
            trains none.
        decode: words of decoding, over the recipe's.
        led: whether the L2R teacher chooses among what is written.
    """

    title: str
    data: str = ""
    direction: str = L2R
    family: str = ""
    options: Options = field(default_factory=dict)
    starts_from: str = ""
    stages: tuple[str, ...] = ()
    continues: bool = False
    back: bool = False
    decodes: str = ""
    joins: tuple[str, ...] = ()
    decode: tuple[str, ...] = ()
    led: bool = False


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
NO_INTERACTION = {
    "--sb-fusion": "tanh",
    "--sb-lambda": 0,
    "--sb-learn-lambda": False,
    "--sb-future-shift": False,
    "--sb-reader": False,
    "--sb-freeze-writer": False,
    "--sb-partner-dropout": False,
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


def recurrent(architecture: str) -> Options:
    """Of BA-NMT's paper: no smoothing, and no dropout but one."""
    return {
        "--arch": architecture,
        "--label-smoothing": 0,
        "--attention-dropout": False,
    }


# BA-NMT and its baseline
HISTORIES = {
    "rnnsearch": System("RNNsearch*", "gold", options=recurrent("rnnsearch")),
    "ba-source": System("SA-NMT", "gold", options=recurrent("sa_nmt")),
    "ba-target": System("TA-NMT", "gold", options=recurrent("ta_nmt")),
    "ba": System("BA-NMT", "gold", options=recurrent("ba_nmt")),
}
TWO_WAY_OPTIONS = {
    "--arch": "two_way",
    "--criterion": "two_way_cross_entropy",
    "--label-smoothing": False,  # the paper has none
    "--share-all-embeddings": False,
}
MULTILINGUAL = "both-ways"
# both translation directions: two Transformers, or one model; each row of the exchanged
# languages stands after its partner
TWO_WAY = {
    "teacher-back": System("Transformer, back", "gold", back=True),
    "two-way": System("Two-way", "gold", options=TWO_WAY_OPTIONS),
    "two-way-back": System("Two-way, back", back=True, decodes="two-way"),
    "multilingual": System("Multilingual Transformer", MULTILINGUAL),
    "multilingual-back": System(
        "Multilingual Transformer, back", back=True, decodes="multilingual"
    ),
}
KD = "kd"
LOOKUP = "lookup"


def parallel(title: str, given: str, **options: Any) -> dict[str, System]:
    """ENAT with one of its inputs: one length, and nine, of which the teacher chooses.

    Args:
        title: of its row.
        given: its input, ``--enat-input``.
    """
    asks = {"--criterion": "enat_cross_entropy", "--enat-input": given, **options}
    return {
        "": System(title, KD, L2R, "enat_", asks, decode=("--beam", "1")),
        "-9": System(f"{title}, 9 lengths", decode=("--beam", "9"), led=True),
    }


def parallel_rows() -> dict[str, System]:
    """ENAT's rows: what the decoder reads, and what its table alone gives."""
    kinds = {
        "nart": ("NART, copied source", COPY, {}),
        "enat-phrase": ("ENAT, phrase table", PHRASE, {}),
        "enat-map": ("ENAT, mapped source", MAP, {}),
        "enat-word": ("ENAT, word table", PHRASE, {}),
        "enat-map-align": ("ENAT, mapped, aligned alone", MAP, NO_ADVERSARY),
        "enat-map-adversary": ("ENAT, mapped, adversary alone", MAP, NO_ALIGN),
    }
    found = {LOOKUP: System("Phrase table alone")}
    for name, (title, given, options) in kinds.items():
        for end, system in parallel(title, given, **options).items():
            decodes = name if end else ""
            found[name + end] = replace(system, decodes=decodes)
    title = f"{found['nart'].title}, gold"
    return found | {"nart-gold": replace(found["nart"], title=title, data="gold")}


COPY, MAP, PHRASE = "copy", "map", "phrase"
NO_ADVERSARY = {"--enat-adversary-weight": 0}
NO_ALIGN = {"--enat-align-weight": 0}
PARALLEL = parallel_rows()
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
