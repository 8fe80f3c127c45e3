"""Rows that SB-NMT is compared with: Transformers, ABD-NMT, BA-NMT, two-way models."""

from __future__ import annotations

from sbnmt_plugin.tools.recipes.systems.system import (
    BOTH,
    MULTILINGUAL,
    R2L,
    Options,
    System,
)

# one direction: the teachers, with pseudo targets, reranking
TRANSFORMERS = {
    "teacher-l2r": System("Transformer, L2R", "gold"),
    "teacher-r2l": System("Transformer, R2L", "gold", R2L),
    "transformer-pl": System("Transformer, y_g + y_pl", "pl"),
    "transformer-pl-pr": System("Transformer, y_g + y_pl + y_pr", "pl-pr"),
    "rnmt": System("RNMT", "gold", options={"--arch": "lstm_luong_wmt_en_de"}),
    "rerank": System("Rerank-NMT, k = 10 + 10", joins=("teacher-l2r", "teacher-r2l")),
}
# the baseline where the R2L direction is the better one
RIGHT_TO_LEFT = {"transformer-pr": System("Transformer, R2L, y_g + y_pr", "pr", R2L)}
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


def recurrent(architecture: str) -> Options:
    """Return the options of BA-NMT's paper: one kind of dropout and no smoothing."""
    return {
        "--arch": architecture,
        "--label-smoothing": 0,
        "--attention-dropout": False,
    }


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
# both translation directions, by two Transformers or one model; each row of the
# exchanged languages stands after its partner
TWO_WAY = {
    "teacher-back": System("Transformer, back", "gold", back=True, links=False),
    "two-way": System("Two-way", "gold", options=TWO_WAY_OPTIONS, links=False),
    "two-way-back": System("Two-way, back", back=True, decodes="two-way"),
    "multilingual": System("Multilingual Transformer", MULTILINGUAL, links=False),
    "multilingual-back": System(
        "Multilingual Transformer, back", back=True, decodes="multilingual"
    ),
}
