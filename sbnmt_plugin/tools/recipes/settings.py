"""Options of searching and scoring, as recipe.yaml sets them for every row."""

from __future__ import annotations

from pathlib import Path

from sbnmt_plugin.tools.evaluation import References
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.stages import Settings
from sbnmt_plugin.tools.recipes.systems.system import Options
from sbnmt_plugin.tools.scoring import tokeniser_of


def flags(options: Options) -> list[str]:
    """Write ``{--a: 1, --b: null, --c: false}`` as ``--a 1 --b``."""
    given = [pair for pair in options.items() if pair[1] is not False]
    return [str(word) for pair in given for word in pair if word is not None]


def device(recipe: Settings) -> list[str]:
    """Return ``--cpu`` for searches, where the recipe trains on a CPU."""
    return ["--cpu"] if recipe["train"].get("--cpu", False) is None else []


def searching(recipe: Settings) -> list[str]:
    """Return where searches run, and their dtype: float16 where trainings have it."""
    narrow = recipe["train"].get("--fp16", False) is None
    return [*device(recipe), *(["--fp16"] if narrow else [])]


def search_options(recipe: Settings) -> list[str]:
    """Return the options by which every row's test set is decoded."""
    words = [*recipe["decode"], *recipe["generate"], *searching(recipe)]
    return [str(word) for word in words]


def raw_tokeniser(recipe: Settings, language: str = "") -> str:
    """Return sacreBLEU's tokeniser where the texts are raw, "" where they are tokens.

    Args:
        language: of the text, by default the recipe's target.
    """
    raw = recipe["bpe"].get("kind") == "sentencepiece"
    return tokeniser_of(language or recipe["target"]) if raw else ""


def scoring_options(recipe: Settings, row: Row) -> list[str]:
    """Return the options by which a row's hypotheses are scored.

    A translation back into the source has one reference: the source text.
    """
    back, score = row.system.back, recipe["score"]
    target = recipe["source" if back else "target"]
    detokenise = recipe["detokenise"]
    options: Options = {
        "--target": target,
        "--references": (score["references"] != 1 and not back) and score["references"],
        "--lowercase": None if score["lowercase"] else False,
        "--phonemes": None if score["phonemes"] else False,
        "--detokenise": bool(detokenise) and (target if back else detokenise),
        "--raw": raw_tokeniser(recipe, target) or False,
    }
    return flags(options)


def references(text: Path, settings: Settings) -> References:
    """Return the test set's references in a work folder's ``text``."""
    return References(
        text=text,
        target=settings["target"],
        count=settings["score"]["references"],
        lowercase=settings["score"]["lowercase"],
        detokenise=settings["detokenise"],
        phonemes=settings["score"]["phonemes"],
        raw=raw_tokeniser(settings),
    )
