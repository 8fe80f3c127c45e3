"""Section 2 (Table 1, Figure 7): how good the beginnings and the ends are."""

from __future__ import annotations

from collections import Counter

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
Tokens = list[str]


def right_in_place(output: Tokens, reference: Tokens, n: int) -> int:
    """Tokens that stand at the same place among the first n."""
    return sum(a == b for a, b in zip(output[:n], reference[:n]))


def right_in_any_order(output: Tokens, reference: Tokens, n: int) -> int:
    """Tokens common to the first n of both, each used once."""
    return sum((Counter(output[:n]) & Counter(reference[:n])).values())


def accuracy(
    outputs: list[Tokens],
    references: list[list[Tokens]],
    n: int,
    last: bool = False,
    in_place: bool = True,
) -> float:
    """Accuracy of the first or last n tokens, in percent.

    Args:
        outputs: tokens, one list a sentence.
        references: as many of these as there are references.
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
