#!/usr/bin/env python3
"""`sbnmt sweep-beam`: BLEU against beam size and length penalty."""

import clone

clone.run(__file__)
