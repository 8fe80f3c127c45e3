#!/usr/bin/env python3
"""Say what the histories are worth: a table of a run.

    check.py --work work/toy_sort [--json FILE]

Of every row that the run has: words too many and too few, in percent of the
reference's, as a difference of multisets; the same with histories of zeros; the word
alignment error rate; links that go to any copy of the right word, in percent;
tokenised BLEU.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.probes import without
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.settings import search_options
from sbnmt_plugin.tools.recipes.systems.ba import HISTORIES
from sbnmt_plugin.tools.results.table import aligned
from sbnmt_plugin.tools.text import read_lines
from sbnmt_plugin.tools.translator import Translator
from sbnmt_plugin.tools.word_alignment import parse_gold
from sbnmt_plugin.tools.word_links import Links

Row = dict[str, float]
COLUMNS = {
    "too many, %": "over",
    "too few, %": "under",
    "errors of number, %": "errors",
    "with histories of zeros": "errors without",
    "AER": "AER",
    "at a copy, %": "copy",
    "tok. BLEU": "BLEU",
}


def errors_of_number(outputs: list[str], references: list[str]) -> tuple[float, float]:
    """Words too many and too few, in percent of the reference's."""
    over = under = total = 0
    for output, reference in zip(outputs, references):
        ours, golds = Counter(output.split()), Counter(reference.split())
        over += (ours - golds).total()
        under += (golds - ours).total()
        total += golds.total()
    return 100 * over / total, 100 * under / total


def at_a_copy(sources: list[str], found: list[Links], gold: list[Links]) -> float:
    """Target words that are linked to any copy of their source word, in percent."""
    right = total = 0
    for source, links, golds in zip(sources, found, gold):
        words, places = source.split(), {j: i for i, j in golds}
        right += sum(words[i] == words[places[j]] for i, j in links)
        total += len(links)
    return 100 * right / total


def translated(
    translator: Translator, lines: list[str], crippled: AbstractContextManager[None]
) -> list[str]:
    """The test set, with a model as it is or not."""
    with crippled:
        found, _ = translator.translate(lines)
    return [translator.text(found[i]) if i in found else "" for i in range(len(lines))]


def measured(work: Path, name: str) -> Row:
    """All columns of a row."""
    words = [str(work / "data"), "--path", str(work / name / "model.pt")]
    words += ["--sb-direction", "l2r"]
    words += search_options(load_recipe(Path(__file__).resolve().parent, small=False))
    translator = Translator(words)
    sources, references, gold = (
        read_lines(work / "text" / f"test.{end}") for end in ("src", "tgt", "links")
    )
    found = read_lines(work / "results" / "aer" / f"{name}.links")
    sure = [[parse_gold(line)[0] for line in links] for links in (found, gold)]
    over, under = errors_of_number(
        translated(translator, sources, nullcontext()), references
    )
    forget = without("histories", translator.models)
    forgetful = translated(translator, sources, forget)
    folders = work / "results", work / "results" / "aer"
    scored, linked = (
        json.loads((folder / f"{name}.json").read_text("utf-8")) for folder in folders
    )
    return {
        "over": over,
        "under": under,
        "errors": over + under,
        "errors without": sum(errors_of_number(forgetful, references)),
        "AER": linked["AER"]["score"],
        "copy": at_a_copy(sources, *sure),
        "BLEU": scored["tokenised BLEU"]["score"],
    }


def main() -> None:
    parser = command.parser(__doc__)
    parser.add_argument("--work", required=True, help="folder of the run", type=Path)
    parser.add_argument("--json", help="file to write the numbers to", type=Path)
    args = parser.parse_args()
    there = [n for n in HISTORIES if (args.work / "results" / f"{n}.json").exists()]
    found = {name: measured(args.work, name) for name in there}
    cells = [
        [HISTORIES[name].title, *(f"{row[key]:.2f}" for key in COLUMNS.values())]
        for name, row in found.items()
    ]
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    print("", *aligned(["system", *COLUMNS], cells), "", sep="\n")


if __name__ == "__main__":
    main()
