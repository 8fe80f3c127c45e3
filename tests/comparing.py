"""Systems compared by the paired bootstrap: made-up hypotheses, and their p."""

import random

from sacrebleu.metrics import BLEU

from sbnmt_plugin.tools.results.bootstrap import bootstrap

LINES = 120
RIGHT = [f"a{i % 7} b{i % 5} c{i % 11} d{i} e" for i in range(LINES)]


def answers(seed, rate):
    """Return the references with some words wrong."""
    draw = random.Random(seed)
    return [
        " ".join("x" if draw.random() < rate else word for word in line.split())
        for line in RIGHT
    ]


def bleu():
    """Return BLEU of tokens."""
    return BLEU(tokenize="none", force=True)


def p_of_seeds(runs, rivals, metric=bleu):
    """Return p of several seeds of a row against those of a rival."""
    return bootstrap(runs, rivals, [RIGHT], metric()).p


def p_of(metric, baseline, system, reference):
    """Return the p-value of a system's difference from the baseline."""
    return bootstrap([system], [baseline], [reference], metric).p
