"""Rows of both translation directions: two Transformers, or one model.

Each row of the exchanged languages stands after its partner.
"""

from __future__ import annotations

from sbnmt_plugin.tools.recipes.systems.system import MULTILINGUAL, System

TWO_WAY_OPTIONS = {
    "--arch": "two_way",
    "--criterion": "two_way_cross_entropy",
    "--label-smoothing": False,  # the paper has none
    "--share-all-embeddings": False,
}
TWO_WAY = {
    "teacher-back": System("Transformer, back", "gold", back=True, links=False),
    "two-way": System("Two-way", "gold", options=TWO_WAY_OPTIONS, links=False),
    "two-way-back": System("Two-way, back", back=True, decodes="two-way"),
    "multilingual": System("Multilingual Transformer", MULTILINGUAL, links=False),
    "multilingual-back": System(
        "Multilingual Transformer, back", back=True, decodes="multilingual"
    ),
}
