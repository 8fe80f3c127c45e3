"""Rows of ENAT: what its decoder reads, and what the phrase table alone gives."""

from __future__ import annotations

from dataclasses import replace

from sbnmt_plugin.tools.recipes.systems.system import KD, L2R, Options, System

LOOKUP = "lookup"
COPY, MAP, PHRASE = "copy", "map", "phrase"  # --enat-input
NO_ADVERSARY = {"--enat-adversary-weight": 0}
NO_ALIGN = {"--enat-align-weight": 0}


def parallel(title: str, given: str, table: str, options: Options) -> dict[str, System]:
    """Return two rows: of one length, and of nine, of which the teacher chooses.

    Args:
        title: of the first.
        given: the decoder's input, ``--enat-input``.
        table: phrase table that makes it; "" for none.
        options: of the training.

    Returns:
        Each row by the end of its name.
    """
    asks = {"--criterion": "enat_cross_entropy", "--enat-input": given, **options}
    one = System(title, KD, L2R, "enat_", asks, table=table, links=False)
    return {
        "": replace(one, decode=("--beam", "1")),
        "-9": System(
            f"{title}, 9 lengths", decode=("--beam", "9"), led=True, table=table
        ),
    }


def parallel_rows() -> dict[str, System]:
    """Return all rows of ENAT."""
    kinds: dict[str, tuple[str, str, str, Options]] = {
        "nart": ("NART, copied source", COPY, "", {}),
        "enat-phrase": ("ENAT, phrase table", PHRASE, "phrases", {}),
        "enat-map": ("ENAT, mapped source", MAP, "", {}),
        "enat-word": ("ENAT, word table", PHRASE, "words", {}),
        "enat-map-align": ("ENAT, mapped, aligned alone", MAP, "", NO_ADVERSARY),
        "enat-map-adversary": ("ENAT, mapped, adversary alone", MAP, "", NO_ALIGN),
    }
    found = {LOOKUP: System("Phrase table alone", table="phrases")}
    for name, kind in kinds.items():
        for end, system in parallel(*kind).items():
            found[name + end] = replace(system, decodes=name if end else "")
    title = f"{found['nart'].title}, gold"
    return found | {"nart-gold": replace(found["nart"], title=title, data="gold")}


PARALLEL = parallel_rows()
