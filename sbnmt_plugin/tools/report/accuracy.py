"""Section 2 (Table 1, Figure 7): accuracy of the beginnings and the ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from matplotlib.axes import Axes

from sbnmt_plugin.tools.report.content import Column, Section, Table
from sbnmt_plugin.tools.report.drawing import colours, finish, legend_above, panels
from sbnmt_plugin.tools.report.inputs import Inputs

DEFINITION = (
    "The paper does not define its measure; this is ours. Of the first n tokens of an "
    "output, a token is right “in place” if the reference has the same token at the "
    "same distance from its beginning; of the last n, from its end. “In any order” "
    "compares the first (last) n tokens of both as bags, each reference token used "
    "once. Accuracy is right tokens over n tokens a sentence, summed over all "
    "sentences; where both texts are shorter than n, over the longer one's length, so "
    "missing and superfluous tokens count as wrong. With several references, each "
    "sentence is compared with the one that it fits best."
)
LABELLED_BARS = 5  # in a group; the numbers of more would overlap
Tokens = list[str]


def right_in_place(output: Tokens, reference: Tokens, n: int) -> int:
    """Count tokens that stand at the same place among the first n."""
    return sum(a == b for a, b in zip(output[:n], reference[:n]))


def right_in_any_order(output: Tokens, reference: Tokens, n: int) -> int:
    """Count tokens common to the first n of both, each used once."""
    return sum((Counter(output[:n]) & Counter(reference[:n])).values())


def accuracy(
    outputs: list[Tokens],
    references: list[list[Tokens]],
    n: int,
    last: bool = False,
    in_place: bool = True,
) -> float:
    """Return the accuracy of the first or last n tokens, in percent.

    Args:
        outputs: tokens, one list a sentence.
        references: the same of each reference.
        last: count from the end.
        in_place: the first of the two measures of :data:`DEFINITION`.
    """
    compare = right_in_place if in_place else right_in_any_order
    right = total = 0
    for output, *golds in zip(outputs, *references):
        pairs = []
        for gold in golds:
            a, b = (x[::-1] if last else x for x in (output, gold))
            count = max(min(n, len(a)), min(n, len(b)))
            pairs.append((compare(a, b, n), count))
        best = max(pairs, key=lambda pair: pair[0] / pair[1] if pair[1] else 1.0)
        right += best[0]
        total += best[1]
    return 100 * right / total if total else 0.0


def grouped_bars(
    axis: Axes, groups: Sequence[str], values: dict[str, list[float]]
) -> None:
    """Draw bars from zero with their values, one colour a system, in legend order."""
    looks = colours(list(values))
    width = 0.84 / len(values)
    for place, (name, heights) in enumerate(values.items()):
        shift = (place - (len(values) - 1) / 2) * width
        bars = axis.bar(
            [x + shift for x in range(len(groups))],
            heights,
            width * 0.9,
            label=name,
            color=looks[name][0],
        )
        if len(values) <= LABELLED_BARS:
            axis.bar_label(bars, fmt="%.1f", fontsize=7, padding=1.5)
    axis.set_xticks(range(len(groups)), groups)
    axis.grid(axis="x", visible=False)


def section(given: Inputs, n: int) -> Section:
    """Measure the first and the last n tokens of every system."""
    measured = {
        name: [
            accuracy(tokens, given.reference_tokens, n, last, in_place)
            for in_place in (True, False)
            for last in (False, True)
        ]
        for name, tokens in given.system_tokens.items()
    }
    columns = [
        Column(f"{end} {n}, {how}", "%", ".2f", "high")
        for how in ("in place", "any order")
        for end in ("first", "last")
    ]
    table = Table(
        "accuracy",
        f"Accuracy of the first and the last {n} tokens.",
        [Column("system"), *columns],
        [[name, *values] for name, values in measured.items()],
    )
    groups = (f"first {n} tokens", f"last {n} tokens")
    with panels(2, 2.9, sharey=True) as (canvas, axes):
        for axis, title, start in zip(axes, ("in place", "in any order"), (0, 2)):
            part = {name: found[start : start + 2] for name, found in measured.items()}
            grouped_bars(axis, groups, part)
            axis.set_title(title)
        top = max(max(values[2:]) for values in measured.values())
        axes[0].set_ylim(0, max(top * 1.1, 1))
        axes[0].set_ylabel("accuracy (% of tokens)")
        legend_above(canvas, axes[0])
    caption = (
        f"Translation accuracy of the first and the last {n} tokens of each output "
        "(the paper's Table 1 and Figure 7)."
    )
    return Section(
        "accuracy",
        "Beginnings and ends",
        "A left-to-right decoder tends to begin well, a right-to-left decoder to end "
        "well; SB-NMT should do both.",
        [table],
        [finish(canvas, "accuracy", caption)],
        [DEFINITION],
    )
