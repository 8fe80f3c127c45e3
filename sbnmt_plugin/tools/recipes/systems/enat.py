"""Rows of ENAT: what its decoder reads, and what the phrase table alone gives."""

from __future__ import annotations

from dataclasses import replace

from sbnmt_plugin.tools.recipes.systems.system import KD, L2R, Options, System

LOOKUP = "lookup"
COPY, MAP, PHRASE = "copy", "map", "phrase"  # --enat-input
NO_ADVERSARY = {"--enat-adversary-weight": 0}
NO_ALIGN = {"--enat-align-weight": 0}


# row -> title, decoder's input, the phrase table that makes it, options of the training
KINDS: dict[str, tuple[str, str, str, Options]] = {
    "nart": ("NART, copied source", COPY, "", {}),
    "enat-phrase": ("ENAT, phrase table", PHRASE, "phrases", {}),
    "enat-map": ("ENAT, mapped source", MAP, "", {}),
    "enat-word": ("ENAT, word table", PHRASE, "words", {}),
    "enat-map-align": ("ENAT, mapped, aligned alone", MAP, "", NO_ADVERSARY),
    "enat-map-adversary": ("ENAT, mapped, adversary alone", MAP, "", NO_ALIGN),
}


def parallel_rows() -> dict[str, System]:
    """Return each row twice: of one length, and of nine, of which a teacher chooses."""
    found = {LOOKUP: System("Phrase table alone", table="phrases")}
    for name, (title, given, table, options) in KINDS.items():
        asks = {"--criterion": "enat_cross_entropy", "--enat-input": given, **options}
        one = System(title, KD, L2R, "enat_", asks, table=table, links=False)
        one = replace(one, needs=("--share-all-embeddings",))
        found[name] = replace(one, decode=("--beam", "1"))
        nine = System(f"{title}, 9 lengths", decodes=name, led=True, table=table)
        found[f"{name}-9"] = replace(nine, decode=("--beam", "9"))
    title = f"{found['nart'].title}, gold"
    return found | {"nart-gold": replace(found["nart"], title=title, data="gold")}


PARALLEL = parallel_rows()
