"""Section 7 (Table 8 by machine): dropped and repeated source words, estimated."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sbnmt_plugin.tools.report.content import Column, Figure, Section, Table
from sbnmt_plugin.tools.report.drawing import INK, colours, finish, panels
from sbnmt_plugin.tools.report.inputs import Inputs
from sbnmt_plugin.tools.report.scores import counted
from sbnmt_plugin.tools.word_links import Links, found_by_eflomal, grow_diag

DEFINITION = (
    "An estimate by machine, not the paper's count by four people. eflomal aligns the "
    "sources with the reference and with every system's output (both directions, "
    "joined by grow-diag). A source word is counted as under-translated if it is "
    "linked to a word of the first reference but to none of the output; as "
    "over-translated if it is linked to the same output word more than once, and more "
    "often than in the reference. Both as a share of all source words. The aligner "
    "makes mistakes and draws random numbers without a seed, so small differences "
    "between systems mean nothing: the range over repeated runs stands beside each "
    "number. Words that the aligner leaves alone even in the reference are no errors; "
    "their share is given to show what it cannot see."
)
TITLE = "Over- and under-translation (estimate)"
NO_ALIGNER = (
    "The word aligner is not installed: pip install 'sbnmt-plugin[report]' "
    "(eflomal, needs a C compiler)."
)
Texts = list[list[str]]  # tokens of each sentence


def linked_words(links: Links, target: list[str]) -> dict[int, Counter[str]]:
    """Count the target words that each source place is linked to."""
    found: dict[int, Counter[str]] = {}
    for source, place in links:
        found.setdefault(source, Counter())[target[place].lower()] += 1
    return found


def under_translated(output: Links, reference: Links) -> set[int]:
    """Return source places that the reference translates and the output does not."""
    return {i for i, _ in reference} - {i for i, _ in output}


def over_translated(
    output: Links, reference: Links, output_words: list[str], gold_words: list[str]
) -> set[int]:
    """Return source places linked to more copies of a word than in the reference."""
    ours = linked_words(output, output_words)
    golds = linked_words(reference, gold_words)
    return {
        place
        for place, words in ours.items()
        for word, count in words.items()
        if count > 1 and count > golds.get(place, Counter())[word]
    }


def ratios(
    sources: list[list[str]],
    outputs: list[list[str]],
    golds: list[list[str]],
    output_links: list[Links],
    gold_links: list[Links],
) -> tuple[float, float]:
    """Return over- and under-translated source words, in percent of all."""
    over = under = 0
    for one in zip(output_links, gold_links, outputs, golds):
        over += len(over_translated(*one))
        under += len(under_translated(*one[:2]))
    words = sum(map(len, sources)) or 1
    return 100 * over / words, 100 * under / words


def unaligned(sources: list[list[str]], links: list[Links]) -> float:
    """Return source words without any link, in percent of all."""
    alone = sum(
        len(words) - len({i for i, _ in pairs}) for words, pairs in zip(sources, links)
    )
    return 100 * alone / (sum(map(len, sources)) or 1)


def align(sources: list[list[str]], targets: list[list[str]]) -> list[Links]:
    """Align with eflomal, on this machine and without a network.

    Raises:
        ImportError: eflomal is not installed.
    """
    pairs = found_by_eflomal(map(" ".join, sources), map(" ".join, targets))
    return [grow_diag(forward, reverse) for forward, reverse in pairs]


def estimate(
    sources: Texts,
    golds: Texts,
    systems: dict[str, Texts],
    more: list[Texts] | None = None,
    runs: int = 2,
) -> tuple[dict[str, list[tuple[float, float, float]]], list[float]]:
    """Estimate over-, under-translation and unaligned words, run by run.

    Everything is aligned together, so that rare words are seen more than once.

    Args:
        more: further sources and their targets, such as training data, which help the
            aligner.

    Returns:
        For each system (over, under, unaligned) of each run; unaligned words of the
        reference in each run; all in percent of source words.

    Raises:
        ImportError: eflomal is not installed.
    """
    count = len(sources)
    further, targets = more or ([], [])
    texts = [golds, *systems.values(), targets]
    origin = [*(sources for _ in range(1 + len(systems))), further]
    flat = [words for text in texts for words in text]
    found: dict[str, list[tuple[float, float, float]]] = {n: [] for n in systems}
    plain = []
    for _ in range(runs):
        links = align([words for text in origin for words in text], flat)
        gold_links = links[:count]
        plain.append(unaligned(sources, gold_links))
        for place, (name, outputs) in enumerate(systems.items(), start=1):
            ours = links[place * count : (place + 1) * count]
            pair = ratios(sources, outputs, golds, ours, gold_links)
            found[name].append((*pair, unaligned(sources, ours)))
    return found, plain


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def drawn(over: dict[str, list[float]], under: dict[str, list[float]]) -> Figure:
    """Draw over- and under-translation: bars of means, a stroke a run."""
    with panels(2, 0.9 + 0.34 * len(over), sharey=True) as (canvas, axes):
        looks = colours(list(over))
        titles = ("under-translated (estimate)", "over-translated (estimate)")
        for axis, values, title in zip(axes, (under, over), titles):
            for y, (name, runs) in enumerate(values.items()):
                axis.barh(y, mean(runs), 0.55, color=looks[name][0], alpha=0.85)
                axis.plot(runs, [y] * len(runs), "|", color=INK, markersize=9)
            axis.set_yticks(range(len(values)), list(values))
            axis.set_xlabel("source words (%)")
            axis.set_title(title)
            axis.grid(axis="y", visible=False)
            axis.set_xlim(left=0)
        axes[0].set_ylim(len(over) - 0.5, -0.5)
    caption = (
        "Source words that the aligner finds dropped or repeated (the paper's Table 8, "
        "by machine). A stroke is one run of the aligner, a bar their mean."
    )
    return finish(canvas, "translation-errors", caption)


def error_rates(given: Inputs) -> list[Table]:
    """Tabulate AER of the systems that have one."""
    if not given.error_rates:
        return []
    columns = [Column("system"), Column("AER", "%", ".2f", "low")]
    rows = [[name, rate] for name, rate in given.error_rates.items()]
    caption = "Word alignment error rate, the reference forced."
    text = "Where a model looks while it writes, against links that are known."
    return [Table("aer", caption, columns, rows, text=text)]


def without_aligner(given: Inputs, reason: str) -> Section:
    """Show AER alone, and why the rest is not there."""
    if given.error_rates:
        return Section("alignment", TITLE, reason, error_rates(given))
    return Section("alignment", TITLE, missing=reason)


def section(given: Inputs, runs: int) -> Section:
    """Estimate over- and under-translation; show AER, where it is known."""
    if not runs:
        return without_aligner(given, "Asked for: --aligner-runs 0.")
    try:
        found, plain = estimate(
            given.source_tokens,
            given.reference_tokens[0],
            given.system_tokens,
            given.bitext,
            runs,
        )
    except ImportError:
        return without_aligner(given, NO_ALIGNER)
    rows: list[list[Any]] = []
    over: dict[str, list[float]] = {}
    under: dict[str, list[float]] = {}
    for name, values in found.items():
        over[name], under[name], alone = (list(x) for x in zip(*values))
        row: list[Any] = [name]
        for series in (under[name], over[name]):
            row += [mean(series), f"{min(series):.2f}–{max(series):.2f}"]
        rows.append([*row, mean(alone)])
    share, spread = "% of source words", Column("range of runs", "%")
    table = Table(
        "translation-errors",
        f"Estimate, mean of {counted(runs, 'run')} of the aligner.",
        [
            Column("system"),
            *(Column("under-translated", share, ".2f"), spread),
            *(Column("over-translated", share, ".2f"), spread),
            Column("not aligned", share, ".1f"),
        ],
        rows,
        [f"Not aligned even in the reference: {mean(plain):.1f} % of source words."],
    )
    return Section(
        "alignment",
        TITLE,
        "The paper had 100 sentences judged by hand (Table 8).",
        [table, *error_rates(given)],
        [drawn(over, under)],
        [DEFINITION],
    )
