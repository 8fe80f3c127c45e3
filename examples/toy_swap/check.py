#!/usr/bin/env python3
"""Say whether one model translates both ways, and with how many parameters.

    check.py --work work/toy_swap [--json FILE]

Expected of the row two-way: BLEU ≥ 90 in both directions, from one checkpoint with
fewer parameters than two Transformers; and that the last source word, whose column a
grid of words alone would not read, is translated: written anew, almost all answers
change.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.settings import search_options
from sbnmt_plugin.tools.recipes.systems.two_way import TWO_WAY
from sbnmt_plugin.tools.results.table import aligned
from sbnmt_plugin.tools.synthetic import LANGUAGES
from sbnmt_plugin.tools.text import read_lines
from sbnmt_plugin.tools.translator import Translator

LEAST_BLEU = 90.0
LEAST_CHANGED = 95.0  # per cent
COMPARED = ("teacher-l2r", "two-way")
NAMES = ("teacher-l2r", *TWO_WAY)


def with_another_end(lines: list[str]) -> list[str]:
    """Every sentence with the last word of the next one that has another."""
    words = [line.split() for line in lines]
    found = []
    for number, own in enumerate(words):
        others = (words[(number + i) % len(words)][-1] for i in range(1, len(words)))
        end = next(other for other in others if other != own[-1])
        found.append(" ".join([*own[:-1], end]))
    return found


def loaded(work: Path, row: str, source: str, target: str) -> Translator:
    """The model of a row, as the recipe searches."""
    words = [str(work / "data"), "--path", str(work / row / "model.pt")]
    words += ["--sb-direction", "l2r", "--source-lang", source, "--target-lang", target]
    words += search_options(load_recipe(Path(__file__).resolve().parent, small=False))
    return Translator(words)


def changed_by_the_end(work: Path, source: str, target: str) -> float:
    """How many of the two-way model's answers the last word changes, in per cent."""
    translator = loaded(work, "two-way", source, target)
    lines = read_lines(work / "text" / f"test.{source}")
    before, after = (
        translator.translate(text)[0] for text in (lines, with_another_end(lines))
    )
    texts = [
        [translator.text(found[i]) for i in range(len(lines))]
        for found in (before, after)
    ]
    return 100 * sum(one != other for one, other in zip(*texts)) / len(lines)


def measured(work: Path) -> dict[str, dict[str, float]]:
    """BLEU of every row of the run, and parameters of those that are compared."""
    found: dict[str, dict[str, float]] = {}
    for name in NAMES:
        path = work / "results" / f"{name}.json"
        if path.exists():
            scored = json.loads(path.read_text("utf-8"))
            found[name] = {"BLEU": scored["tokenised BLEU"]["score"]}
            if name in COMPARED:
                (model,) = loaded(work, name, *LANGUAGES).models
                count = sum(each.numel() for each in model.parameters())
                found[name]["parameters"] = count
    return found


def verdicts(
    rows: dict[str, dict[str, float]], changed: list[float]
) -> list[tuple[str, bool]]:
    """What is expected, and whether it holds."""
    forth, back = rows["two-way"], rows["two-way-back"]
    own, two = forth["parameters"], 2 * rows["teacher-l2r"]["parameters"]
    return [
        (f"BLEU forth {forth['BLEU']:.2f} ≥ {LEAST_BLEU}", forth["BLEU"] >= LEAST_BLEU),
        (f"BLEU back {back['BLEU']:.2f} ≥ {LEAST_BLEU}", back["BLEU"] >= LEAST_BLEU),
        (f"{own:,} parameters < {two:,}, those of two Transformers", own < two),
        *(
            (f"{name}: another last word changes {share:.1f} %", share >= LEAST_CHANGED)
            for name, share in zip(("forth", "back"), changed)
        ),
    ]


def main() -> None:
    parser = command.parser(__doc__)
    parser.add_argument("--work", required=True, help="folder of the run", type=Path)
    parser.add_argument("--json", help="file to write the numbers to", type=Path)
    args = parser.parse_args()
    found = measured(args.work)
    cells = [
        [name, f"{row['BLEU']:.2f}", f"{row.get('parameters', '')}"]
        for name, row in found.items()
    ]
    changed = [
        changed_by_the_end(args.work, *pair) for pair in (LANGUAGES, LANGUAGES[::-1])
    ]
    numbers = {"rows": found, "changed by the last word": changed}
    if args.json:
        args.json.write_text(json.dumps(numbers, indent=1) + "\n", "utf-8")
    print("", *aligned(["row", "tok. BLEU", "parameters"], cells), "", sep="\n")
    expected = verdicts(found, changed)
    for words, holds in expected:
        print("ok  " if holds else "FAIL", words, sep="  ")
    sys.exit(int(not all(holds for _, holds in expected)))


if __name__ == "__main__":
    main()
