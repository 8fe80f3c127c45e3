"""Write a bitext in both translation directions, for one Transformer of both.

    sbnmt both-ways --text bpe -s en -t de --output both
    sbnmt binarise -s en -t de --trainpref both/train --validpref both/valid \\
        --testpref both/test --destdir data-both --joined-dictionary

TEXT holds train, valid and test of both languages.  In OUTPUT the sources of train and
valid are every pair's source, then every pair's target, each after a tag that names the
language to translate into (<2de>).  test is the test set with its tags.  back is the
same the other way round; its source text has the source language's ending, too.
"""

from __future__ import annotations

from pathlib import Path

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.text import each_parallel, write_lines
from sbnmt_plugin.tools.unfinished import new_folder, refuse_existing

# split -> the text it is made of, and the sides that are its source
SPLITS = {
    "train": ("train", (0, 1)),
    "valid": ("valid", (0, 1)),
    "test": ("test", (0,)),
    "back": ("test", (1,)),
}


def main() -> None:
    parser = command.parser(__doc__)
    parser.add_argument("--text", required=True, help="folder of the texts", type=Path)
    parser.add_argument("-s", "--source-lang", required=True)
    parser.add_argument("-t", "--target-lang", required=True)
    parser.add_argument("--output", required=True, help="new folder", type=Path)
    args = parser.parse_args()
    languages = args.source_lang, args.target_lang
    if languages[0] == languages[1]:
        raise ValueError(
            f"--source-lang and --target-lang must be two languages, but both are "
            f"{languages[0]}"
        )
    refuse_existing("--output", args.output)
    with new_folder(args.output) as folder:
        for split, (origin, ways) in SPLITS.items():
            files = [args.text / f"{origin}.{language}" for language in languages]
            for side, language in enumerate(languages):
                lines = (
                    pair[1 - way] if side else f"<2{languages[1 - way]}> {pair[way]}"
                    for way in ways
                    for pair in each_parallel(*files)
                )
                write_lines(folder / f"{split}.{language}", lines)
