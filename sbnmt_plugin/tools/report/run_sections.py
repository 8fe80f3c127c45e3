"""Sections 4, 5, 6 and 9: what runs left behind tells: sweeps, logs, records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.report import figures, lengths, logs, scores, sizes, winners
from sbnmt_plugin.tools.report.content import Column, Section, Table
from sbnmt_plugin.tools.report.inputs import Inputs
from sbnmt_plugin.tools.text import read_lines
from sbnmt_plugin.tools.translations import read_generate_log

NEEDS_RECORDS = (
    "No system has records in which both directions win. Decode with --sb-records "
    "FILE.jsonl and give --records NAME=FILE.jsonl."
)


def beams(given: Inputs) -> Section:
    """4: BLEU against beam size."""
    title = "Beam size"
    if given.sweep is None:
        reason = (
            "No sweep was given. sbnmt sweep-beam decodes what is missing; "
            "give "
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
        + [Column(name, "BLEU", ".2f") for name in names],
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
    from sbnmt_plugin.checkpoints import read_checkpoint  # here: it takes seconds

    rows: list[list[Any]] = []
    for name in names:
        row: list[Any] = [name, None, None, None, None, None]
        if name in given.checkpoints:
            checkpoint = read_checkpoint(str(given.checkpoints[name]), "(--checkpoint)")
            row[1] = sizes.count_parameters(checkpoint["model"]) / 1e6
        if name in given.train_logs:
            log = logs.read_train_log(read_lines(given.train_logs[name]))
            row[2:4] = [log.speed("ups"), log.speed("wps")]
        if name in given.generate_logs:
            speed = read_generate_log(read_lines(given.generate_logs[name]))
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


def outcomes(given: Inputs) -> Table:
    """Who won, and BLEU under each rule of choosing a direction."""
    golds, tokenize = given.references, given.tokenize
    if given.tokenised is not None:  # records hold tokens
        golds, tokenize = given.tokenised[1], "none"
    rows: list[list[Any]] = []
    for name, races in given.races.items():
        both = [race.both for race in races]
        won = winners.share(races)
        row = [name, won, 100 - won, winners.agreement(races)]
        row.append(100 * sum(both) / len(both))
        picked = winners.choices(races, golds, given.lowercase, tokenize)
        row += [
            scores.corpus_bleu(text, golds, given.lowercase, tokenize)
            for text in picked.values()
        ]
        rows.append(row)
    rules = ("the search's choice", "always L2R", "always R2L", "better one (oracle)")
    return Table(
        "winners",
        "Sentences won, and BLEU under each rule of choosing a direction.",
        [
            Column("system"),
            Column("L2R won", "%", ".1f"),
            Column("R2L won", "%", ".1f"),
            Column("same text", "%", ".1f"),
            Column("both finished", "%", ".1f"),
            *(Column(rule, "BLEU", ".2f") for rule in rules),
        ],
        rows,
        [f"BLEU of the records' texts, tok:{tokenize}"],
        text="“Same text”: both directions' best outputs agree.",
    )


Group = tuple[str, int, float]


def shares(given: Inputs, uppers: list[int] | None) -> dict[str, list[Group]]:
    """L2R's share for the first system, by source length and by margin.

    Returns:
        kind -> name of the group, number of sentences and share of each.
    """
    races = next(iter(given.races.values()))
    counts = [len(tokens) for tokens in given.source_tokens]
    groups = lengths.buckets(counts, uppers or lengths.edges(counts))

    def of(places: Any) -> tuple[int, float]:
        return len(places), winners.share([races[i] for i in places])

    return {
        "length": [(group.name, *of(group.places)) for group in groups],
        "margin": [
            (f"{low:.2f}–\n{high:.2f}", *of(part))
            for low, high, part in winners.margin_groups(races)
        ],
    }


def directions(given: Inputs, uppers: list[int] | None) -> Section:
    """6: which direction won."""
    title = "Which direction won"
    if not given.races:
        return Section("winners", title, missing=NEEDS_RECORDS)
    found = shares(given, uppers)
    tables = [outcomes(given)]
    for kind, heading in (
        ("length", "source length (tokens)"),
        ("margin", "margin of log scores"),
    ):
        columns = [
            Column(heading),
            Column("sentences", "", ",d"),
            Column("L2R won", "%", ".1f"),
        ]
        rows = [[label.replace("\n", ""), *rest] for label, *rest in found[kind]]
        # the figure has these numbers
        tables.append(Table(f"winners-by-{kind}", "", columns, rows, shown=False))
    note = (
        "The oracle takes the direction with the higher sentence BLEU: no rule that "
        "only chooses between the two can score much higher. A direction that never "
        "finished is replaced by the other."
    )
    if len(given.races) > 1:
        note += f" The figure is about {next(iter(given.races))}."
    return Section(
        "winners",
        title,
        "Both directions finish hypotheses of their own; the search answers with the "
        "better score, whichever direction wrote it.",
        tables,
        [figures.shares(found["length"], found["margin"])],
        [note],
    )


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
    train: dict[tuple[str, str], figures.Curve] = {}
    valid: dict[tuple[str, str], figures.Curve] = {}
    read: dict[tuple[str, str], figures.Curve] = {}  # with --sb-probe
    bleu: dict[str, figures.Curve] = {}
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
            x, y = log.series("train_inner", f"read_bits_{direction}")
            if x:
                read[name, direction] = (x, y)
                quantity = f"read_bits_{direction}"
                rows += [
                    [name, "train_inner", quantity, int(a), b] for a, b in zip(x, y)
                ]
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
        [figures.training(train, valid, read, bleu, order)],
        [
            "Losses of gold text on both sides are far too good, as each stream sees "
            "through the other what it has to predict: trust BLEU."
        ],
    )
