#!/usr/bin/env python3
"""Say which rows write in one style, and what the phrase table is worth.

    check.py --work work/toy_styles [--json FILE]

Of every row that the run has: sentences of one style throughout, in percent; sentences
that are one of the references, word for word, in percent; words too many or too
few, a sentence; tokenised BLEU with all references.
"""

from __future__ import annotations

import json
from pathlib import Path

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.evaluation import References
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.systems import SYSTEMS
from sbnmt_plugin.tools.results.table import aligned
from sbnmt_plugin.tools.text import read_lines

STYLES = ("e", "io", "iu", "iy")  # prepare.py's
Row = dict[str, float]
COLUMNS = {
    "one style, %": "one style",
    "right, %": "right",
    "words off": "words off",
    "tok. BLEU": "BLEU",
}


def of_one_style(text: str) -> bool:
    """Whether all words of a text, which has any, are of the same style."""
    words = text.split()
    ends = {word[-1] for word in words}
    return bool(words) and any(ends <= set(style) for style in STYLES)


def percentage(found: list[bool]) -> float:
    return 100 * sum(found) / len(found)


def described(outputs: list[str], references: list[list[str]]) -> Row:
    """What a text says of its row.

    Args:
        outputs: a line a sentence.
        references: such texts, one a style.
    """
    rights = [set(lines) for lines in zip(*references)]
    off = [
        min(abs(len(output.split()) - len(right.split())) for right in those)
        for output, those in zip(outputs, rights)
    ]
    return {
        "one style": percentage([of_one_style(output) for output in outputs]),
        "right": percentage([text in those for text, those in zip(outputs, rights)]),
        "words off": sum(off) / len(off),
    }


def measured(work: Path) -> dict[str, Row]:
    """All columns of every row of the run."""
    recipe = load_recipe(Path(__file__).resolve().parent, small=False)
    references = References(work / "text", "tgt", len(STYLES)).read("test")
    found = {}
    for name in recipe["rows"]:
        path = work / "results" / f"{name}.json"
        if path.exists():
            row = described(read_lines(path.with_suffix(".tok")), references)
            scored = json.loads(path.read_text("utf-8"))
            found[name] = {**row, "BLEU": scored["tokenised BLEU"]["score"]}
    return found


def main() -> None:
    parser = command.parser(__doc__)
    parser.add_argument("--work", required=True, help="folder of the run", type=Path)
    parser.add_argument("--json", help="file to write the numbers to", type=Path)
    args = parser.parse_args()
    found = measured(args.work)
    cells = [
        [SYSTEMS[name].title, *(f"{row[key]:.2f}" for key in COLUMNS.values())]
        for name, row in found.items()
    ]
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    print("", *aligned(["system", *COLUMNS], cells), "", sep="\n")


if __name__ == "__main__":
    main()
