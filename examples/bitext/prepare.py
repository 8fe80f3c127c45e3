#!/usr/bin/env python3
"""Hold out, clean and tokenise anybody's bitext.

    prepare.py --data RAW --output TEXT --source en --target de [--lowercase]
        [--no-tokenise | --raw] [--characters zh]

RAW holds train.en and train.de, a sentence a line, line by line translations of each
other, plain or as .gz.  It may also hold valid and test.  Where it does not, lines of
train are held out, 1,000 to 2,000 for each, at most one in ten.  Pairs are left out,
and counted, that are empty, longer than 250 words or of very different lengths.
"""

from sbnmt_plugin.tools.bitext import prepare
from sbnmt_plugin.tools.command import run

if __name__ == "__main__":
    run(lambda: prepare(__doc__))
