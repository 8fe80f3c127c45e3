#!/usr/bin/env python3
"""`sbnmt benchmark`: speed and memory beside stock fairseq."""

import clone

clone.run(__file__)
