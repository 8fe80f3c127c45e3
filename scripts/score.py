#!/usr/bin/env python3
"""`sbnmt score`: BLEU and chrF with signatures."""

import clone

clone.run(__file__)
