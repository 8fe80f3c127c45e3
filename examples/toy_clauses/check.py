#!/usr/bin/env python3
"""Say what interaction is worth beside larger beams, by how many clauses are open.

    check.py --work work/toy_clauses [--sweeps FILE …] [--json FILE] [--plot NAME]

Reads what `sbnmt sweep-beam --work work/toy_clauses --rows …` has decoded, and shows of
every row and beam how many of the sentences are right, word for word, in percent: those
that one direction can write alone, and those in which one, two or three clauses stay
open to each.  Seeds of a row (`sb@2`) are shown together, mean ± standard deviation.
With --plot NAME also NAME.svg is drawn.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from pathlib import Path

from sbnmt_plugin import quiet
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.results.sweep import Setting
from sbnmt_plugin.tools.results.table import aligned
from sbnmt_plugin.tools.text import as_written, read_lines, remove_bpe
from sbnmt_plugin.tools.translations import read_generated
from sbnmt_plugin.tools.unfinished import new_file

KINDS = ("alone", "1 open", "2 open", "3 open")
SB, TWIN = "sb", "sb-lambda0+rescored"
Shares = dict[str, float]
Run = tuple[str, int]  # a row, and a beam


def kind_of(source: str) -> str:
    """How many clauses stay open to each direction, by the marker and the commas."""
    marker, *words = source.split()
    count = words.count(",") + 1
    return KINDS[count // 2] if marker == "both" else KINDS[0]


def right(answers: list[str], sources: list[str], gold: list[str]) -> Shares:
    """Sentences that are as the reference, in percent, by kind."""
    found = defaultdict(list)
    for answer, source, text in zip(answers, sources, gold, strict=True):
        found[kind_of(source)].append(answer.split() == text.split())
    return {kind: 100 * sum(each) / len(each) for kind, each in found.items()}


def decoded(output: Path) -> dict[Run, list[str]]:
    """Answers of a sweep, by row and beam.

    Raises:
        ValueError: the sweep has not been run.
    """
    with as_written(output, "run sbnmt sweep-beam as README.md says"):
        runs = json.loads(output.read_text(encoding="utf-8"))["runs"]
    answers = {}
    for run in runs:
        name, beam = run["system"], run["beam"]
        folder = Path(f"{output}.runs") / "test" / Setting(beam).folder(name)
        found = sorted(read_generated(folder / "generate-test.txt").items())
        answers[name, beam] = [remove_bpe(text) for _, text in found]
    return answers


def of_all_seeds(found: dict[Run, Shares]) -> dict[Run, list[Shares]]:
    """Shares by row, without its seed, and beam: one for each seed."""
    every = defaultdict(list)
    for (name, beam), shares in found.items():
        row = Row.parse(name).name.partition("@")[0]
        every[row, beam].append(shares)
    return dict(every)


def means(seeds: list[Shares]) -> Shares:
    return {kind: statistics.mean(seed[kind] for seed in seeds) for kind in KINDS}


def shown(values: list[float]) -> str:
    """A mean, and what seeds differ by if there are several."""
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}"


def plot(shares: dict[Run, Shares], name: str) -> None:
    """Draw the shares of both rows against the beam, to NAME.svg."""
    quiet.only_warnings("matplotlib")
    from sbnmt_plugin.tools.report.beams import beam_sweep

    titles = {SB: "interaction", TWIN: "none, rescored"}
    series = {
        f"{title}, {kind}": (
            [beam for row, beam in shares if row == name],
            [found[kind] for (row, _), found in shares.items() if row == name],
        )
        for name, title in titles.items()
        for kind in KINDS[1:]
    }
    with new_file(f"{name}.svg", "wb") as file:
        file.write(beam_sweep(series, "sentences right, %").svg)


def main() -> None:
    parser = command.parser(__doc__)
    parser.add_argument("--work", required=True, help="folder of the run", type=Path)
    parser.add_argument("--json", help="file to write the numbers to", type=Path)
    parser.add_argument(
        "--sweeps",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="outputs of sweep-beam (default: WORK/beam-sweep.json)",
    )
    parser.add_argument("--plot", metavar="NAME", help="draw it to NAME.svg")
    args = parser.parse_args()
    text = args.work / "text"
    sources, gold = (read_lines(text / f"test.{end}") for end in ("src", "tgt"))
    found = {
        run: right(answers, sources, gold)
        for sweep in args.sweeps or [args.work / "beam-sweep.json"]
        for run, answers in decoded(sweep).items()
    }
    seeds = of_all_seeds(found)
    cells = [
        [name, str(beam), *(shown([seed[kind] for seed in each]) for kind in KINDS)]
        for (name, beam), each in seeds.items()
    ]
    numbers = [{"row": name, "beam": beam, **n} for (name, beam), n in found.items()]
    if args.json:
        args.json.write_text(json.dumps({"rows": numbers}, indent=1) + "\n", "utf-8")
    print("", *aligned(["right, %", "beam", *KINDS], cells), "", sep="\n")
    if args.plot:
        plot({run: means(each) for run, each in seeds.items()}, args.plot)


if __name__ == "__main__":
    main()
