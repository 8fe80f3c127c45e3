#!/usr/bin/env python3
"""`sbnmt bpe`: learn and apply byte-pair encoding."""

import clone

clone.run(__file__)
