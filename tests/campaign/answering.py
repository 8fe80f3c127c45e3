"""The Python API as a command: answers lines of a file as fairseq-interactive does.

    python tests/campaign/answering.py FOLDER CHECKPOINT DATA FILE OPTIONS

OPTIONS are those of translate(), as JSON.
"""

from __future__ import annotations

import json
import sys

from sbnmt_plugin.model import SBTransformerModel
from sbnmt_plugin.tools.text import read_lines

PIECE = 100  # lines that are given at once


def main() -> None:
    folder, checkpoint, data, path, options = sys.argv[1:]
    model = SBTransformerModel.from_pretrained(folder, checkpoint, data, num_workers=0)
    lines = read_lines(path)
    for start in range(0, len(lines), PIECE):
        answers = model.translate(lines[start : start + PIECE], **json.loads(options))
        for number, answer in enumerate(answers, start=start):
            sys.stdout.write(f"H-{number}\t0\t{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
