"""What docs/findings.md says in words about rows whose numbers it leaves out."""

from pages import text_of
from test_findings import (
    PAGE,
    PAPER,
    RESCORED,
    SHORT_SEEDS,
    TRIPLES,
    apart,
    score,
)

# (table, row, its baseline without interaction): retired rows of Multi30k
RETIRED = [
    ("multi30k/late-small", "sb-late", "sb-late-lambda0"),
    (SHORT_SEEDS, "sb-same", "sb-lambda0"),
    (SHORT_SEEDS, "sb-noise", "sb-noise-lambda0"),
    (SHORT_SEEDS, "sb-noise-shift", "sb-noise-lambda0"),
]


def test_no_other_row_gains_when_rescored():
    assert "Further rows, which are gone, gained nothing rescored." in text_of(PAGE)
    for table, row, baseline in RETIRED:
        assert apart(table, row + RESCORED, baseline + RESCORED) < 0, row


def test_stages_and_own_words_cost_more_on_cmudict():
    """More wrong words than λ = 1 on triples costs, after the shorter training."""
    assert "Stages and `sb-own` cost more." in text_of(PAGE)
    best = "sb-lambda0" + RESCORED
    costs = apart(TRIPLES, "sb" + RESCORED, best, "WER")
    staged = score(PAPER, "sb-staged" + RESCORED, "WER")
    assert staged - score(TRIPLES, best, "WER") > costs
    own = apart(PAPER, "sb-own" + RESCORED, "teacher-both" + RESCORED, "WER")
    assert own > costs > 0
