"""Rows of one direction: the teachers, the baselines with pseudo targets, reranking."""

from __future__ import annotations

from sbnmt_plugin.tools.recipes.systems.system import R2L, System

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
