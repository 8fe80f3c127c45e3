#!/usr/bin/env python3
"""Say whether a run of the toy recipe did what it is built to show.

    check.py --work work/toy [--row sb-shift]

Rescored, BLEU ≥ 90; both directions win some sentences; and without the interaction, or
with that of another sentence, BLEU as trained falls by at least a point.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.synthetic import parser_of

LEAST_BLEU = 90.0
LEAST_DROP = 1.0


def verdicts(
    rescored: dict[str, Any], sb: dict[str, Any], interaction: dict[str, Any]
) -> list[tuple[str, bool]]:
    """What is expected, and whether it holds."""
    best = rescored["tokenised BLEU"]["score"]
    bleu = sb["tokenised BLEU"]["score"]
    wins = sb["L2R wins"]["score"]
    alone = interaction["λ = 0"]["score"]
    shuffled = interaction["partners shuffled"]["score"]
    return [
        (f"BLEU, rescored, {best:.2f} ≥ {LEAST_BLEU}", best >= LEAST_BLEU),
        (f"both directions win: L2R {wins:.1f} % of the sentences", 0 < wins < 100),
        (f"BLEU {bleu:.2f}, at λ = 0 {alone:.2f}", alone <= bleu - LEAST_DROP),
        (f"with shuffled partners {shuffled:.2f}", shuffled <= bleu - LEAST_DROP),
    ]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--work", required=True, help="folder of the run")
    parser.add_argument("--row", default="sb-shift", help="default: sb-shift")
    args = parser.parse_args()
    row = args.row
    results = Path(args.work, "results")
    found = [
        json.loads((results / name).read_text(encoding="utf-8"))
        for name in (f"{row}+rescored.json", f"{row}.json", f"interaction/{row}.json")
    ]
    print()
    expected = verdicts(*found)
    for words, holds in expected:
        print("ok  " if holds else "FAIL", words, sep="  ")
    sys.exit(int(not all(holds for _, holds in expected)))


if __name__ == "__main__":
    main()
