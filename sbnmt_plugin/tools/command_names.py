"""Where the plugin is, and how its commands are called there."""

from __future__ import annotations

from pathlib import Path

PLUGIN = Path(__file__).resolve().parent  # what --user-dir wants
HOME = PLUGIN.parent  # a clone, or a folder of installed packages
IS_CLONE = (HOME / "scripts" / "clone.py").is_file()

# step of `sbnmt`: its script in a clone, and what it does; in order of use
STEPS = {
    "recipe": ("run_recipe.py", "raw text to a table of scores, all steps of a recipe"),
    "prepare": (None, "a recipe's raw text to tokenised text"),
    "tokenise": ("tokenise.py", "tokenise a text, or undo it"),
    "bpe": ("bpe.py", "learn and apply byte-pair encoding"),
    "binarise": ("binarise.py", "texts to a data folder, R2L texts included"),
    "train": ("train.py", "fairseq-train, also as one of torchrun's processes"),
    "average": ("average_checkpoints.py", "average the parameters of checkpoints"),
    "translate": ("translate.py", "pseudo targets with a teacher, shard by shard"),
    "triples": ("make_triples.py", "training triples of gold text and pseudo targets"),
    "phrase-table": (None, "a phrase table of a bitext"),
    "lookup": (None, "a text's rough translation by a phrase table"),
    "both-ways": (None, "a bitext in both translation directions, tagged"),
    "rerank": ("rerank.py", "Rerank-NMT: both teachers propose and choose"),
    "score": ("score.py", "BLEU and chrF with signatures"),
    "evaluate": (None, "a decoded test set to a row of a recipe's results"),
    "table": ("table.py", "the results table of a recipe's run"),
    "compare": (None, "is a row of the table better than others, or is it chance?"),
    "sweep-beam": ("sweep_beam.py", "BLEU against beam size and length penalty"),
    "probe-interaction": ("probe_interaction.py", "does the interaction matter?"),
    "probe-reading": (
        "probe_reading.py",
        "how much do the streams read of each other?",
    ),
    "aer": ("aer.py", "word alignment error rate of a model's attention"),
    "report": ("report.py", "the paper's analyses of any outputs as one page"),
    "trace-page": ("trace_page.py", "one page that shows how the two beams met"),
    "benchmark": ("benchmark.py", "speed and memory beside stock fairseq"),
    "campaign": ("campaign.py", "attempts to make the other steps lose something"),
}


def command_of(step: str) -> str:
    """How a user calls a step: by its script in a clone, else as ``sbnmt STEP``."""
    script, _ = STEPS[step]
    if script is not None and IS_CLONE:
        return f"scripts/{script}"
    return f"sbnmt {step}"
