"""The steps of ``sbnmt``, and where the plugin lies."""

from __future__ import annotations

from pathlib import Path

PLUGIN = Path(__file__).resolve().parents[1]  # the argument of --user-dir
HOME = PLUGIN.parent  # a clone, or a folder of installed packages
IS_CLONE = (HOME / "scripts" / "setup.sh").is_file()

ENGINES = ("fairseq", "ctranslate2")  # that search for translations
# name and purpose of every step, in order of use
GROUPS = {
    "Use a model": {
        "recipe": "raw text to a table of scores, all steps of a recipe",
        "translate": "translate raw text by a model folder",
        "export": "a model folder for CTranslate2, which needs no torch",
        "score": "BLEU and chrF with signatures",
        "report": "the paper's analyses of any outputs as one page",
    },
    "Make a model step by step": {
        "prepare": "a recipe's raw text to tokenised text",
        "tokenise": "tokenise a text, or undo it",
        "bpe": "learn, apply and undo subwords",
        "binarise": "texts to a data folder, R2L texts included",
        "train": "fairseq-train, also as one of torchrun's processes",
        "average": "average the parameters of checkpoints",
        "pseudo": "pseudo targets with a teacher, shard by shard",
        "triples": "training triples of gold text and pseudo targets",
        "phrase-table": "a phrase table of a bitext",
        "lookup": "a text's rough translation by a phrase table",
        "both-ways": "a bitext in both translation directions, tagged",
        "rerank": "Rerank-NMT: both teachers propose and choose",
        "bundle": "a trained checkpoint to a model folder",
    },
    "Look into a model": {
        "evaluate": "a decoded test set to a row of a recipe's results",
        "table": "the results table of a recipe's run",
        "compare": "is a row of the table better than others, or is it chance?",
        "sweep-beam": "BLEU against beam size and length penalty",
        "probe-interaction": "does the interaction matter?",
        "probe-reading": "how much do the streams read of each other?",
        "aer": "word alignment error rate of a model's attention",
        "trace-page": "one page that shows how the two beams met",
        "benchmark": "speed and memory beside stock fairseq",
    },
}
STEPS = {name: text for group in GROUPS.values() for name, text in group.items()}
# name of a step that is gone, and the command that does its work
RETIRED = {"campaign": "it is `python -m campaign`, run in the tests folder of a clone"}
