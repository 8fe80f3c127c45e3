"""Rows of the other families: recurrent, two-way, not autoregressive."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sbnmt_plugin.tools.recipes.system import L2R, Options, System


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
