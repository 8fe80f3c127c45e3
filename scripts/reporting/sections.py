"""The nine sections: numbers from the pure functions, put into tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from texts import read_lines

from reporting import (
    accuracy,
    alignment,
    figures,
    lengths,
    logs,
    scores,
    sentences,
    sizes,
    winners,
)
from reporting.content import Column, Section, Table
from reporting.inputs import Inputs

NEEDS_RECORDS = (
    "No system has records in which both directions win. Decode with --sb-records "
    "FILE.jsonl and give --records NAME=FILE.jsonl."
)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def scoring(given: Inputs, baseline: str, samples: int) -> Section:
    """1: scores, signatures, paired bootstrap."""
    made = scores.tables(
        given.systems,
        given.references,
        given.tokenised,
        given.lowercase,
        given.tokenize,
        baseline,
        samples,
    )
    section = Section(
        "scores",
        "Scores",
        f"{counted(len(given.systems), 'system')}, {len(given.source):,} sentences, "
        f"{counted(len(given.references), 'reference')}, "
        f"{'case ignored' if given.lowercase else 'case-sensitive'}.",
        made,
    )
    if given.tokenised is None:
        section.notes.append(
            "Tokenised BLEU, by which the paper reports, is left out: the texts were "
            "not said to be tokenised. Add --tokenised if they are, or give tokenised "
            "texts with --tokenised-reference and --tokenised-system."
        )
    if len(made) > 1:
        table = made[1]
        values = {
            name: (row[1], row[2]) for name, row in zip(given.systems, table.rows)
        }
        section.figures.append(figures.intervals(values, "BLEU"))
    else:
        section.notes.append("A bootstrap test needs a second --system.")
    return section


def beginnings_and_ends(given: Inputs, n: int) -> Section:
    """2: accuracy of the first and last n tokens."""
    measured = {
        name: [
            accuracy.accuracy(tokens, given.reference_tokens, n, last, in_place)
            for in_place in (True, False)
            for last in (False, True)
        ]
        for name, tokens in given.system_tokens.items()
    }
    columns = [Column("system")] + [
        Column(f"{end} {n}, {how}", "%", ".2f", "high")
        for how in ("in place", "any order")
        for end in ("first", "last")
    ]
    table = Table(
        "accuracy",
        f"Accuracy of the first and the last {n} tokens.",
        columns,
        [[name, *values] for name, values in measured.items()],
    )
    figure = figures.accuracies(
        {name: values[:2] for name, values in measured.items()},
        {name: values[2:] for name, values in measured.items()},
        n,
    )
    return Section(
        "accuracy",
        "Beginnings and ends",
        "A left-to-right decoder tends to begin well, a right-to-left decoder to end "
        "well; SB-NMT should do both.",
        [table],
        [figure],
        [accuracy.DEFINITION],
    )


def source_lengths(given: Inputs, uppers: list[int] | None) -> Section:
    """3: BLEU and output length by source length."""
    counts = [len(tokens) for tokens in given.source_tokens]
    groups = lengths.buckets(counts, uppers or lengths.edges(counts))
    bleu: dict[str, list[float]] = {name: [] for name in given.systems}
    length: dict[str, list[float]] = {name: [] for name in given.systems}
    gold = []
    rows: list[list[Any]] = []
    for group in groups:
        picked = [[text[i] for i in group.places] for text in given.references]
        tokens = given.reference_tokens
        gold.append(
            sum(lengths.mean_length(one, group.places) for one in tokens) / len(tokens)
        )
        row: list[Any] = [group.name, len(group.places), gold[-1]]
        for name, text in given.systems.items():
            part = [text[i] for i in group.places]
            bleu[name].append(
                scores.corpus_bleu(part, picked, given.lowercase, given.tokenize)
            )
            length[name].append(
                lengths.mean_length(given.system_tokens[name], group.places)
            )
            row += [bleu[name][-1], length[name][-1]]
        rows.append(row)
    columns = [
        Column("source length", "tokens"),
        Column("sentences", "", ",d"),
        Column("reference", "tokens", ".1f"),
    ]
    for name in given.systems:
        columns += [Column(name, "BLEU", ".2f"), Column(name, "tokens", ".1f")]
    table = Table("by-length", "BLEU and mean length by source length.", columns, rows)
    names = [group.name for group in groups]
    sizes_ = [len(group.places) for group in groups]
    figure = figures.by_length(names, sizes_, bleu, length, gold)
    section = Section(
        "lengths",
        "Long sentences",
        "Corpus BLEU of each group of sentences, and how long the outputs are.",
        [table],
        [figure],
    )
    if min(sizes_) < lengths.FEWEST:
        section.notes.append(
            f"Groups of fewer than {lengths.FEWEST} sentences say little about BLEU."
        )
    return section


def beams(given: Inputs) -> Section:
    """4: BLEU against beam size."""
    title = "Beam size"
    if given.sweep is None:
        reason = (
            "No sweep was given. scripts/sweep_beam.py decodes what is missing; give "
            "its result as --beam-sweep FILE."
        )
        return Section("beams", title, missing=reason)
    runs = sorted(given.sweep["runs"], key=lambda run: run["beam"])
    names = list(dict.fromkeys(run["system"] for run in given.sweep["runs"]))
    series = {
        name: (
            [run["beam"] for run in runs if run["system"] == name],
            [run["BLEU"] for run in runs if run["system"] == name],
        )
        for name in names
    }
    sweep_beams = sorted({run["beam"] for run in runs})
    lookup = {(run["system"], run["beam"]): run["BLEU"] for run in runs}
    table = Table(
        "beam-sweep",
        "BLEU by beam size.",
        [Column("beam size k", "", "d")]
        + [Column(name, "BLEU", ".2f", "high") for name in names],
        [[k, *(lookup.get((name, k)) for name in names)] for k in sweep_beams],
        sorted({str(run["signature"]) for run in runs if run.get("signature")}),
    )
    return Section(
        "beams",
        title,
        "Conventional search loses quality with wide beams; the paper reports that "
        "SB-NMT does not.",
        [table],
        [figures.beam_sweep(series)],
    )


def speeds(given: Inputs) -> Section:
    """5: parameters and speed."""
    title = "Parameters and speed"
    names = [
        name
        for name in given.systems
        if name in given.train_logs
        or name in given.generate_logs
        or name in given.checkpoints
    ]
    if not names:
        reason = (
            "No logs or checkpoints were given: --checkpoint, --train-log and "
            "--generate-log, each NAME=FILE."
        )
        return Section("speeds", title, missing=reason)
    rows: list[list[Any]] = []
    for name in names:
        row: list[Any] = [name, None, None, None, None, None]
        if name in given.checkpoints:
            state = sizes.read_state(str(given.checkpoints[name]))
            row[1] = sizes.count_parameters(state["model"]) / 1e6
        if name in given.train_logs:
            log = logs.read_train_log(read_lines(given.train_logs[name]))
            row[2:4] = [log.speed("ups"), log.speed("wps")]
        if name in given.generate_logs:
            speed = logs.read_generate_log(read_lines(given.generate_logs[name]))
            if speed is not None:
                row[4:6] = [speed["sentences/s"], speed["tokens/s"]]
        rows.append(row)
    table = Table(
        "speeds",
        "Parameters (tied matrices once), training and decoding speed.",
        [
            Column("system"),
            Column("parameters", "million", ",.2f"),
            Column("training", "updates/s", ".2f"),
            Column("training", "tokens/s", ",.0f"),
            Column("decoding", "sentences/s", ",.2f"),
            Column("decoding", "tokens/s", ",.0f"),
        ],
        rows,
    )
    return Section(
        "speeds",
        title,
        "As in the paper's Table 6.",
        [table],
        notes=[
            "Training speed is the median over the intervals of fairseq's log, "
            "decoding speed its last “Translated …” line. Logs do not say on which "
            "machine, nor what else ran there: compare only runs that were made "
            "alike. Training tokens are those of both streams."
        ],
    )


def directions(given: Inputs, uppers: list[int] | None) -> Section:
    """6: which direction won."""
    title = "Which direction won"
    if not given.races:
        return Section("winners", title, missing=NEEDS_RECORDS)
    golds, tokenize = given.references, given.tokenize
    if given.tokenised is not None:  # records hold tokens
        golds, tokenize = given.tokenised[1], "none"
    section = Section(
        "winners",
        title,
        "Both directions finish hypotheses of their own; the search answers with the "
        "better score, whichever direction wrote it.",
    )
    counts = [len(tokens) for tokens in given.source_tokens]
    summary: list[list[Any]] = []
    for name, races in given.races.items():
        both = [race.both for race in races]
        row = [
            name,
            winners.share(races),
            100 - winners.share(races),
            winners.agreement(races),
            100 * sum(both) / len(both),
        ]
        picked = winners.choices(races, golds, given.lowercase, tokenize)
        row += [
            scores.corpus_bleu(text, golds, given.lowercase, tokenize)
            for text in picked.values()
        ]
        summary.append(row)
    section.tables.append(
        Table(
            "winners",
            "Sentences won, and BLEU under each rule of choosing a direction.",
            [
                Column("system"),
                Column("L2R won", "%", ".1f"),
                Column("R2L won", "%", ".1f"),
                Column("same text", "%", ".1f"),
                Column("both finished", "%", ".1f"),
                *(
                    Column(rule, "BLEU", ".2f")
                    for rule in (
                        "the search's choice",
                        "always L2R",
                        "always R2L",
                        "better one (oracle)",
                    )
                ),
            ],
            summary,
            [f"BLEU of the records' texts, tok:{tokenize}"],
            text="“Same text”: both directions' best outputs agree.",
        )
    )
    name, races = next(iter(given.races.items()))
    by_length = [
        (g.name, len(g.places), winners.share([races[i] for i in g.places]))
        for g in lengths.buckets(counts, uppers or lengths.edges(counts))
    ]
    by_margin = [
        (f"{low:.2f}–\n{high:.2f}", len(part), winners.share([races[i] for i in part]))
        for low, high, part in winners.margin_groups(races)
    ]
    section.figures.append(figures.shares(by_length, by_margin))
    for key, heading, groups in (
        ("winners-by-length", "source length (tokens)", by_length),
        ("winners-by-margin", "margin of log scores", by_margin),
    ):
        section.tables.append(
            Table(
                key,
                f"L2R's share of {name}, by {heading.split(' (')[0]}.",
                [
                    Column(heading),
                    Column("sentences", "", ",d"),
                    Column("L2R won", "%", ".1f"),
                ],
                [[label.replace("\n", ""), *rest] for label, *rest in groups],
                shown=False,  # the figure has these numbers
            )
        )
    section.notes.append(
        "The oracle takes the direction with the higher sentence BLEU: no rule that "
        "only chooses between the two can score much higher. A direction that never "
        "finished is replaced by the other."
    )
    return section


def translation_errors(given: Inputs, runs: int) -> Section:
    """7: over- and under-translation, estimated."""
    title = "Over- and under-translation (estimate)"
    try:
        found, plain = alignment.estimate(
            given.source_tokens,
            given.reference_tokens[0],
            given.system_tokens,
            given.bitext,
            runs,
        )
    except ImportError:
        reason = (
            "The word aligner is not installed: pip install 'sbnmt-plugin[report]' "
            "(eflomal, needs a C compiler)."
        )
        return Section("alignment", title, missing=reason)

    def mean(values: list[float]) -> float:
        return sum(values) / len(values)

    rows: list[list[Any]] = []
    over: dict[str, list[float]] = {}
    under: dict[str, list[float]] = {}
    for name, values in found.items():
        over[name], under[name], alone = (list(x) for x in zip(*values))
        row: list[Any] = [name]
        for series in (under[name], over[name]):
            row += [mean(series), f"{min(series):.2f}–{max(series):.2f}"]
        rows.append([*row, mean(alone)])
    table = Table(
        "translation-errors",
        f"Estimate, mean of {counted(runs, 'run')} of the aligner.",
        [
            Column("system"),
            Column("under-translated", "% of source words", ".2f", "low"),
            Column("range of runs", "%"),
            Column("over-translated", "% of source words", ".2f", "low"),
            Column("range of runs", "%"),
            Column("not aligned", "% of source words", ".1f"),
        ],
        rows,
        [f"Not aligned even in the reference: {mean(plain):.1f} % of source words."],
    )
    return Section(
        "alignment",
        title,
        "The paper had 100 sentences judged by hand (Table 8).",
        [table],
        [figures.translation_errors(over, under)],
        [alignment.DEFINITION],
    )


def browser(given: Inputs) -> tuple[Section, dict[str, Any]]:
    """8: all sentences, as data for the page."""
    data = sentences.browser_data(
        given.source,
        given.references,
        given.systems,
        [len(tokens) for tokens in given.source_tokens],
        given.races,
        given.lowercase,
    )
    section = Section("sentences", "Sentence by sentence", sentences.DEFINITION)
    names = list(given.systems)
    columns = [Column("line", "", "d"), Column("source"), Column("source tokens")]
    columns += [Column(f"reference {i + 1}") for i in range(len(given.references))]
    for name in names:
        columns += [Column(name), Column(f"{name} {sentences.SCORE}", "", ".1f")]
    columns += [Column(f"{name} winner") for name in given.races]
    rows = []
    for i, (line, golds, outputs, values, length, won) in enumerate(data["rows"]):
        row: list[Any] = [i + 1, line, length, *golds]
        for output, value in zip(outputs, values):
            row += [output, value]
        rows.append([*row, *({"l": "L2R", "r": "R2L"}[letter] for letter in won)])
    section.tables.append(Table("sentences", "", columns, rows, shown=False))
    return section, data


def curves(given: Inputs) -> Section:
    """9: training curves per direction."""
    title = "Training"
    found = {
        name: logs.read_train_log(read_lines(Path(path)))
        for name, path in given.train_logs.items()
    }
    found = {name: log for name, log in found.items() if any(log.points.values())}
    if not found:
        reason = (
            "No training log was given: --train-log NAME=FILE, written by "
            "fairseq-train with --log-format simple."
        )
        return Section("training", title, missing=reason)
    train, valid, bleu = {}, {}, {}
    rows: list[list[Any]] = []
    for name, log in found.items():
        for direction in winners.NAMES:
            quantity = f"nll_loss_{direction}"
            for kinds, curve in (
                (("train_inner", "train"), train),
                (("valid",), valid),
            ):
                for kind in kinds:
                    x, y = log.series(kind, quantity)
                    if x:
                        curve[name, direction] = (x, y)
                        rows += [
                            [name, kind, quantity, int(a), b] for a, b in zip(x, y)
                        ]
                        break
        x, y = log.series("valid", "bleu")
        if x:
            bleu[name] = (x, y)
            rows += [[name, "valid", "bleu", int(a), b] for a, b in zip(x, y)]
    if not train:
        reason = (
            "The training logs have no losses per direction: they are not of criterion "
            "sb_label_smoothed_cross_entropy with --log-format simple."
        )
        return Section("training", title, missing=reason)
    order = [name for name in given.systems if name in found]
    columns = [
        Column("system"),
        Column("split"),
        Column("quantity"),
        Column("updates", "", ",d"),
        Column("value", "", ".3f"),
    ]
    return Section(
        "training",
        title,
        "What each direction loses in training and validation.",
        [Table("training", "", columns, rows, shown=False)],
        [figures.training(train, valid, bleu, order)],
        [
            "Losses of gold text on both sides are far too good, as each stream sees "
            "through the other what it has to predict: trust BLEU."
        ],
    )
