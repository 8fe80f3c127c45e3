"""Section 2 (Table 1, Figure 7): accuracy of the beginnings and the ends."""

from __future__ import annotations

from operator import eq

from sbnmt_plugin.tools.report.content import Column, Figure, Section, Table
from sbnmt_plugin.tools.report.drawing import colours, finish, legend_above, panels
from sbnmt_plugin.tools.report.inputs import Inputs

DEFINITION = (
    "The paper does not define its measure; this is ours. Of the first n tokens of an "
    "output, a token is right if the reference has the same token at the same distance "
    "from its beginning; of the last n, from its end. Accuracy is right tokens over n "
    "tokens a sentence, summed over all sentences; where both texts are shorter than "
    "n, over the longer one's length, so missing and superfluous tokens count as "
    "wrong. With several references, each sentence is compared with the one that it "
    "fits best."
)
TITLE = "Beginnings and ends"
N = 4  # tokens of a beginning, and of an end
LABELLED_BARS = 5  # in a group; the numbers of more would overlap
Tokens = list[str]


def accuracy(
    outputs: list[Tokens], references: list[list[Tokens]], n: int, last: bool = False
) -> float:
    """Return the accuracy of the first or last n tokens, in percent.

    Args:
        outputs: tokens, one list a sentence.
        references: the same of each reference.
        last: count from the end.
    """
    part = slice(None, -n - 1, -1) if last else slice(n)
    counts = []  # right tokens, and all, of the reference that fits best
    for output, *golds in zip(outputs, *references):
        ours = output[part]
        pairs = [
            (sum(map(eq, ours, gold[part])), max(len(ours), len(gold[part])))
            for gold in golds
        ]
        counts.append(max(pairs, key=lambda pair: pair[0] / pair[1] if pair[1] else 1))
    total = sum(count for _, count in counts)
    return 100 * sum(right for right, _ in counts) / total if total else 0.0


def drawn(measured: dict[str, list[float]]) -> Figure:
    """Draw bars from zero with their values, one colour a system, in legend order."""
    groups = (f"first {N} tokens", f"last {N} tokens")
    width = 0.84 / len(measured)
    with panels(1, 2.9) as (canvas, (axis,)):
        looks = colours(list(measured))
        for place, (name, heights) in enumerate(measured.items()):
            shift = (place - (len(measured) - 1) / 2) * width
            places = [x + shift for x in range(len(groups))]
            colour, _ = looks[name]
            bars = axis.bar(places, heights, width * 0.9, label=name, color=colour)
            if len(measured) <= LABELLED_BARS:
                axis.bar_label(bars, fmt="%.1f", fontsize=7, padding=1.5)
        axis.set_xticks(range(len(groups)), groups)
        axis.grid(axis="x", visible=False)
        axis.margins(y=0.1)
        axis.set_ylabel("accuracy (% of tokens)")
        legend_above(canvas, axis)
    caption = (
        f"Translation accuracy of the first and the last {N} tokens of each output "
        "(the paper's Table 1 and Figure 7)."
    )
    return finish(canvas, "accuracy", caption)


def section(given: Inputs) -> Section:
    """Measure the first and the last tokens of every system."""
    golds = [given.tokens(text) for text in given.references]
    measured = {
        name: [accuracy(given.tokens(text), golds, N, x) for x in (False, True)]
        for name, text in given.systems.items()
    }
    columns = [Column(f"{end} {N}", "%", ".2f", best=True) for end in ("first", "last")]
    table = Table(
        "accuracy",
        f"Accuracy of the first and the last {N} tokens.",
        [Column("system"), *columns],
        [[name, *values] for name, values in measured.items()],
    )
    return Section(
        "accuracy",
        TITLE,
        "A left-to-right decoder tends to begin well, a right-to-left decoder to end "
        "well; SB-NMT should do both.",
        [table],
        [drawn(measured)],
        [DEFINITION],
    )
