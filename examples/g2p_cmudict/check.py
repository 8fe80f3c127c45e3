#!/usr/bin/env python3
r"""Say whether a run shows that two directions pronounce better than one.

    check.py --work work/g2p [--row sb] [--seeds 1 2 3] \
        [--against teacher-l2r teacher-r2l transformer-pr]

The row's word error rate is to be at least 3 % lower, relative, than that of the best
row of --against, by default the better one-directional Transformer of gold text, by the
paired bootstrap at p < 0.05.  Several seeds are pooled: words are drawn, each with the
answers of all seeds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sbnmt_plugin.tools.phonemes import WordErrorRate
from sbnmt_plugin.tools.results.bootstrap import bootstrap, of_all_seeds, seeds_together
from sbnmt_plugin.tools.text import read_lines

LEAST_GAIN = 0.03
LARGEST_P = 0.05
TEACHERS = ("teacher-l2r", "teacher-r2l")


def answers(results: Path, row: str, seeds: Sequence[int]) -> list[str]:
    """A line a word: what each seed of the row answers."""
    names = [row if seed == 1 else f"{row}@{seed}" for seed in seeds]
    runs = [read_lines(results / f"{name}.tok") for name in names]
    return seeds_together(runs)


def verdicts(
    row: str, systems: dict[str, list[str]], references: list[list[str]]
) -> list[tuple[str, bool]]:
    """What is expected of a row beside all other systems, and whether it holds."""
    metrics = {"WER": of_all_seeds(WordErrorRate())}
    first, _ = bootstrap(systems, references, row, metrics)
    rates = {name: outcome["WER"].score for name, outcome in first.items()}
    chances = {name: outcome["WER"].p for name, outcome in first.items()}

    def hard_to_beat(name: str) -> tuple[float, float]:
        p = chances[name]
        assert p is not None  # which it is for the baseline alone
        return rates[name], -p

    best = min((name for name in systems if name != row), key=hard_to_beat)
    gain = 1 - rates[row] / rates[best] if rates[best] else 0.0
    p = -hard_to_beat(best)[1]
    return [
        (
            f"{row}: WER {rates[row]:.2f} %, {100 * abs(gain):.1f} % "
            f"{'lower' if gain >= 0 else 'higher'} than {best}'s "
            f"{rates[best]:.2f} % (wanted: {100 * LEAST_GAIN:.0f} % lower)",
            gain >= LEAST_GAIN,
        ),
        (f"p = {p:.3f} < {LARGEST_P}", p < LARGEST_P),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", required=True, help="folder of the run")
    parser.add_argument("--row", default="sb", help="default: sb")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="default: 1")
    parser.add_argument(
        "--against",
        nargs="+",
        default=TEACHERS,
        metavar="ROW",
        help=f"default: {' '.join(TEACHERS)}",
    )
    args = parser.parse_args()
    if args.row in args.against:
        parser.error(f"--against must be other rows than --row, but has {args.row}")
    work = Path(args.work)
    for name in (args.row, *args.against):
        if not (work / "results" / f"{name}.tok").is_file() or "@" in name:
            parser.error(
                f"--row and --against must be rows of {work} without a seed, which "
                f"--seeds gives, but {name} is none: sbnmt recipe g2p_cmudict --rows "
                f"{name.partition('@')[0]}"
            )
    systems = {
        name: answers(work / "results", name, args.seeds)
        for name in (args.row, *args.against)
    }
    paths = sorted((work / "text").glob("test.phonemes*"))
    print()
    expected = verdicts(args.row, systems, [read_lines(p) for p in paths])
    for words, holds in expected:
        print("ok  " if holds else "FAIL", words, sep="  ")
    sys.exit(int(not all(holds for _, holds in expected)))


if __name__ == "__main__":
    main()
